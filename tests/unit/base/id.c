/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base.h"

static const char digits64[] = "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef";

static void round_trip(void **state)
{
	char text[BASE_ID_TEXT_LEN];
	struct base_id id;

	(void)state;
	for (size_t len = 2; len <= 64; len += 2) {
		memset(&id, 0xee, sizeof(id));
		assert_int_equal(base_id_parse(&id, digits64, len), 0);
		assert_int_equal(id.len, len / 2);
		base_id_text(&id, text);
		assert_int_equal(strlen(text), len);
		assert_memory_equal(text, digits64, len);
	}
	assert_int_equal(id.bytes[1], 0x11);
	assert_int_equal(id.bytes[31], 0xef);
}

static void refusals(void **state)
{
	struct base_id id = { .len = 1, .bytes = { 0x5a } };

	(void)state;
	assert_int_equal(base_id_parse(&id, "", 0), -EINVAL);
	assert_int_equal(base_id_parse(&id, "abc", 3), -EINVAL);
	assert_int_equal(base_id_parse(&id, "0g", 2), -EINVAL);
	assert_int_equal(base_id_parse(&id, "0x", 2), -EINVAL);
	assert_int_equal(base_id_parse(&id, " 1", 2), -EINVAL);
	assert_int_equal(base_id_parse(&id, "ab\0d", 4), -EINVAL);
	assert_int_equal(base_id_parse(&id, "\xff\xff", 2), -EINVAL);
	assert_int_equal(base_id_parse(&id,
				       "0011223344556677889900112233445566778899"
				       "00112233445566778899001122",
				       66),
			 -EINVAL);
	assert_int_equal(id.len, 1);
	assert_int_equal(id.bytes[0], 0x5a);
}

static void upper_case_and_none(void **state)
{
	struct base_id id = { 0 };
	char text[BASE_ID_TEXT_LEN] = "x";

	(void)state;
	assert_string_equal(base_id_text(&id, text), "");
	assert_int_equal(base_id_parse(&id, "ABcdEF", 6), 0);
	assert_ptr_equal(base_id_text(&id, text), text);
	assert_string_equal(text, "abcdef");
}

static void a_bad_length_stays_inside(void **state)
{
	char text[BASE_ID_TEXT_LEN];
	struct base_id id = { .len = 255 };

	(void)state;
	assert_int_equal(strlen(base_id_text(&id, text)), 64);
	assert_true(base_id_equal(&id, &id));
}

static void names_of_copies(void **state)
{
	static const char *const others[] = {
		"abcd.dyn",  "abcd.filed",    "abcd-.file", "-abcd.file", ".file", "x.file",
		"ab-c.file", "ab-cd-ef.file", "abcd",	    "ab.cd.file", "",	   "ab/cd.file"
	};
	struct base_id id = { .len = 32 }, text = { 0 }, got;
	char name[BASE_COPY_NAME_LEN];

	(void)state;
	for (int i = 0; i < 2; i++) {
		base_copy_name(&id, &text, name);
		assert_int_equal(base_copy_id(name, &got), 0);
		assert_true(base_id_equal(&got, &id));
		text.len = 32;
	}
	assert_int_equal(strlen(name), 64 + 1 + 64 + 5);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_int_equal(base_copy_id(others[i], &got), -EINVAL);
}

static void equality(void **state)
{
	struct base_id a = { .len = 2, .bytes = { 1, 2 } }, b = a;

	(void)state;
	b.bytes[2] = 9; /* beyond its length */
	assert_true(base_id_equal(&a, &b));
	b.bytes[1] = 3;
	assert_false(base_id_equal(&a, &b));
	b = a;
	b.len = 1;
	assert_false(base_id_equal(&a, &b));
	a.len = b.len = 0;
	assert_true(base_id_equal(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),	       cmocka_unit_test(refusals),
		cmocka_unit_test(upper_case_and_none), cmocka_unit_test(a_bad_length_stays_inside),
		cmocka_unit_test(names_of_copies),     cmocka_unit_test(equality),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
