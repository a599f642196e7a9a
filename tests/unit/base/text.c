/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
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
		/* text turned round, and a line's end that is none */
		{ "a\xe2\x80\xae"
		  "b\xe2\x81\xa6"
		  "c\xe2\x80\xa8\xd8\x9c\xef\xbb\xbf",
		  "a?b?c???" },
		{ "\xe2\x80\xa6\xe2\x80\x93", "\xe2\x80\xa6\xe2\x80\x93" }, /* dots and a dash */
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char *text = strdup(pairs[i][0]);

		assert_string_equal(base_text_clean(text), pairs[i][1]);
		free(text);
	}
}

static void test_digit(void **state)
{
	static const char digits[] = "0123456789abcdef", others[] = "/:@GZ`gz -+";

	(void)state;
	for (int i = 0; i < 16; i++) {
		assert_int_equal(base_digit(digits[i]), i);
		assert_int_equal(base_digit((char)toupper(digits[i])), i);
	}
	for (size_t i = 0; i < sizeof(others); i++) /* and the 0 at its end */
		assert_int_equal(base_digit(others[i]), -1);
	assert_int_equal(base_digit('\xb2'), -1);
}

static void test_number(void **state)
{
	static const char *const bad[] = { "",
					   "0x",
					   "-1",
					   "+1",
					   " 1",
					   "1 ",
					   "1a",
					   "0X1",
					   "0xg",
					   "18446744073709551616",
					   "0x10000000000000000" };
	uint64_t n = 7;

	(void)state;
	assert_true(base_number_parse("18446744073709551615", &n) && n == UINT64_MAX);
	assert_true(base_number_parse("0xfFffffffffffffff", &n) && n == UINT64_MAX);
	assert_true(base_number_parse("010", &n) && n == 10);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(base_number_parse(bad[i], &n));
	assert_int_equal(n, 10);
}

static void test_signed(void **state)
{
	int64_t n = 7;

	(void)state;
	assert_true(base_signed_parse("-9223372036854775807", INT64_MIN, INT64_MAX, &n));
	assert_true(n == -INT64_MAX);
	assert_false(base_signed_parse("9223372036854775808", INT64_MIN, INT64_MAX, &n));
	assert_true(base_signed_parse("-0x10", -16, 0, &n) && n == -16);
	assert_false(base_signed_parse("-17", -16, 0, &n));
	assert_false(base_signed_parse("1", -16, 0, &n));
	assert_false(base_signed_parse("--1", -16, 0, &n));
	assert_int_equal(n, -16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_digit),
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_signed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
