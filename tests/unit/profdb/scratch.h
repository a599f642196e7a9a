/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder for one test, and the few steps that many tests of the database begin with. */
#ifndef DCPI_TESTS_PROFDB_SCRATCH_H
#define DCPI_TESTS_PROFDB_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profdb.h"

/* 2026-11-20 07:54:10 UTC */
#define SCRATCH_NOW   INT64_C(1795161250)
#define SCRATCH_EPOCH "202611200754"

__attribute__((unused)) static int scratch_setup(void **state)
{
	char *dir = strdup("/tmp/dcpi-profdb-XXXXXX");

	assert_non_null(mkdtemp(dir));
	*state = dir;
	return 0;
}

static int scratch_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

__attribute__((unused)) static int scratch_teardown(void **state)
{
	nftw(*state, scratch_remove, 8, FTW_DEPTH | FTW_PHYS);
	free(*state);
	return 0;
}

#define scratch_test(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

/* In static storage: good until the fourth next call. */
__attribute__((unused)) static const char *scratch_path(const char *dir, const char *name)
{
	static char paths[4][1024];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

__attribute__((unused)) static void scratch_write(const char *dir, const char *name,
						  const void *data, size_t len)
{
	FILE *f = fopen(scratch_path(dir, name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

__attribute__((unused)) static struct profdb *scratch_open(const char *dir, bool create)
{
	struct base_err err = { 0 };
	struct profdb *db;

	if (profdb_open(dir, create, &db, &err) < 0)
		fail_msg("%s", err.text);
	return db;
}

/* A user can be let read a file there. */
__attribute__((unused)) static bool scratch_has_readers(const char *dir)
{
	int fd = open(scratch_path(dir, ".reader"), O_RDWR | O_CREAT, 0600), r;

	assert_true(fd >= 0);
	r = base_reader_set(fd, 1000, false);
	close(fd);
	unlink(scratch_path(dir, ".reader"));
	return r == 0;
}

enum { SCRATCH_OWNER = 65534, SCRATCH_GROUP = 65533 };

/* We are root, and the folder is another user's from here on; else the test is skipped. */
__attribute__((unused)) static void scratch_give(const char *dir)
{
	if (geteuid() != 0 || chown(dir, SCRATCH_OWNER, SCRATCH_GROUP) < 0)
		skip();
}

__attribute__((unused)) static void scratch_is_given(const char *dir, const char *name)
{
	struct stat st;

	if (lstat(scratch_path(dir, name), &st) < 0)
		fail_msg("no %s", name);
	if (st.st_uid != SCRATCH_OWNER || st.st_gid != SCRATCH_GROUP)
		fail_msg("%s is of %u:%u", name, (unsigned int)st.st_uid, (unsigned int)st.st_gid);
}

/* @fn in a process of that user's. */
__attribute__((unused)) static void scratch_as_owner(const char *dir, bool (*fn)(const char *dir))
{
	pid_t child = fork();
	int status = -1;

	assert_true(child >= 0);
	if (!child)
		_exit(setgroups(0, NULL) < 0 || setgid(SCRATCH_GROUP) < 0 ||
		      setuid(SCRATCH_OWNER) < 0 || !fn(dir));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Created, locked as "box", with a new epoch. */
__attribute__((unused)) static struct profdb *scratch_writer(const char *dir)
{
	struct profdb *db = scratch_open(dir, true);
	char epoch[PROFDB_EPOCH_LEN + 1];

	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	assert_int_equal(profdb_epoch_start(db, SCRATCH_NOW, epoch, NULL), 0);
	assert_string_equal(epoch, SCRATCH_EPOCH);
	return db;
}

/* An ordinary file's profile: one event "cycles", @n samples at each of offsets 0, 16, … */
__attribute__((unused)) static struct profdb_profile *scratch_profile(const char *path, uint8_t id,
								      size_t offsets, uint64_t n)
{
	struct base_id image = { .len = 2, .bytes = { 0xab, id } };
	struct profdb_profile *p = profdb_profile_new(PROFDB_FILE, &image, path);

	assert_non_null(p);
	assert_int_equal(profdb_profile_event_add(p, "cycles", 62000), 0);
	for (size_t i = 0; i < offsets; i++)
		assert_int_equal(profdb_profile_add(p, 16 * i, 0, n), 0);
	return p;
}

__attribute__((unused)) static void scratch_put(struct profdb *db, const char *stem, uint8_t id,
						uint64_t n)
{
	struct profdb_profile *p = scratch_profile(stem, id, 3, n);
	struct base_err err = { 0 };

	if (profdb_flush_put(db, stem, p, &err) != 0)
		fail_msg("%s", err.text);
	profdb_profile_free(p);
}

/* @n samples at one frame of an image "jit", below one of "/bin/prog". */
__attribute__((unused)) static struct profdb_callpaths *scratch_callpaths(uint64_t n)
{
	const struct profdb_image_ref images[] = {
		{ .kind = PROFDB_DYNAMIC,
		  .id = { .len = 2, .bytes = { 0xcd, (uint8_t)n } },
		  .path = "jit",
		  .stem = "jit.dyn" },
		{ .kind = PROFDB_FILE,
		  .id = { .len = 2, .bytes = { 0xab, 1 } },
		  .path = "/bin/prog" },
	};
	const struct profdb_frame frames[] = { { 0, 16 }, { 1, 32 } };
	struct profdb_callpaths *c = profdb_callpaths_new();

	assert_non_null(c);
	for (int i = 0; i < 2; i++)
		assert_int_equal(profdb_callpaths_image_add(c, &images[i]), i);
	assert_int_equal(profdb_callpaths_event_add(c, "cycles", 62000), 0);
	assert_int_equal(profdb_callpaths_add(c, 0, PROFDB_CALLPATH_COMPLETE, frames, 2, n), 0);
	return c;
}

__attribute__((unused)) static int scratch_put_callpaths(struct profdb *db, uint64_t n)
{
	struct profdb_callpaths *c = scratch_callpaths(n);
	int r = profdb_flush_put_callpaths(db, c, NULL);

	profdb_callpaths_free(c);
	return r;
}

/* Samples of such paths; 0: there are none. */
__attribute__((unused)) static uint64_t scratch_sum_callpaths(struct profdb *db, const char *epoch,
							      const char *platform)
{
	struct profdb_callpaths *c;
	struct base_err err = { 0 };
	uint64_t sum = 0;
	int r = profdb_callpaths_load(db, epoch, platform, &c, &err);

	if (r < 0 && r != -ENOENT)
		fail_msg("%s", err.text);
	if (r == -ENOENT)
		return 0;
	for (size_t i = 0; i < profdb_callpaths_nr_nodes(c); i++)
		sum += profdb_callpaths_node(c, i).count[0];
	assert_int_equal(profdb_callpaths_nr_nodes(c), PROFDB_NR_CALLPATH_ENDS + 2);
	assert_int_equal(profdb_callpaths_event(c, 0)->sum, sum);
	profdb_callpaths_free(c);
	return sum;
}

/* @n samples of one workload at one place of "/bin/prog", in minute @n. */
__attribute__((unused)) static int scratch_put_workloads(struct profdb *db, uint64_t n)
{
	const struct profdb_image_ref prog = { .kind = PROFDB_FILE,
					       .id = { .len = 2, .bytes = { 0xab, 1 } },
					       .path = "/bin/prog" };
	const struct profdb_workload k = { .comm = "prog", .processes = 1 };
	struct profdb_workloads *w = profdb_workloads_new();
	int r;

	assert_non_null(w);
	assert_int_equal(profdb_workloads_image_add(w, &prog), 0);
	assert_int_equal(profdb_workloads_workload_add(w, &k), 0);
	assert_int_equal(profdb_workloads_event_add(w, "cycles", 62000), 0);
	assert_int_equal(profdb_workloads_add(w, 0, 0, 16, 0, (int64_t)n, n), 0);
	r = profdb_flush_put_workloads(db, w, NULL);
	profdb_workloads_free(w);
	return r;
}

/* Samples of such workloads, each in its minute; 0: there are none. */
__attribute__((unused)) static uint64_t scratch_sum_workloads(struct profdb *db, const char *epoch,
							      const char *platform)
{
	struct profdb_workloads *w;
	struct base_err err = { 0 };
	uint64_t sum = 0;
	int r = profdb_workloads_load(db, epoch, platform, &w, &err);

	if (r < 0 && r != -ENOENT)
		fail_msg("%s", err.text);
	if (r == -ENOENT)
		return 0;
	for (size_t i = 0; i < profdb_workloads_nr_minutes(w); i++) {
		struct profdb_workload_minute m = profdb_workloads_minute(w, i);

		assert_int_equal(m.count[0] % (uint64_t)m.minute, 0);
		sum += m.count[0];
	}
	assert_int_equal(profdb_workloads_nr_counts(w), 1);
	assert_int_equal(profdb_workloads_count(w, 0).count[0], sum);
	profdb_workloads_free(w);
	return sum;
}

#endif
