/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pseudoimg_internal.h"

static void test_escapes(void **state)
{
	static const struct {
		const char *from;
		size_t len;
		const char *to;
	} cases[] = {
		{ "plain", 5, "plain" },
		{ "", 0, "" },
		{ "a b\\c", 5, "a b\\c" }, /* PHP's and Traces's backslashes stay readable */
		{ "\n\t\r\x1b", 4, "\\n\\t\\r\\x1b" },
		{ "a\0b", 3, "a\\x00b" },
		{ "\x7f", 1, "\\x7f" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
		  "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\xc2\x9b", 2, "\\xc2\\x9b" },		   /* C1: a terminal's CSI */
		{ "\x80\xff", 2, "\\x80\\xff" },		   /* no beginning */
		{ "\xc3", 1, "\\xc3" },				   /* cut */
		{ "\xe2\x82x", 3, "\\xe2\\x82x" },		   /* not continued */
		{ "\xc0\xaf", 2, "\\xc0\\xaf" },		   /* overlong */
		{ "\xe0\x80\xaf", 3, "\\xe0\\x80\\xaf" },	   /* overlong */
		{ "\xed\xa0\x80", 3, "\\xed\\xa0\\x80" },	   /* surrogate */
		{ "\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80" }, /* above the last */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct base_buf b = { 0 };

		assert_int_equal(pseudoimg_name_put(&b, cases[i].from, cases[i].len), 0);
		assert_string_equal((const char *)b.data, cases[i].to);
		assert_int_equal(b.len, strlen(cases[i].to) + 1);
		base_buf_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
