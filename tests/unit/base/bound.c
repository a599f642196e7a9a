/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests that a binary search finds what a walk through the array finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bound.h"

struct item {
	char tag;
	uint64_t addr;
};

static size_t walk(const struct item *v, size_t nr, uint64_t key, bool upper)
{
	size_t i = 0;

	while (i < nr && (upper ? v[i].addr <= key : v[i].addr < key))
		i++;
	return i;
}

static void finds_as_a_walk_does(void **state)
{
	static const struct item v[] = { { 'a', 0 }, { 'b', 3 }, { 'c', 3 },
					 { 'd', 3 }, { 'e', 8 }, { 'f', UINT64_MAX } };
	static const uint64_t keys[] = { 0, 1, 2, 3, 4, 8, 9, UINT64_MAX - 1, UINT64_MAX };

	(void)state;
	for (size_t nr = 0; nr <= sizeof(v) / sizeof(*v); nr++) {
		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
			assert_int_equal(BASE_UPPER_BOUND(v, nr, addr, keys[k]),
					 walk(v, nr, keys[k], true));
			assert_int_equal(BASE_LOWER_BOUND(v, nr, addr, keys[k]),
					 walk(v, nr, keys[k], false));
		}
	}
}

static void keys_may_be_expressions(void **state)
{
	static const uint32_t v[] = { 2, 4, 6 };

	(void)state;
	assert_int_equal(BASE_BOUND(i, 3, v[i] * 2 < 8), 1);
	assert_int_equal(BASE_BOUND(i, 3, v[i] * 2 <= 8), 2);
	assert_int_equal(BASE_BOUND(i, 3, true), 3);
	assert_int_equal(BASE_BOUND(i, 3, false), 0);
}

static void an_empty_array_may_be_null(void **state)
{
	const struct item *none = NULL;

	(void)state;
	assert_int_equal(BASE_UPPER_BOUND(none, 0, addr, 5), 0);
	assert_int_equal(BASE_LOWER_BOUND(none, 0, addr, 5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_as_a_walk_does),
		cmocka_unit_test(keys_may_be_expressions),
		cmocka_unit_test(an_empty_array_may_be_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
