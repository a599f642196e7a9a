/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"

/* The file of this inode lies where the disk has gone bad; 0: none. */
static ino_t unreadable;

ssize_t __real_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	struct stat st;

	if (!unreadable || fstat(fd, &st) < 0 || st.st_ino != unreadable)
		return __real_read(fd, buf, len);
	errno = EIO;
	return -1;
}

struct seen {
	int profiles, bad;
	uint64_t samples;
	char files[4096];
	struct profdb_profile *last;
};

static int see(void *ctx, const char *file, struct profdb_profile *p)
{
	struct seen *s = ctx;

	s->profiles++;
	for (size_t i = 0; i < profdb_profile_nr_events(p); i++)
		s->samples += profdb_profile_event(p, i)->sum;
	strcat(s->files, file);
	strcat(s->files, " ");
	profdb_profile_free(s->last);
	s->last = p;
	return 0;
}

static void see_bad(void *ctx, const char *file, const struct base_err *err)
{
	struct seen *s = ctx;

	assert_true(err->code < 0);
	assert_non_null(strstr(err->text, file));
	s->bad++;
}

static void walk(struct profdb *db, struct seen *s)
{
	profdb_profile_free(s->last);
	*s = (struct seen){ 0 };
	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "box", see, see_bad, s, NULL), 0);
}

static void test_merges_with_what_is_stored(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct seen s = { 0 };

	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(profdb_flush_begin(db, NULL), 0);
		scratch_put(db, "libc.so.6", 1, i);
		scratch_put(db, "prog", 2, 10 * i);
		scratch_put(db, "prog", 2, 1); /* twice in one flush */
		walk(db, &s);
		assert_int_equal(s.samples, 3 * (11 * (i - 1) * i / 2 + i - 1));
		assert_int_equal(profdb_flush_commit(db, NULL), 0);
		walk(db, &s);
		assert_int_equal(s.samples, 3 * (11 * i * (i + 1) / 2 + i));
	}
	assert_int_equal(s.profiles, 2);
	assert_int_equal(s.bad, 0);
	assert_string_equal(s.files, "libc.so.6.file.ab01 prog.file.ab02 ");
	assert_string_equal(profdb_profile_word(s.last, "epoch"), SCRATCH_EPOCH "10");
	assert_string_equal(profdb_profile_word(s.last, "platform"), "box");
	profdb_profile_free(s.last);
	profdb_close(db);
}

static void test_an_aborted_flush_was_none(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct seen s = { 0 };

	assert_int_equal(profdb_flush_put(db, "x", NULL, NULL), -EINVAL);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "prog", 2, 1);
	assert_int_equal(profdb_flush_begin(db, NULL), -EINVAL);
	profdb_flush_abort(db);
	assert_int_equal(profdb_flush_commit(db, NULL), -EINVAL);
	walk(db, &s);
	assert_int_equal(s.profiles, 0);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "prog", 2, 5);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	walk(db, &s);
	assert_int_equal(s.samples, 15);
	profdb_profile_free(s.last);
	profdb_close(db);
}

static void flush_one(struct profdb *db, const struct profdb_profile *p, const char *stem, int want)
{
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_flush_put(db, stem, p, NULL), want);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
}

/* One image under two names, also for a daemon that comes later: one file. */
static void test_the_identity_finds_the_file(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct profdb_profile *p = scratch_profile("/other/copy", 1, 1, 1);
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct seen s = { 0 };

	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "first", 1, 1);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	profdb_close(db);
	db = scratch_open(*state, false);
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	assert_int_equal(profdb_epoch_resume(db, epoch, NULL), 0);
	flush_one(db, p, "copy", 0);
	walk(db, &s);
	assert_string_equal(s.files, "first.file.ab01 ");
	assert_int_equal(s.samples, 4);
	assert_string_equal(profdb_profile_path(s.last, 0), "first");
	assert_string_equal(profdb_profile_path(s.last, 1), "/other/copy");
	profdb_profile_free(p);
	profdb_profile_free(s.last);
	profdb_close(db);
}

