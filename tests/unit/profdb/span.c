/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests which time an epoch spans, and which epochs a window of time has a part of. */
#include <fcntl.h>
#include <sys/stat.h>

#include "scratch.h"

enum { MINUTE = 60, HOUR = 3600 };

/* 2026-11-20 07:54:00; the last flush is put @after seconds behind. */
static int64_t begin(void)
{
	return profdb_epoch_begin_time(SCRATCH_EPOCH);
}

static void written(const char *dir, const char *epoch, int64_t at)
{
	const struct timespec times[2] = { { .tv_sec = (time_t)at }, { .tv_sec = (time_t)at } };
	char name[64];

	snprintf(name, sizeof(name), "%s/box/.commit", epoch);
	scratch_write(dir, name, "", 0);
	assert_int_equal(utimensat(AT_FDCWD, scratch_path(dir, name), times, 0), 0);
}

static void spans(struct profdb *db, const char *epoch, int64_t from, int64_t to)
{
	int64_t b, e;

	profdb_epoch_span(db, epoch, &b, &e);
	assert_int_equal(b, from);
	assert_int_equal(e, to);
}

static void test_span(void **state)
{
	struct profdb *db = scratch_writer(*state);
	int64_t at = begin();

	written(*state, SCRATCH_EPOCH, at + HOUR);
	spans(db, SCRATCH_EPOCH, at, at + HOUR + 1);
	/* The clock was set back behind the name. */
	written(*state, SCRATCH_EPOCH, at - HOUR);
	spans(db, SCRATCH_EPOCH, at - HOUR + 1, at + 1);
	/* No tool writes such a file. */
	spans(db, "202611200900", at + HOUR + 6 * MINUTE, at + HOUR + 6 * MINUTE + 1);
	profdb_close(db);
}

static void chooses(struct profdb *db, int64_t since, int64_t until, const char *want)
{
	char **epochs = profdb_epochs(db, NULL), text[64] = "";

	assert_non_null(epochs);
	profdb_epochs_within(db, epochs, since, until);
	for (size_t i = 0; epochs[i]; i++)
		strncat(text, epochs[i] + 8, 5);
	assert_string_equal(text, want);
	free(epochs);
}

static void test_within(void **state)
{
	struct profdb *db = scratch_writer(*state);
	int64_t at = begin();
	char epoch[PROFDB_EPOCH_LEN + 1];

	assert_int_equal(profdb_epoch_start(db, at + HOUR, epoch, NULL), 0);
	assert_string_equal(epoch, "202611200854");
	written(*state, SCRATCH_EPOCH, at + HOUR);
	written(*state, epoch, at + 2 * HOUR);
	chooses(db, INT64_MIN, INT64_MAX, "07540854");
	chooses(db, at, at + 1, "0754");
	chooses(db, at - HOUR, at, "");
	chooses(db, at + HOUR - 1, at + HOUR, "0754");
	chooses(db, at + HOUR, INT64_MAX, "07540854");
	chooses(db, at + HOUR + 1, at + HOUR + 2, "0854");
	chooses(db, at + 2 * HOUR + 1, INT64_MAX, "");
	chooses(db, INT64_MIN, at + HOUR, "0754");
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_span),
		scratch_test(test_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
