/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "scratch.h"

enum { NR_IMAGES = 5 };

struct view {
	uint64_t sum[NR_IMAGES];
	int profiles, bad;
	char last[300];
};

static int look_at(void *ctx, const char *file, struct profdb_profile *p)
{
	struct view *v = ctx;

	assert_true(strcmp(v->last, file) < 0);
	snprintf(v->last, sizeof(v->last), "%s", file);
	v->sum[profdb_profile_image(p)->bytes[1] % NR_IMAGES] = profdb_profile_event(p, 0)->sum;
	v->profiles++;
	profdb_profile_free(p);
	return 0;
}

static void look_at_bad(void *ctx, const char *file, const struct base_err *err)
{
	struct view *v = ctx;

	assert_non_null(strstr(err->text, file));
	v->bad++;
}

static struct view look(struct profdb *db)
{
	struct view v = { 0 };
	struct base_err err = { 0 };

	if (profdb_walk(db, SCRATCH_EPOCH, "box", look_at, look_at_bad, &v, &err) < 0)
		fail_msg("%s", err.text);
	return v;
}

static void flush_all(struct profdb *db)
{
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	for (int i = 0; i < NR_IMAGES; i++)
		scratch_put(db, "image", i, 1);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
}

/* Until it is killed, or alone; one byte into @ready after the first flush. */
static pid_t start_writer(const char *dir, int ready)
{
	const struct timespec pause = { .tv_nsec = 300000 };
	pid_t parent = getpid(), child = fork();
	struct profdb *db;

	assert_true(child >= 0);
	if (child)
		return child;
	db = scratch_writer(dir);
	flush_all(db);
	if (write(ready, "x", 1) != 1)
		_exit(1);
	/* A test that fails leaves nobody behind. */
	while (getppid() == parent) {
		flush_all(db);
		nanosleep(&pause, NULL);
	}
	_exit(1);
}

/* Every view is of one flush, each not older than the one before. */
static void test_readers_see_one_flush(void **state)
{
	uint64_t until, last = 0, first = 0;
	struct profdb *db;
	int ready[2], views = 0;
	pid_t writer;
	char c;

	assert_int_equal(pipe(ready), 0);
	writer = start_writer(*state, ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	db = scratch_open(*state, false);
	/* However long it takes until the writer had its turns. */
	for (until = base_now_ns() + 400000000;
	     base_now_ns() < until || views <= 2 || last == first; views++) {
		struct view v = look(db);

		assert_int_equal(v.profiles, NR_IMAGES);
		assert_int_equal(v.bad, 0);
		for (int i = 1; i < NR_IMAGES; i++)
			assert_int_equal(v.sum[i], v.sum[0]);
		assert_true(v.sum[0] >= last);
		last = v.sum[0];
		first = first ? first : last;
	}
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
	assert_true(views > 2 && last > first);
	/* And after a death at no special moment. */
	for (int i = 1; i < NR_IMAGES; i++)
		assert_int_equal(look(db).sum[i], look(db).sum[0]);
	profdb_close(db);
	close(ready[0]);
	close(ready[1]);
}

#define FOLDER SCRATCH_EPOCH "/box/"

static void test_bad_files_are_named_and_the_walk_goes_on(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct view v;

	flush_all(db);
	scratch_write(*state, FOLDER "aaa", "what?", 5);
	scratch_write(*state, FOLDER "zzz", "", 0);
	assert_int_equal(mkdir(scratch_path(*state, FOLDER "folder"), 0755), 0);
	assert_int_equal(mkfifo(scratch_path(*state, FOLDER "pipe"), 0644), 0);
	assert_int_equal(symlink("nowhere", scratch_path(*state, FOLDER "link")), 0);
	v = look(db);
	assert_int_equal(v.profiles, NR_IMAGES);
	assert_int_equal(v.bad, 4);
	profdb_close(db);
}

/* What stands in the way of a committed file is what is wrong, not that nothing could be read. */
static void look_for_cause(void *ctx, const char *file, const struct base_err *err)
{
	(void)file;
	*(int *)ctx += err->code == -EISDIR && strstr(err->text, ".new-9-aaa");
}

static int look_at_none(void *ctx, const char *file, struct profdb_profile *p)
{
	(void)ctx, (void)file;
	profdb_profile_free(p);
	return 0;
}

static void test_a_new_file_that_cannot_be_read_says_why(void **state)
{
	struct profdb *db = scratch_writer(*state);
	char text[128];
	int found = 0, len;

	flush_all(db);
	len = sprintf(text, "dcpi-commit 1\nseq 9\nfile aaa\n");
	len += sprintf(text + len, "crc %08x\n", base_crc32c(0, text, (size_t)len));
	scratch_write(*state, FOLDER ".commit", text, (size_t)len);
	assert_int_equal(mkdir(scratch_path(*state, FOLDER ".new-9-aaa"), 0755), 0);
	assert_int_equal(
		profdb_walk(db, SCRATCH_EPOCH, "box", look_at_none, look_for_cause, &found, NULL),
		0);
	assert_int_equal(found, 1);
	profdb_close(db);
}

static int stop(void *ctx, const char *file, struct profdb_profile *p)
{
	(void)file;
	++*(int *)ctx;
	profdb_profile_free(p);
	return -ECANCELED;
}

static void test_the_visitor_can_stop(void **state)
{
	struct profdb *db = scratch_writer(*state);
	int calls = 0;

	flush_all(db);
	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "box", stop, NULL, &calls, NULL),
			 -ECANCELED);
	assert_int_equal(calls, 1);
	profdb_close(db);
}

static void test_no_such_epoch(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct base_err err = { 0 };

	assert_int_equal(profdb_walk(db, "200001010000", "box", stop, NULL, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.text, "200001010000"));
	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "nobox", stop, NULL, NULL, NULL), -ENOENT);
	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "..", stop, NULL, NULL, NULL), -EINVAL);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_readers_see_one_flush),
		scratch_test(test_bad_files_are_named_and_the_walk_goes_on),
		scratch_test(test_a_new_file_that_cannot_be_read_says_why),
		scratch_test(test_the_visitor_can_stop),
		scratch_test(test_no_such_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