static void test_no_name_is_an_option(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct profdb_profile *p = scratch_profile("/home/user/-rf", 1, 1, 1);
	struct seen s = { 0 };

	flush_one(db, p, "-rf", 0);
	walk(db, &s);
	assert_string_equal(s.files, "_rf.file.ab01 ");
	profdb_profile_free(p);
	profdb_profile_free(s.last);
	profdb_close(db);
}

/* A pseudo-image that grows is another one each time, in one profile. */
static void test_a_grown_image_keeps_its_profile(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct seen s = { 0 };

	for (uint8_t i = 1; i <= 3; i++) {
		struct base_id id = { .len = 1, .bytes = { i } };
		struct profdb_profile *p = profdb_profile_new(PROFDB_DYNAMIC, &id, "calc-1.dyn");
		char size[8];

		snprintf(size, sizeof(size), "%u", i);
		profdb_profile_event_add(p, "cycles", 62000);
		profdb_profile_add(p, i, 0, 1);
		profdb_profile_set_word(p, "tsize", size);
		flush_one(db, p, "calc-1.dyn", 0);
		profdb_profile_free(p);
		walk(db, &s);
		assert_string_equal(s.files, "calc-1.dyn.dynamic ");
		assert_int_equal(s.samples, i);
		assert_true(base_id_equal(profdb_profile_image(s.last), &id));
		assert_string_equal(profdb_profile_word(s.last, "tsize"), size);
	}
	profdb_profile_free(s.last);
	profdb_close(db);
}

/* By kind, by identity, by path where there is none, by stem if dynamic: all apart. */
/* Samples go into another profile, theirs ends: both at once, or neither. */
static void test_a_profile_moves(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct base_id id = { .len = 1, .bytes = { 1 } };
	struct profdb_profile *p = profdb_profile_new(PROFDB_DYNAMIC, &id, "old.dyn"),
			      *stored = NULL;
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct seen s = { 0 };

	profdb_profile_event_add(p, "cycles", 62000);
	profdb_profile_add(p, 7, 0, 5);
	assert_int_equal(profdb_flush_read(db, "old.dyn", &stored, NULL), -EINVAL);
	flush_one(db, p, "old.dyn", 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(profdb_flush_begin(db, NULL), 0);
		assert_int_equal(profdb_flush_read(db, "none.dyn", &stored, NULL), -ENOENT);
		assert_int_equal(profdb_flush_remove(db, "none.dyn", NULL), -EINVAL);
		assert_int_equal(profdb_flush_read(db, "old.dyn", &stored, NULL), 0);
		assert_int_equal(profdb_flush_put(db, "new.dyn", stored, NULL), 0);
		profdb_profile_free(stored);
		assert_int_equal(profdb_flush_remove(db, "new.dyn", NULL), -EINVAL);
		assert_int_equal(profdb_flush_remove(db, "old.dyn", NULL), 0);
		walk(db, &s);
		assert_string_equal(s.files, "old.dyn.dynamic ");
		if (!i)
			profdb_flush_abort(db);
	}
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	walk(db, &s);
	assert_string_equal(s.files, "new.dyn.dynamic ");
	assert_int_equal(s.samples, 5);
	/* The name is free again. */
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_flush_read(db, "old.dyn", &stored, NULL), -ENOENT);
	assert_int_equal(profdb_flush_put(db, "old.dyn", p, NULL), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	profdb_close(db);
	db = scratch_open(*state, false);
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	assert_int_equal(profdb_epoch_resume(db, epoch, NULL), 0);
	walk(db, &s);
	assert_string_equal(s.files, "new.dyn.dynamic old.dyn.dynamic ");
	profdb_profile_free(p);
	profdb_profile_free(s.last);
	profdb_close(db);
}

