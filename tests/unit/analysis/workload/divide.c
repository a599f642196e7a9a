/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples are divided in proportion, and their sum stays exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workload.h"

enum { NR = 4 };

static void check(const uint64_t *count, uint64_t total, const uint64_t *expected)
{
	uint64_t share[NR], rest[NR];

	workload_divide(count, NR, total, share, rest);
	for (size_t i = 0; i < NR; i++)
		assert_int_equal(share[i], expected[i]);
}

static void test_divide(void **state)
{
	(void)state;
	check((uint64_t[]){ 5, 0, 3, 2 }, 10, (uint64_t[]){ 5, 0, 3, 2 });
	check((uint64_t[]){ 5, 0, 3, 2 }, 0, (uint64_t[]){ 0, 0, 0, 0 });
	check((uint64_t[]){ 1, 1, 1, 1 }, 2, (uint64_t[]){ 1, 1, 0, 0 });
	check((uint64_t[]){ 1, 1, 9, 1 }, 1, (uint64_t[]){ 0, 0, 1, 0 });
	check((uint64_t[]){ 50, 30, 15, 5 }, 7, (uint64_t[]){ 4, 2, 1, 0 });
	check((uint64_t[]){ 0, 0, 0, 0 }, 7, (uint64_t[]){ 0, 0, 0, 0 });
	check((uint64_t[]){ UINT64_MAX / 2, UINT64_MAX / 2, 0, 0 }, 3, (uint64_t[]){ 2, 1, 0, 0 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_divide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
