/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "exclude.h"
#include "stand_ins.h"

static int parse(struct exclude *x, const char *text, struct base_err *err)
{
	*err = (struct base_err){ 0 };
	return exclude_parse(x, text, strlen(text), "f", err);
}

static void good(void **state)
{
	struct exclude x = { 0 };
	struct base_err err;

	(void)state;
	assert_int_equal(parse(&x,
			       "# all of it\n\n  libc.so.6 \t# a library\r\nmy program\n"
			       "PID 12\nPID\t100-102\nPIDGIN\nPID",
			       &err),
			 0);
	assert_true(exclude_has_image(&x, "/usr/lib/libc.so.6"));
	assert_true(exclude_has_image(&x, "my program"));
	assert_true(exclude_has_image(&x, "/opt/PIDGIN"));
	assert_true(exclude_has_image(&x, "PID"));
	assert_false(exclude_has_image(&x, "/usr/lib/libc.so.60"));
	assert_false(exclude_has_image(&x, "/libc.so.6/x"));
	assert_false(exclude_has_image(&x, ""));
	for (int32_t pid = 1; pid < 200; pid++)
		assert_int_equal(exclude_has_pid(&x, pid), pid == 12 || (pid >= 100 && pid <= 102));
	exclude_release(&x);
	assert_int_equal(parse(&x, "PID 1-2147483647", &err), 0);
	assert_true(exclude_has_pid(&x, INT32_MAX));
	exclude_release(&x);
}

static void bad(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "a\n\nPID x\n", "'f', line 3: no number or range of processes" },
		{ "PID 0", "line 1: no number" },
		{ "PID -5", "line 1: no number" },
		{ "PID 5-", "line 1: no number" },
		{ "PID 5-4", "line 1: no number" },
		{ "PID 5 6", "line 1: no number" },
		{ "PID 2147483648", "line 1: no number" },
		{ "PID 5\n/usr/bin/a", "line 2: a path instead of a short name" },
		{ "a\001b", "line 1: a byte that is no text" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct exclude x = { 0 };
		struct base_err err;

		assert_int_equal(parse(&x, cases[i].text, &err), -DCPI_EUSAGE);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, err.text);
		exclude_release(&x);
	}
}

static void bounds(void **state)
{
	char *text = malloc(EXCLUDE_FILE_MAX + 1);
	struct exclude x = { 0 };
	struct base_err err = { 0 };

	(void)state;
	memset(text, 'a', EXCLUDE_FILE_MAX + 1);
	assert_int_equal(exclude_parse(&x, text, EXCLUDE_FILE_MAX + 1, "f", &err), -DCPI_ELIMIT);
	assert_int_equal(exclude_parse(&x, text, EXCLUDE_NAME_MAX + 1, "f", NULL), -DCPI_EUSAGE);
	assert_int_equal(exclude_parse(&x, text, EXCLUDE_NAME_MAX, "f", NULL), 0);
	assert_int_equal(exclude_parse(&x, "a\0b", 3, "f", NULL), -DCPI_EUSAGE);
	exclude_release(&x);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(bad),
		cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
