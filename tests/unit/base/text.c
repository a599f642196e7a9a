/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base.h"

static void test_clean(void **state)
{
	static const char *const pairs[][2] = {
		{ "plain", "plain" },
		{ "a\nb\tc\x1b[31m\x7f", "a?b?c?[31m?" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\xff\xc3", "??" },		     /* no UTF-8; cut at the end */
		{ "\xc0\xaf\xed\xa0\x80", "?????" }, /* overlong; a surrogate */
		{ "\xc2\x9b", "??" },		     /* a control sequence introducer in one */
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char *text = strdup(pairs[i][0]);

		assert_string_equal(base_text_clean(text), pairs[i][1]);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
