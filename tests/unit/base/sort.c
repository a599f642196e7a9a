/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base.h"

enum { NR_MAX = 5000 };

static struct base_sort_item items[2 * NR_MAX];
static char places[NR_MAX]; /* where the items came from */

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* @nr of them, of keys that differ in the bits of @mask alone. */
static void sort_some(size_t nr, uint64_t mask)
{
	uint64_t state = 88172645463325252u, sum = 0, same = next_random(&state);
	const struct base_sort_item *v;

	for (size_t i = 0; i < nr; i++) {
		uint64_t key = (same & ~mask) | (next_random(&state) & mask);

		items[i] = (struct base_sort_item){ key, &places[i] };
		sum += key;
	}
	v = base_sort(items, items + nr, nr);
	assert_true(v == items || v == items + nr);
	for (size_t i = 0; i < nr; i++) {
		sum -= v[i].key;
		if (!i)
			continue;
		assert_true(v[i - 1].key <= v[i].key);
		/* None is there twice, so that all are there. */
		if (v[i - 1].key == v[i].key)
			assert_true((const char *)v[i - 1].of < (const char *)v[i].of);
	}
	assert_true(sum == 0);
}

static void any_number_of_any_keys(void **state)
{
	static const size_t nrs[] = { 0, 1, 2, 63, 64, 65, NR_MAX };
	static const uint64_t masks[] = {
		0, 0xf, 0x7ff, 0x1f000, UINT64_C(0xff) << 40, UINT64_C(3) << 62, UINT64_MAX
	};

	(void)state;
	for (size_t i = 0; i < sizeof(nrs) / sizeof(*nrs); i++)
		for (size_t k = 0; k < sizeof(masks) / sizeof(*masks); k++)
			sort_some(nrs[i], masks[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_number_of_any_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