static void test_what_differs_stays_apart(void **state)
{
	static const struct {
		enum profdb_kind kind;
		uint8_t id;
		const char *path, *stem;
	} images[] = {
		{ PROFDB_FILE, 1, "/a", "../../x y" },
		{ PROFDB_FILE, 2, "/a", "../../x y" },
		{ PROFDB_VDSO, 1, "/a", "x" },
		{ PROFDB_KERNEL, 1, "/a", "[kernel]" },
		{ PROFDB_FILE, 0, "/noid", "noid" },
		{ PROFDB_FILE, 0, "/other", "noid" },
		{ PROFDB_NAMED, 0, "unknown", "u" },
		{ PROFDB_NAMED, 0, "idle", "u" },
		{ PROFDB_DYNAMIC, 1, "a b", "a b" },
		{ PROFDB_DYNAMIC, 1, "a_b", "a_b" },
		{ PROFDB_DYNAMIC, 1, "a?b", "a?b" },
		{ PROFDB_FILE, 3, "/empty", "" },
		{ PROFDB_FILE, 4, "/hidden", ".commit" },
	};
	enum { N = sizeof(images) / sizeof(images[0]) };
	struct profdb *db = scratch_writer(*state);
	char long_stem[400];
	struct seen s = { 0 };

	for (int round = 1; round <= 2; round++) {
		assert_int_equal(profdb_flush_begin(db, NULL), 0);
		for (size_t i = 0; i < N; i++) {
			struct base_id id = { .len = images[i].id != 0, .bytes = { images[i].id } };
			struct profdb_profile *p =
				profdb_profile_new(images[i].kind, &id, images[i].path);

			profdb_profile_event_add(p, "cycles", 1);
			profdb_profile_add(p, 0, 0, 1);
			assert_int_equal(profdb_flush_put(db, images[i].stem, p, NULL), 0);
			profdb_profile_free(p);
		}
		assert_int_equal(profdb_flush_commit(db, NULL), 0);
		walk(db, &s);
		assert_int_equal(s.profiles, N);
		assert_int_equal(s.bad, 0);
		assert_int_equal(s.samples, round * N);
	}
	/* Names beyond what a folder takes differ at their ends only. */
	memset(long_stem, 'x', sizeof(long_stem));
	long_stem[399] = '\0';
	for (int c = 'a'; c < 'd'; c++) {
		struct profdb_profile *p = profdb_profile_new(PROFDB_DYNAMIC, NULL, "x");

		long_stem[398] = c;
		profdb_profile_event_add(p, "cycles", 1);
		profdb_profile_add(p, 0, 0, 1);
		flush_one(db, p, long_stem, 0);
		flush_one(db, p, long_stem, 0);
		profdb_profile_free(p);
	}
	walk(db, &s);
	assert_int_equal(s.profiles, N + 3);
	profdb_profile_free(s.last);
	profdb_close(db);
}

/* What cannot be read is not thrown away, and does not stop the profile's own work. */
static void test_a_damaged_file_stays(void **state)
{
	static const char name[] = SCRATCH_EPOCH "/box/prog.file.ab02";
	struct profdb *db = scratch_writer(*state);
	struct profdb_profile *p = scratch_profile("/prog", 2, 1, 4);
	struct base_err err = { 0 };
	struct base_buf buf = { 0 };
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct seen s = { 0 };

	scratch_write(*state, name, "damaged", 7);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_flush_put(db, "prog", p, &err), 1);
	assert_non_null(strstr(err.text, "it stays"));
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	flush_one(db, p, "prog", 0);
	profdb_close(db);
	db = scratch_open(*state, false);
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	assert_int_equal(profdb_epoch_resume(db, epoch, NULL), 0);
	flush_one(db, p, "prog", 0);
	walk(db, &s);
	assert_int_equal(s.bad, 1);
	assert_string_equal(s.files, "prog.file.ab02~1 ");
	assert_int_equal(s.samples, 12);
	assert_int_equal(base_file_read(AT_FDCWD, scratch_path(*state, name), 99, &buf, NULL), 0);
	assert_int_equal(buf.len, 7);
	base_buf_release(&buf);
	profdb_profile_free(p);
	profdb_profile_free(s.last);
	profdb_close(db);
}

