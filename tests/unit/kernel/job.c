/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel.h"

/* What a file's name tells is what it was made of. */
static void test_file_names(void **state)
{
	const struct base_id ids[] = {
		{ 20, { 0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xff } },
		{ 8, { 0xcd, 1, 2, 3, 4, 5, 6, 7 } },
	};
	char name[256];
	struct base_id id;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		size_t len = ids[i].len < KERNEL_FILE_ID ? ids[i].len : KERNEL_FILE_ID;

		kernel_file_name(name, sizeof(name), "a-b c/d.ko", &ids[i], "code");
		assert_memory_equal(name, "a-b_c_d.ko-", 11);
		assert_int_equal(kernel_file_id(name, &id), 10);
		assert_int_equal(id.len, len);
		assert_memory_equal(id.bytes, ids[i].bytes, len);
	}
}

static void test_other_names(void **state)
{
	static const char *const others[] = {
		"",	      "README",
		"-",	      "x-",
		"x-.elf",     "x-abc.elf",
		"x-abcd.o",   "-abcd.elf",
		"x.elf-abcd", "x-0123456789abcdef01234.elf",
		"x-none.elf", "x-0123456789abcdef0123ff.elf",
	};
	struct base_id id;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_int_equal(kernel_file_id(others[i], &id), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_names),
		cmocka_unit_test(test_other_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
