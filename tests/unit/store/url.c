/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of stores, and files of credentials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store.h"

static void check(const char *text, const char *server, const char *database, const char *user)
{
	struct base_err err = { 0 };
	struct store_url u;

	if (store_url_parse(text, &u, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	assert_string_equal(u.server, server);
	assert_string_equal(u.database, database);
	if (user)
		assert_string_equal(u.user, user);
	else
		assert_null(u.user);
	store_url_release(&u);
}

static void test_good(void **state)
{
	(void)state;
	check("clickhouse://db.example/dcpi", "http://db.example:8123/", "dcpi", NULL);
	check("clickhouses://db.example/dcpi", "https://db.example:8443/", "dcpi", NULL);
	check("clickhouse://ann@10.0.0.7:9999/a_1", "http://10.0.0.7:9999/", "a_1", "ann");
	check("clickhouse://[::1]/d", "http://[::1]:8123/", "d", NULL);
	check("clickhouse://[::1]:81/d", "http://[::1]:81/", "d", NULL);
}

static void test_bad(void **state)
{
	static const char *const bad[] = {
		"http://x/y",	      "clickhouse://",	      "clickhouse://host",
		"clickhouse:///d",    "clickhouse://h/",      "clickhouse://h/a b",
		"clickhouse://h/a;b", "clickhouse://u:p@h/d", "clickhouse://h\\x/d",
		"clickhouse://h/d/e", "clickhouse://h?x=1/d", "clickhouse://h/d?x",
		"/a/folder",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct base_err err = { 0 };
		struct store_url u;

		if (store_url_parse(bad[i], &u, &err) != -DCPI_EUSAGE)
			fail_msg("%s is taken", bad[i]);
		assert_true(err.text[0] && err.hint[0]);
		assert_null(u.server);
	}
	assert_true(store_is_url("clickhouses://x") && !store_is_url("clickhouse"));
}

/* Passwords come from a file that nobody else may read. */
static void test_credentials(void **state)
{
	char path[] = "/tmp/dcpi-credentials-XXXXXX";
	struct base_err err = { 0 };
	struct store_server *s = NULL;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(dprintf(fd, "ann:secret\n"), 11);
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_equal(store_open("clickhouse://h/d", path, &s, &err), -EPERM);
	assert_non_null(strstr(err.hint, "chmod 600"));
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(store_open("clickhouse://h/d", path, &s, NULL), 0);
	store_close(s);
	close(fd);
	unlink(path);
	err = (struct base_err){ 0 };
	assert_int_equal(store_open("clickhouse://h/d", path, &s, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_credentials),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
