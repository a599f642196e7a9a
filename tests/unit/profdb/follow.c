/* SPDX-License-Identifier: BSD-2-Clause */
/* Two platforms of one database turn their epochs together. */
#include <errno.h>
#include <time.h>

#include "scratch.h"

static char epoch[PROFDB_EPOCH_LEN + 1];

static struct profdb *writer(const char *dir, const char *platform)
{
	struct profdb *db = scratch_open(dir, true);

	assert_int_equal(profdb_lock(db, platform, NULL), 0);
	return db;
}

static void turns(struct profdb *db, int64_t now, const char *want)
{
	struct base_err err = { 0 };

	if (profdb_epoch_turn(db, now, epoch, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(epoch, want);
}

static void follows(struct profdb *db, int64_t now, const char *want)
{
	struct base_err err = { 0 };

	strcpy(epoch, "");
	assert_int_equal(profdb_epoch_follow(db, now, epoch, &err), *want ? 1 : 0);
	assert_string_equal(epoch, want);
}

static void test_the_other_follows(void **state)
{
	struct profdb *a = writer(*state, "a"), *b = writer(*state, "b");
	int64_t now = (int64_t)time(NULL) / 60 * 60;
	char first[PROFDB_EPOCH_LEN + 1], second[PROFDB_EPOCH_LEN + 1], third[PROFDB_EPOCH_LEN + 1];

	follows(a, now, "");
	assert_int_equal(profdb_epoch_turn(a, now, first, NULL), 0);
	/* Who has none yet comes into the one that is open; nobody follows himself. */
	follows(b, now + 5, first);
	follows(b, now + 6, "");
	follows(a, now + 6, "");
	assert_true(profdb_epoch_open(a, first, "b"));
	/* Whose clock lags behind, or is ahead, turns to a later name all the same. */
	assert_int_equal(profdb_epoch_turn(b, now - 600, second, NULL), 0);
	assert_true(strcmp(second, first) > 0);
	follows(a, now + 7, second);
	assert_false(profdb_epoch_open(a, first, "a"));
	assert_int_equal(profdb_epoch_turn(a, now + 3600, third, NULL), 0);
	/* The newest alone. */
	assert_int_equal(profdb_epoch_turn(a, now, third, NULL), 0);
	follows(b, now, third);
	/* Finished by a before b looked: b goes there all the same. */
	assert_int_equal(profdb_epoch_turn(a, now, third, NULL), 0);
	assert_int_equal(profdb_epoch_finish(a, NULL), 0);
	follows(b, now, third);
	/* Finished ones are not written again. */
	follows(a, now, "");
	profdb_close(a);
	profdb_close(b);
}

static void test_who_starts_comes_into_no_old_epoch(void **state)
{
	struct profdb *a = writer(*state, "a"), *b = writer(*state, "b");
	int64_t now = (int64_t)time(NULL);

	assert_int_equal(profdb_epoch_turn(a, now, epoch, NULL), 0);
	/* The daemon of a died in it, and b starts two days later. */
	follows(b, now + 2 * 86400, "");
	/* Or its epoch is over. */
	assert_int_equal(profdb_epoch_finish(a, NULL), 0);
	follows(b, now, "");
	profdb_close(a);
	profdb_close(b);
}

static void test_what_nobody_turned_is_not_followed(void **state)
{
	struct profdb *a = writer(*state, "a"), *b = writer(*state, "b");

	turns(b, SCRATCH_NOW, SCRATCH_EPOCH);
	/* By hand, of one's own (as dcpirun's and a replay's are), and of a clock gone wild. */
	mkdir(scratch_path(*state, "202611200800"), 0755);
	mkdir(scratch_path(*state, "202611200800/c"), 0755);
	assert_int_equal(profdb_epoch_start(a, SCRATCH_NOW + 60, epoch, NULL), 0);
	follows(b, SCRATCH_NOW + 61, "");
	assert_int_equal(profdb_epoch_turn(a, SCRATCH_NOW + 3 * 86400, epoch, NULL), 0);
	follows(b, SCRATCH_NOW + 61, "");
	/* Nor does its name count for the next one. */
	turns(b, SCRATCH_NOW + 120, "20261120080001");
	profdb_close(a);
	profdb_close(b);
}

/* The machine's clock was set back by hours: epochs stay in the order in which they were made. */
static void test_no_name_ahead_of_the_clock(void **state)
{
	struct profdb *a = writer(*state, "a"), *b = writer(*state, "b");

	turns(a, SCRATCH_NOW, SCRATCH_EPOCH);
	turns(a, SCRATCH_NOW + 1, "20261120075411");
	turns(b, SCRATCH_NOW + 20, "20261120075430");
	follows(a, SCRATCH_NOW + 21, "20261120075430");
	turns(a, SCRATCH_NOW + 50, "202611200755");
	follows(b, SCRATCH_NOW + 50, "202611200755");
	turns(b, SCRATCH_NOW + 50, "20261120075500");
	profdb_close(a);
	profdb_close(b);
}

static void test_the_clock_goes_back(void **state)
{
	struct profdb *a = writer(*state, "a");

	turns(a, SCRATCH_NOW, SCRATCH_EPOCH);
	turns(a, SCRATCH_NOW - 7200, "20261120075401");
	turns(a, SCRATCH_NOW - 80000, "20261120075402");
	turns(a, SCRATCH_NOW + 3600, "202611200854");
	turns(a, SCRATCH_NOW, "20261120085401");
	profdb_close(a);
}

/* Where the next epoch cannot be made, the one before goes on. */
static void test_no_room_for_an_epoch(void **state)
{
	struct profdb *a = writer(*state, "a");

	turns(a, SCRATCH_NOW, SCRATCH_EPOCH);
	scratch_write(*state, "202611200755", "no folder", 9);
	assert_true(profdb_epoch_turn(a, SCRATCH_NOW + 60, epoch, NULL) < 0);
	assert_true(profdb_epoch_open(a, SCRATCH_EPOCH, "a"));
	assert_int_equal(profdb_flush_begin(a, NULL), 0);
	scratch_put(a, "prog", 1, 1);
	assert_int_equal(profdb_flush_commit(a, NULL), 0);
	profdb_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_the_other_follows),
		scratch_test(test_who_starts_comes_into_no_old_epoch),
		scratch_test(test_what_nobody_turned_is_not_followed),
		scratch_test(test_no_name_ahead_of_the_clock),
		scratch_test(test_the_clock_goes_back),
		scratch_test(test_no_room_for_an_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