/* Nor does a bad block below it: what comes later is for other blocks. */
static void test_an_unreadable_file_stays(void **state)
{
	static const char name[] = SCRATCH_EPOCH "/box/prog.file.ab02";
	struct profdb *db = scratch_writer(*state);
	struct profdb_profile *p = scratch_profile("/prog", 2, 1, 4);
	struct base_err err = { 0 };
	struct seen s = { 0 };
	struct stat st;
	char why[128];

	flush_one(db, p, "prog", 0);
	assert_int_equal(stat(scratch_path(*state, name), &st), 0);
	unreadable = st.st_ino;
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_flush_put(db, "prog", p, &err), 1);
	snprintf(why, sizeof(why), "%s; it stays", strerror(EIO));
	assert_non_null(strstr(err.text, why));
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	flush_one(db, p, "prog", 0);
	walk(db, &s);
	assert_int_equal(s.bad, 1);
	assert_string_equal(s.files, "prog.file.ab02~1 ");
	assert_int_equal(s.samples, 8);
	unreadable = 0;
	walk(db, &s);
	assert_string_equal(s.files, "prog.file.ab02 prog.file.ab02~1 ");
	assert_int_equal(s.samples, 12);
	profdb_profile_free(p);
	profdb_profile_free(s.last);
	profdb_close(db);
}

/* A file of another image under our name is none of ours either. */
static void test_a_file_of_another_image_stays(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct profdb_profile *p = scratch_profile("/prog", 2, 1, 4);
	struct seen s = { 0 };

	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "other", 3, 1);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	assert_int_equal(rename(scratch_path(*state, SCRATCH_EPOCH "/box/other.file.ab03"),
				scratch_path(*state, SCRATCH_EPOCH "/box/prog.file.ab02")),
			 0);
	flush_one(db, p, "prog", 1);
	walk(db, &s);
	assert_string_equal(s.files, "prog.file.ab02 prog.file.ab02~1 ");
	assert_int_equal(s.samples, 7);
	profdb_profile_free(p);
	profdb_profile_free(s.last);
	profdb_close(db);
}

static void test_overflow_stores_nothing(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct profdb_profile *p = scratch_profile("/prog", 2, 1, UINT64_MAX);
	struct seen s = { 0 };

	flush_one(db, p, "prog", 0);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_flush_put(db, "prog", p, NULL), -DCPI_EOVERFLOW);
	scratch_put(db, "other", 3, 1);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	walk(db, &s);
	assert_int_equal(s.profiles, 2);
	assert_true(s.samples == UINT64_MAX + UINT64_C(3));
	profdb_profile_free(p);
	profdb_profile_free(s.last);
	profdb_close(db);
}

static struct profdb_profile *of_events(const char *prefix, unsigned int nr)
{
	struct base_id image = { .len = 2, .bytes = { 0xab, 2 } };
	struct profdb_profile *p = profdb_profile_new(PROFDB_FILE, &image, "/prog");

	for (unsigned int i = 0; i < nr; i++) {
		char name[PROFDB_EVENT_NAME];

		snprintf(name, sizeof(name), "%s%u", prefix, i);
		assert_int_equal(profdb_profile_event_add(p, name, 1), i);
		assert_int_equal(profdb_profile_add(p, 16, i, 1), 0);
	}
	return p;
}

