/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpid -gc -gc_size killed before each of its changes to the disk: whatever an epoch that is left
 * refers to is there, and the next run ends where one that nobody kills does. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "heartbeats.h"
#include "gc_epoch.h"
#include "job.h"
#include "pseudoimg.h"

#define NOW INT64_C(1700000000)

enum { EPOCHS = 5, KILLED = 9, MOST = 200 };

/* ---- killed before one of its changes -------------------------------------------------------- */

static int countdown = -1; /* below 0: it is not */

int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_unlinkat(int dir, const char *path, int flags);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_fsync(int fd);

static void step(void)
{
	if (countdown >= 0 && countdown-- == 0)
		_exit(KILLED);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	step();
	return __real_renameat(from_dir, from, to_dir, to);
}

int __wrap_unlinkat(int dir, const char *path, int flags)
{
	step();
	return __real_unlinkat(dir, path, flags);
}

int __wrap_fsync(int fd)
{
	(void)fd;
	return 0; /* What is killed here is no machine. */
}

/* ---- a database ------------------------------------------------------------------------------ */

static struct profdb *open_db(const char *dir)
{
	struct base_err err = { 0 };
	struct profdb *db;

	if (profdb_open(dir, true, &db, &err) < 0)
		fail_msg("%s", err.text);
	return db;
}

