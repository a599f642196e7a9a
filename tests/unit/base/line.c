/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of texts that are read line by line, and of those that end with a checksum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "line.h"

static void takes_each_line(void **state)
{
	struct base_lines l;

	(void)state;
	assert_int_equal(base_lines_open(&l, "one\n\nthree", 10), 0);
	assert_string_equal(base_lines_next(&l), "one");
	assert_int_equal(l.number, 1);
	assert_string_equal(base_lines_next(&l), "");
	assert_false(l.cut);
	assert_string_equal(base_lines_next(&l), "three");
	assert_true(l.cut);
	assert_int_equal(l.number, 3);
	assert_null(base_lines_next(&l));
	assert_null(base_lines_next(&l));
	base_lines_close(&l);
	assert_int_equal(base_lines_open(&l, "", 0), 0);
	assert_null(base_lines_next(&l));
	base_lines_close(&l);
}

static void tells_the_line_with_a_nul(void **state)
{
	static const struct {
		const char *text;
		size_t len, number;
	} bad[] = { { "\0", 1, 1 }, { "a\0\n", 3, 1 }, { "a\n\0", 3, 2 }, { "a\n\nb\0c\n", 7, 3 } };
	struct base_lines l;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(base_lines_open(&l, bad[i].text, bad[i].len), -DCPI_EFORMAT);
		assert_int_equal(l.number, bad[i].number);
		base_lines_close(&l);
	}
}

static int sealed(const void *text, size_t len)
{
	struct base_lines l;
	int r = base_lines_sealed(&l, "first 1", text, len);

	if (r >= 0) {
		assert_string_equal(base_lines_next(&l), "second");
		assert_int_equal(l.number, 2);
		assert_null(base_lines_next(&l));
	}
	base_lines_close(&l);
	return r;
}

static void seals(void **state)
{
	struct base_buf b = { 0 };

	(void)state;
	assert_int_equal(base_buf_printf(&b, "first 1\nsecond\n"), 0);
	assert_int_equal(base_buf_seal(&b), 0);
	assert_int_equal(sealed(b.data, b.len), 0);
	for (size_t i = 0; i < b.len; i++) {
		assert_true(sealed(b.data, i) < 0);
		b.data[i] ^= 1;
		assert_int_equal(sealed(b.data, b.len),
				 i < strlen("first 1\n") ? -DCPI_EVERSION : -DCPI_ECHECKSUM);
		b.data[i] ^= 1;
	}
	assert_int_equal(sealed("", 0), -DCPI_EVERSION);
	assert_int_equal(sealed("first 1\n", 8), -DCPI_ECHECKSUM);
	base_buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_each_line),
		cmocka_unit_test(tells_the_line_with_a_nul),
		cmocka_unit_test(seals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
