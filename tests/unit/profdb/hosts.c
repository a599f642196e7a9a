/* SPDX-License-Identifier: BSD-2-Clause */
#include "scratch.h"

static const char good[] = "# our machines\n"
			   "web\tweb1 web2.example.org   # the old ones too\r\n"
			   "\n"
			   "ci    runner-* web1\n"
			   "build b[0-9]";

static int find(const char *text, const char *host, char platform[PROFDB_PLATFORM_MAX + 1])
{
	strcpy(platform, "-");
	return profdb_hosts_find(text, strlen(text), host, platform, NULL);
}

static void test_finds(void **state)
{
	static const char *const found[][2] = {
		{ "web1", "web" },    { "WEB1.example.org", "web" }, { "web2.example.org", "web" },
		{ "runner-4", "ci" }, { "runner-4.local", "ci" },    { "b7", "build" },
	};
	static const char *const none[] = { "web2", "web", "web11", "runner", "bx", "#", "" };
	char platform[PROFDB_PLATFORM_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
		assert_int_equal(find(good, found[i][0], platform), 1);
		assert_string_equal(platform, found[i][1]);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(find(good, none[i], platform), 0);
	assert_int_equal(find("", "web1", platform), 0);
}

static void test_nonsense(void **state)
{
	static const char *const bad[] = { "alone\n",	     "a/b host\n",
					   ".hidden host\n", "ok host\nweb w\001b\n",
					   "web: web1/2\n",  "{}\n",
					   "web web[1\n",    "web web1]\n",
					   "web web[[1]]\n", "web web[]\n" };
	char platform[PROFDB_PLATFORM_MAX + 1];
	struct base_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(find(bad[i], "host", platform), -DCPI_EFORMAT);
	assert_int_equal(profdb_hosts_find("a b\n\0c d\n", 9, "b", platform, &err), -DCPI_EFORMAT);
	assert_string_equal(err.text, "line 2: not text");
}

static void platform_is(struct profdb *db, const char *host, const char *want, int listed)
{
	char platform[PROFDB_PLATFORM_MAX + 1];

	assert_int_equal(profdb_platform_of(db, host, platform, NULL), listed);
	assert_string_equal(platform, want);
}

static void test_a_database(void **state)
{
	char platform[PROFDB_PLATFORM_MAX + 1];
	struct base_err err = { 0 };
	struct profdb *db;

	/* It may be there before any daemon. */
	scratch_write(*state, "hosts", good, strlen(good));
	db = scratch_open(*state, true);
	platform_is(db, "web1", "web", 1);
	platform_is(db, "other.example.org", "other.example.org", 0);
	platform_is(db, "o/ther", "o_ther", 0);
	platform_is(db, ".x", "_x", 0);
	platform_is(db, "", "localhost", 0);
	scratch_write(*state, "hosts", "web\n", 4);
	assert_int_equal(profdb_platform_of(db, "web1", platform, &err), -DCPI_EFORMAT);
	assert_non_null(strstr(err.text, "/hosts': line 1: no hosts for platform 'web'"));
	assert_true(err.hint[0]);
	unlink(scratch_path(*state, "hosts"));
	platform_is(db, "web1", "web1", 0);
	assert_int_equal(mkfifo(scratch_path(*state, "hosts"), 0600), 0);
	assert_true(profdb_platform_of(db, "web1", platform, NULL) < 0);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds),
		cmocka_unit_test(test_nonsense),
		scratch_test(test_a_database),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