/* A daemon goes on in the epoch of another one, which had other events. */
static void test_more_events_than_fit(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct profdb_profile *a = of_events("a", 10), *b = of_events("b", 10);
	struct base_err err = { 0 };
	struct seen s = { 0 };

	flush_one(db, a, "prog", 0);
	flush_one(db, b, "prog", 1);
	flush_one(db, b, "prog", 0);
	walk(db, &s);
	assert_string_equal(s.files, "prog.file.ab02 prog.file.ab02~1 ");
	assert_int_equal(s.samples, 30);
	/* Both in one flush. */
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_flush_put(db, "prog", b, NULL), 0);
	assert_int_equal(profdb_flush_put(db, "prog", a, &err), 1);
	assert_non_null(strstr(err.text, "second file"));
	assert_int_equal(profdb_flush_put(db, "prog", a, NULL), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	walk(db, &s);
	assert_string_equal(s.files, "prog.file.ab02 prog.file.ab02~1 prog.file.ab02~2 ");
	assert_int_equal(s.samples, 60);
	profdb_profile_free(a);
	profdb_profile_free(b);
	profdb_profile_free(s.last);
	profdb_close(db);
}

/* What stands where a new file is to be is neither written nor waited for. */
static void test_planted_files(void **state)
{
	struct profdb_profile *p = scratch_profile("prog", 2, 3, 1);
	struct profdb *db = scratch_writer(*state);
	struct base_err err = { 0 };
	struct seen s = { 0 };
	struct stat st;

	scratch_write(*state, "victim", "precious", 8);
	for (int i = 1; i <= 3; i++) {
		const char *new, *victim = scratch_path(*state, "victim");
		char name[64];

		snprintf(name, sizeof(name), SCRATCH_EPOCH "/box/.new-%d-prog.file.ab02", i);
		new = scratch_path(*state, name);
		if (i == 1)
			assert_int_equal(mkfifo(new, 0600), 0);
		else
			assert_int_equal(i == 2 ? symlink(victim, new) : link(victim, new), 0);
		flush_one(db, p, "prog", 0);
	}
	assert_int_equal(stat(scratch_path(*state, "victim"), &st), 0);
	assert_int_equal(st.st_size, 8);
	walk(db, &s);
	assert_int_equal(s.samples, 3 * 3);
	/* What no file can take the place of. */
	assert_int_equal(
		mkdir(scratch_path(*state, SCRATCH_EPOCH "/box/.new-4-prog.file.ab02"), 0700), 0);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_true(profdb_flush_put(db, "prog", p, &err) < 0);
	assert_non_null(strstr(err.text, "prog.file.ab02"));
	profdb_flush_abort(db);
	profdb_profile_free(p);
	profdb_profile_free(s.last);
	profdb_close(db);
}

static void test_modes(void **state)
{
	struct profdb *db;
	struct stat st;

	umask(022);
	db = scratch_writer(*state);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "prog", 2, 1);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	assert_int_equal(stat(scratch_path(*state, SCRATCH_EPOCH "/box/prog.file.ab02"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(stat(scratch_path(*state, SCRATCH_EPOCH "/box"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(stat(scratch_path(*state, "dyn"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	profdb_close(db);
}

static void count_one(void *ctx)
{
	++*(int *)ctx;
}

static void test_a_flush_shows_life(void **state)
{
	struct profdb *db = scratch_writer(*state);
	int nr = 0;

	profdb_set_alive(db, count_one, &nr);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "prog", 2, 1);
	scratch_put(db, "libc.so.6", 1, 1);
	assert_true(nr >= 2);
	nr = 0;
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	assert_true(nr >= 2);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_merges_with_what_is_stored),
		scratch_test(test_an_aborted_flush_was_none),
		scratch_test(test_the_identity_finds_the_file),
		scratch_test(test_no_name_is_an_option),
		scratch_test(test_a_grown_image_keeps_its_profile),
		scratch_test(test_a_profile_moves),
		scratch_test(test_what_differs_stays_apart),
		scratch_test(test_a_damaged_file_stays),
		scratch_test(test_an_unreadable_file_stays),
		scratch_test(test_a_file_of_another_image_stays),
		scratch_test(test_overflow_stores_nothing),
		scratch_test(test_more_events_than_fit),
		scratch_test(test_planted_files),
		scratch_test(test_modes),
		scratch_test(test_a_flush_shows_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