static void write_image(struct profdb *db, const char *name, uint64_t nr)
{
	static const uint8_t code[] = { 0x90, 0xc3 };
	const struct timespec times[2] = { { .tv_sec = NOW }, { .tv_sec = NOW } };
	const struct job_routine routine = {
		.addr = 0x1000 + 16 * nr, .name = name, .code = code, .code_len = sizeof(code)
	};
	struct pseudoimg_result result;
	struct base_err err = { 0 };
	struct base_buf job = { 0 };
	int fd = openat(profdb_dyn_fd(db), name, O_RDWR | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	job_image(&job, &(struct job_image){
				.machine = 62, .facility = "jit", .host = "h", .exe = "/x" });
	job_run(&job, 0x1000, 0, 0x1000);
	job_routine(&job, &routine);
	if (pseudoimg_write(job.data, job.len, fd, &result, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
	base_buf_release(&job);
}

/* By its name, as profiles of images that have grown do. */
static void put_profile(struct profdb *db, const char *image)
{
	const struct base_id id = { .len = 2, .bytes = { 1, (uint8_t)image[0] } };
	struct profdb_profile *p = profdb_profile_new(PROFDB_DYNAMIC, &id, image);
	struct base_err err = { 0 };

	assert_true(profdb_profile_event_add(p, "cycles", 1) >= 0);
	assert_int_equal(profdb_profile_add(p, 0, 0, 1), 0);
	assert_true(profdb_flush_put(db, image, p, &err) >= 0);
	profdb_profile_free(p);
}

/* Epochs with an image each, one that the next epoch has too, and one that all have. */
static void make(const char *dir)
{
	struct profdb *db = open_db(dir);
	char epoch[PROFDB_EPOCH_LEN + 1], name[32];
	struct base_err err = { 0 };

	write_image(db, "all.dyn", 0);
	write_image(db, "none.dyn", 1);
	for (uint64_t i = 0; i <= EPOCHS; i++) {
		snprintf(name, sizeof(name), "both%d.dyn", (int)i);
		write_image(db, name, 2 + i);
		snprintf(name, sizeof(name), "own%d.dyn", (int)i);
		write_image(db, name, 20 + i);
	}
	assert_int_equal(profdb_lock(db, "box", &err), 0);
	for (int i = 0; i < EPOCHS; i++) {
		assert_int_equal(profdb_epoch_start(db, NOW + i * 3600, epoch, &err), 0);
		assert_int_equal(profdb_flush_begin(db, &err), 0);
		put_profile(db, "all.dyn");
		for (int k = i; k < i + 2; k++) {
			snprintf(name, sizeof(name), "both%d.dyn", k);
			put_profile(db, name);
		}
		snprintf(name, sizeof(name), "own%d.dyn", i);
		put_profile(db, name);
		assert_int_equal(profdb_flush_commit(db, &err), 0);
		assert_int_equal(profdb_epoch_finish(db, &err), 0);
	}
	profdb_close(db);
}

static int look_for(void *ctx, const char *file, struct profdb_profile *p)
{
	struct profdb *db = ctx;

	(void)file;
	if (faccessat(profdb_dyn_fd(db), profdb_profile_path(p, 0), F_OK, 0) < 0)
		fail_msg("'%s' is gone", profdb_profile_path(p, 0));
	profdb_profile_free(p);
	return 0;
}

/* How many epochs there are; nothing that they refer to is missing. */
static int look(const char *dir)
{
	struct profdb *db = open_db(dir);
	struct base_err err = { 0 };
	char **epochs = profdb_epochs(db, &err);
	int nr = 0;

	assert_non_null(epochs);
	for (; epochs[nr]; nr++)
		assert_int_equal(profdb_walk(db, epochs[nr], "box", look_for, NULL, db, &err), 0);
	free(epochs);
	profdb_close(db);
	return nr;
}

/* ---- the runs -------------------------------------------------------------------------------- */

static void ignore(void *ctx, const struct gc_file *file)
{
	(void)ctx;
	(void)file;
}

static void ignore_epoch(void *ctx, const char *epoch)
{
	(void)ctx;
	(void)epoch;
}

static int run(const char *dir, uint64_t size, struct gc_result *result)
{
	const struct gc_config config = {
		.size = size, .now = NOW, .removed = ignore, .removed_epoch = ignore_epoch
	};
	struct profdb *db = open_db(dir);
	struct base_err err = { 0 };
	int r = gc_run(db, &config, result, &err);

	profdb_close(db);
	return r;
}

static uint64_t size_of(const char *dir)
{
	struct profdb *db = open_db(dir);
	uint64_t len = gc_tree_len(profdb_dir_fd(db), ".");

	profdb_close(db);
	return len;
}

/* Exit code of a run that is killed before its @n-th change. */
static int killed_at(const char *dir, int n, uint64_t size)
{
	struct gc_result result;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		countdown = n;
		_exit(run(dir, size, &result) < 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void remove_all(const char *dir)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void test_killed(void **state)
{
	int r = KILLED, n;

	(void)state;
	for (n = 0; r; n++) {
		char dir[] = "/tmp/dcpi-gc-XXXXXX";
		struct gc_result result;
		uint64_t size;

		assert_in_range(n, 0, MOST);
		assert_non_null(mkdtemp(dir));
		make(dir);
		assert_int_equal(look(dir), EPOCHS);
		size = size_of(dir) / 2;
		r = killed_at(dir, n, size);
		assert_true(r == 0 || r == KILLED);
		look(dir);
		assert_int_equal(run(dir, size, &result), 0);
		assert_in_range(look(dir), 2, EPOCHS - 2);
		assert_true(size_of(dir) <= size);
		remove_all(dir);
	}
	/* Epochs, their files, and images were removed one by one. */
	assert_true(n > 20);
}

/* ---- as long as it may take ------------------------------------------------------------------ */

/* Each profile is read, then marked, and each image opened: other machines see that we live. */
static void test_lives_while_it_reads(void **state)
{
	const struct gc_config config = { .dry_run = true,
					  .removed = ignore,
					  .removed_epoch = ignore_epoch };
	char dir[] = "/tmp/dcpi-gc-XXXXXX";
	struct gc_result result;
	struct profdb *db;

	(void)state;
	assert_non_null(mkdtemp(dir));
	make(dir);
	db = open_db(dir);
	nr_heartbeats = 0;
	assert_int_equal(gc_run(db, &config, &result, NULL), 0);
	assert_int_equal(nr_heartbeats, 2 * 4 * EPOCHS + 2 + 2 * (EPOCHS + 1));
	profdb_close(db);
	remove_all(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_lives_while_it_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
