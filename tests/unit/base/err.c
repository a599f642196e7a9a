/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

static void texts(void **state)
{
	(void)state;
	assert_string_equal(base_strerror(-ENOENT), strerror(ENOENT));
	assert_string_equal(base_strerror(EACCES), strerror(EACCES));
	assert_string_equal(base_strerror(-DCPI_EFORMAT), "malformed data");
	assert_string_equal(base_strerror(DCPI_EUNSUPPORTED), "not supported on this machine");
	assert_string_equal(base_strerror(DCPI_ERROR_BASE), "unknown error");
	assert_string_equal(base_strerror(-DCPI_ERROR_END), "unknown error");
	assert_string_equal(base_strerror(INT_MIN), "unknown error");
	assert_string_equal(base_strerror(INT_MAX), "unknown error");
	for (int code = DCPI_ERROR_BASE + 1; code < DCPI_ERROR_END; code++)
		assert_true(strlen(base_strerror(code)) > 5);
}

static void first_cause_wins(void **state)
{
	struct base_err err = { 0 };

	(void)state;
	base_hint(&err, "a hint to nothing");
	assert_string_equal(err.hint, "");
	assert_int_equal(base_fail(&err, -EINVAL, "bad '%s'", "x"), -EINVAL);
	base_hint(&err, "try %d", 1);
	assert_int_equal(base_fail(&err, -EIO, "later"), -EIO);
	assert_int_equal(base_fail_errno(&err, -EIO, "later"), -EIO);
	base_hint(&err, "try %d", 2);
	assert_int_equal(err.code, -EINVAL);
	assert_string_equal(err.text, "bad 'x'");
	assert_string_equal(err.hint, "try 1");
}

static void cause_is_appended(void **state)
{
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(base_fail_errno(&err, -EACCES, "cannot open '%s'", "/x"), -EACCES);
	assert_string_equal(err.text, "cannot open '/x': Permission denied");
}

static void null_is_allowed(void **state)
{
	(void)state;
	assert_int_equal(base_fail(NULL, -EIO, "x"), -EIO);
	assert_int_equal(base_fail_errno(NULL, -EIO, "x"), -EIO);
	base_hint(NULL, "x");
}

static void long_message_keeps_its_cause(void **state)
{
	struct base_err err = { 0 };
	char name[2000];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	base_fail_errno(&err, -DCPI_ECHECKSUM, "cannot open '%s'", name);
	base_hint(&err, "%s", name);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_non_null(strstr(err.text, "n: checksum mismatch"));
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
}

static void control_characters_do_not_pass(void **state)
{
	struct base_err err = { 0 };

	(void)state;
	base_fail(&err, -EIO, "no '%s'", "a\nb\033[1m\177é");
	assert_string_equal(err.text, "no 'a?b?[1m?é'");
}

static void print(const struct base_err *err, const char *expected)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	base_err_print(err, "prog", f);
	fclose(f);
	assert_string_equal(text, expected);
	free(text);
}

static void printing(void **state)
{
	struct base_err err = { 0 };

	(void)state;
	base_fail(&err, -EIO, "it failed");
	print(&err, "prog: it failed\n");
	base_hint(&err, "look there");
	print(&err, "prog: it failed\nhint: look there\n");
	print(&(struct base_err){ .code = -DCPI_EBUSY }, "prog: in use by another daemon\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(first_cause_wins),
		cmocka_unit_test(cause_is_appended),
		cmocka_unit_test(null_is_allowed),
		cmocka_unit_test(long_message_keeps_its_cause),
		cmocka_unit_test(control_characters_do_not_pass),
		cmocka_unit_test(printing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
