/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

static const char *const names[] = { "202601010000", "202601312359", "202602010000",
				     "202611200754" };

static struct profdb *open_with_epochs(const char *dir)
{
	struct profdb *db = scratch_open(dir, true);

	for (int i = 3; i >= 0; i--)
		assert_int_equal(mkdir(scratch_path(dir, names[i]), 0700), 0);
	return db;
}

static void check(struct profdb *db, const char *spec, int first, int nr)
{
	struct base_err err = { 0 };
	char **list;

	if (profdb_epoch_select(db, spec, &list, &err) < 0)
		fail_msg("'%s': %s", spec ? spec : "NULL", err.text);
	for (int i = 0; i < nr; i++)
		assert_string_equal(list[i], names[first + i]);
	assert_null(list[nr]);
	free(list);
}

static void test_good_ones(void **state)
{
	struct profdb *db = open_with_epochs(*state);

	check(db, NULL, 3, 1);
	check(db, "latest", 3, 1);
	check(db, "all", 0, 4);
	check(db, "202601312359", 1, 1);
	check(db, "202601312359..202602010000", 1, 2);
	check(db, "202601312358..202602010001", 1, 2);
	check(db, "..202601312359", 0, 2);
	check(db, "202602..", 2, 2);
	check(db, "202601..202601", 0, 2);
	check(db, "..", 0, 4);
	profdb_close(db);
}

/* A folder that somebody made by hand hides nobody's samples. */
static void test_the_newest_has_a_platform(void **state)
{
	struct profdb *db = open_with_epochs(*state);

	assert_int_equal(mkdir(scratch_path(*state, "202601312359/box"), 0700), 0);
	check(db, NULL, 1, 1);
	check(db, "latest", 1, 1);
	check(db, "202611200754", 3, 1);
	check(db, "all", 0, 4);
	assert_int_equal(mkdir(scratch_path(*state, "202602010000/box"), 0700), 0);
	check(db, NULL, 2, 1);
	profdb_close(db);
}

/* Nor does one that may not be looked into let an older one pass for the newest. */
static void test_the_newest_may_be_closed_to_us(void **state)
{
	struct profdb *db = open_with_epochs(*state);
	bool root = geteuid() == 0;

	assert_int_equal(mkdir(scratch_path(*state, "202601312359/box"), 0700), 0);
	assert_int_equal(chmod(*state, 0755), 0);
	assert_int_equal(chmod(scratch_path(*state, names[3]), 0), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	check(db, NULL, 3, 1);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(scratch_path(*state, names[3]), 0700), 0);
	profdb_close(db);
}

static void test_bad_ones(void **state)
{
	static const struct {
		const char *spec;
		int want;
	} cases[] = {
		{ "202601010001", -ENOENT }, { "2026", -ENOENT },
		{ "newest", -ENOENT },	     { "", -ENOENT },
		{ "2027..", -ENOENT },	     { "2026..2025", -EINVAL },
		{ "a..b", -EINVAL },	     { "202601010000000..", -EINVAL },
	};
	struct profdb *db = open_with_epochs(*state);
	char **list;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct base_err err = { 0 };

		assert_int_equal(profdb_epoch_select(db, cases[i].spec, &list, &err),
				 cases[i].want);
		assert_null(list);
		if (cases[i].want == -ENOENT)
			assert_non_null(strstr(err.hint, "202601010000 202601312359 202602010000"));
	}
	profdb_close(db);
}

static void test_no_epoch_at_all(void **state)
{
	struct profdb *db = scratch_open(*state, true);
	struct base_err err = { 0 };
	char **list;

	assert_int_equal(profdb_epoch_select(db, NULL, &list, &err), -ENOENT);
	assert_non_null(strstr(err.hint, "dcpid"));
	assert_int_equal(profdb_epoch_select(db, "all", &list, NULL), -ENOENT);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_good_ones),
		scratch_test(test_the_newest_has_a_platform),
		scratch_test(test_the_newest_may_be_closed_to_us),
		scratch_test(test_bad_ones),
		scratch_test(test_no_epoch_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
