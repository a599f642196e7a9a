/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths in flushes: merged, damaged, failed and aborted. */
#include "scratch.h"

#define FILE_NAME SCRATCH_EPOCH "/box/callpaths"

static void flush(struct profdb *db, uint64_t n)
{
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(scratch_put_callpaths(db, n), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
}

static void is_sum(struct profdb *db, uint64_t n)
{
	assert_int_equal(scratch_sum_callpaths(db, SCRATCH_EPOCH, "box"), n);
}

static void test_visible_at_commit(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct profdb_callpaths *c;
	struct base_err err = { 0 };

	assert_int_equal(scratch_put_callpaths(db, 1), -EINVAL);
	assert_int_equal(profdb_callpaths_load(db, SCRATCH_EPOCH, "box", &c, &err), -ENOENT);
	assert_int_equal(profdb_callpaths_load(db, "202601010000", "box", &c, &err), -ENOENT);
	assert_int_equal(err.code, 0);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(scratch_put_callpaths(db, 1), 0);
	is_sum(db, 0);
	assert_int_equal(scratch_put_callpaths(db, 2), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	is_sum(db, 3);
	flush(db, 4);
	is_sum(db, 7);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(scratch_put_callpaths(db, 1), 0);
	profdb_flush_abort(db);
	is_sum(db, 7);
	assert_int_equal(profdb_callpaths_load(db, SCRATCH_EPOCH, "box", &c, NULL), 0);
	assert_int_equal(profdb_callpaths_image(c, 0)->id.bytes[1], 4);
	assert_string_equal(profdb_profile_word(profdb_callpaths_header(c), "epoch"),
			    SCRATCH_EPOCH "10");
	assert_string_equal(profdb_profile_word(profdb_callpaths_header(c), "platform"), "box");
	profdb_callpaths_free(c);
	profdb_close(db);
}

static int count(void *ctx, const char *file, struct profdb_profile *p)
{
	(void)file;
	++*(int *)ctx;
	profdb_profile_free(p);
	return 0;
}

static void bad(void *ctx, const char *file, const struct base_err *err)
{
	(void)file, (void)err;
	*(int *)ctx += 100;
}

/* With the rights of a profile, but none. */
static void test_is_no_profile(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct stat st;
	int nr = 0;

	flush(db, 1);
	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "box", count, bad, &nr, NULL), 0);
	assert_int_equal(profdb_walk_values(db, SCRATCH_EPOCH, "box", NULL, NULL, bad, &nr, NULL),
			 0);
	assert_int_equal(nr, 0);
	assert_int_equal(stat(scratch_path(*state, FILE_NAME), &st), 0);
	assert_int_equal(st.st_mode & 0777 & ~0644u, 0);
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	assert_int_equal(utimensat(AT_FDCWD, scratch_path(*state, SCRATCH_EPOCH "/box"),
				   (struct timespec[2]){ { 0 }, { 0 } }, 0),
			 0);
	assert_int_equal(profdb_sums_make(db, SCRATCH_EPOCH, "box", 10), 0);
	profdb_close(db);
}

static void test_a_damaged_file_is_moved_aside(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct profdb_callpaths *c;
	struct base_err err = { 0 };

	flush(db, 1);
	scratch_write(*state, FILE_NAME, "version dcpi-dynamic 1\nkind", 27);
	assert_int_equal(profdb_callpaths_load(db, SCRATCH_EPOCH, "box", &c, &err),
			 -DCPI_ETRUNCATED);
	assert_null(c);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	c = scratch_callpaths(5);
	err = (struct base_err){ 0 };
	assert_int_equal(profdb_flush_put_callpaths(db, c, &err), 1);
	assert_non_null(strstr(err.text, "set aside"));
	profdb_callpaths_free(c);
	assert_int_equal(scratch_put_callpaths(db, 2), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	is_sum(db, 7);
	assert_int_equal(access(scratch_path(*state, SCRATCH_EPOCH "/box/.bad-2-callpaths"), F_OK),
			 0);
	profdb_close(db);
}

static void test_the_next_daemon_goes_on(void **state)
{
	struct profdb *db = scratch_writer(*state);
	char epoch[PROFDB_EPOCH_LEN + 1];

	flush(db, 1);
	profdb_close(db);
	db = scratch_open(*state, false);
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	assert_int_equal(profdb_epoch_resume(db, epoch, NULL), 0);
	flush(db, 2);
	is_sum(db, 3);
	profdb_close(db);
}

static void test_what_has_no_room_is_refused(void **state)
{
	struct profdb *db = scratch_writer(*state);

	flush(db, UINT64_MAX - 1);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(scratch_put_callpaths(db, 2), -DCPI_EOVERFLOW);
	assert_int_equal(scratch_put_callpaths(db, 1), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	is_sum(db, UINT64_MAX);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_visible_at_commit),
		scratch_test(test_is_no_profile),
		scratch_test(test_a_damaged_file_is_moved_aside),
		scratch_test(test_the_next_daemon_goes_on),
		scratch_test(test_what_has_no_room_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
