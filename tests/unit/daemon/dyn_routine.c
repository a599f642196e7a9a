/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jit_internal.h"

static uint32_t add(struct dyn_routines *t, uint64_t addr, uint32_t len)
{
	uint32_t hash = dyn_routine_hash(t, addr, len, "", 0), i;

	assert_int_equal(dyn_routine_new(t, hash, &i), 0);
	dyn_routine_get(t, i)->addr = addr;
	dyn_routine_get(t, i)->len = len;
	return i;
}

static void test_table(void **state)
{
	enum { NR = 5000 };
	struct dyn_routines t = { 0 };
	uint32_t again;

	(void)state;
	assert_int_equal(sizeof(struct dyn_routine), 52);
	assert_int_equal(dyn_routine_bucket(&t, 5), 0);
	for (uint32_t i = 1; i <= NR; i++)
		assert_int_equal(add(&t, i * 16, 8), i);
	/* Each is found by its hash. */
	for (uint32_t i = 1; i <= NR; i++) {
		uint32_t at = dyn_routine_bucket(&t, dyn_routine_get(&t, i)->hash);

		while (at != i) {
			assert_int_not_equal(at, 0);
			at = dyn_routine_get(&t, at)->next;
		}
	}
	dyn_routine_drop(&t, 7);
	dyn_routine_drop(&t, NR);
	assert_int_equal(t.nr_used, NR - 2);
	again = add(&t, 3, 3);
	assert_int_equal(again, NR);
	assert_int_equal(add(&t, 3, 3), 7);
	assert_int_equal(add(&t, 3, 3), NR + 1);
	dyn_routine_release(&t);
}

/* Against a plain array. */
static void test_tree(void **state)
{
	enum { NR = 2000 };
	static uint32_t at[NR];
	struct dyn_routines t = { 0 };
	uint32_t root = 0;
	uint64_t x = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t i;

		x = x * 6364136223846793005ull + 1442695040888963407ull;
		i = (x >> 33) % NR;
		if (at[i]) {
			dyn_routine_remove(&t, &root, at[i]);
			dyn_routine_drop(&t, at[i]);
			at[i] = 0;
		} else {
			at[i] = add(&t, 0x1000 + i * 32, 1 + (uint32_t)(x >> 60));
			dyn_routine_insert(&t, &root, at[i]);
		}
	}
	for (size_t i = 0, next = 0; i < NR; i++) {
		uint64_t addr = 0x1000 + i * 32;
		uint32_t len = at[i] ? dyn_routine_get(&t, at[i])->len : 0;

		assert_int_equal(dyn_routine_find(&t, root, addr), at[i]);
		if (len)
			assert_int_equal(dyn_routine_find(&t, root, addr + len - 1), at[i]);
		assert_int_equal(dyn_routine_find(&t, root, addr + len), 0);
		assert_int_equal(dyn_routine_overlap(&t, root, addr, addr + 1), at[i]);
		for (next = i; next < NR && !at[next]; next++)
			;
		assert_int_equal(dyn_routine_overlap(&t, root, addr, UINT64_MAX),
				 next < NR ? at[next] : 0);
	}
	dyn_routine_release(&t);
}

/* The place of one that has gone may be taken by another, which is never told of its address. */
static void test_living(void **state)
{
	enum { NR = 2000 };
	static uint32_t at[NR];
	struct dyn_routines t = { 0 };
	uint64_t x = 1;

	(void)state;
	assert_int_equal(dyn_routine_living(&t, 0x1000), 0);
	for (int round = 0; round < 50000; round++) {
		uint64_t addr;
		size_t i;

		x = x * 6364136223846793005ull + 1442695040888963407ull;
		i = (x >> 33) % NR;
		addr = 0x1000 + i * 32;
		assert_int_equal(dyn_routine_living(&t, addr), at[i]);
		assert_int_equal(dyn_routine_living(&t, addr + 7), at[i]);
		assert_int_equal(dyn_routine_living(&t, addr + 8), 0);
		if (at[i]) {
			dyn_routine_remove(&t, &t.live, at[i]);
			dyn_routine_get(&t, at[i])->flags = 0;
			if (x >> 63)
				dyn_routine_drop(&t, at[i]);
			at[i] = 0;
		} else {
			at[i] = add(&t, addr, 8);
			dyn_routine_get(&t, at[i])->flags = DYN_LIVE;
			dyn_routine_insert(&t, &t.live, at[i]);
		}
		assert_int_equal(dyn_routine_living(&t, addr), at[i]);
	}
	dyn_routine_release(&t);
}

/* Of a long one too, and of one whose place a longer one took. */
static void test_living_long(void **state)
{
	enum { NR = 500, APART = 4096, LEN = 3000 };
	struct dyn_routines t = { 0 };
	uint32_t index[NR];

	(void)state;
	for (uint64_t i = 0; i < NR; i++) {
		uint32_t old = add(&t, i * APART + 100, 20);

		dyn_routine_get(&t, old)->flags = DYN_LIVE;
		dyn_routine_insert(&t, &t.live, old);
		dyn_routine_remove(&t, &t.live, old);
		dyn_routine_get(&t, old)->flags = 0;
		index[i] = add(&t, i * APART + 50, LEN);
		dyn_routine_get(&t, index[i])->flags = DYN_LIVE;
		dyn_routine_insert(&t, &t.live, index[i]);
	}
	for (uint64_t i = 0; i < NR; i++) {
		for (uint64_t at = 0; at < LEN; at += 7)
			assert_int_equal(dyn_routine_living(&t, i * APART + 50 + at), index[i]);
		assert_int_equal(dyn_routine_living(&t, i * APART + 49), 0);
		assert_int_equal(dyn_routine_living(&t, i * APART + 50 + LEN), 0);
	}
	dyn_routine_release(&t);
}

static void test_gaps(void **state)
{
	struct dyn_gaps g = { 0 };

	(void)state;
	assert_int_equal(dyn_gap_first(&g, 0, UINT64_MAX), 0);
	assert_int_equal(dyn_gap_add(&g, 5, 9), 0);
	assert_int_equal(dyn_gap_add(&g, 20, 20), 0);
	assert_int_equal(dyn_gap_add(&g, 21, 22), 0);
	assert_int_equal(dyn_gap_add(&g, 20, 21), 0);
	assert_int_equal(g.nr, 2);
	assert_int_equal(dyn_gap_first(&g, 0, 4), 0);
	assert_int_equal(dyn_gap_first(&g, 0, 5), 5);
	assert_int_equal(dyn_gap_first(&g, 7, 100), 7);
	assert_int_equal(dyn_gap_first(&g, 10, 19), 0);
	assert_int_equal(dyn_gap_first(&g, 10, 20), 20);
	assert_int_equal(dyn_gap_first(&g, 23, UINT64_MAX), 0);
	assert_int_equal(dyn_gap_first(&g, 8, 7), 0);
	assert_int_equal(dyn_gap_last(&g, 0, 4), 0);
	assert_int_equal(dyn_gap_last(&g, 0, 7), 7);
	assert_int_equal(dyn_gap_last(&g, 0, 15), 9);
	assert_int_equal(dyn_gap_last(&g, 10, 15), 0);
	assert_int_equal(dyn_gap_last(&g, 10, UINT64_MAX), 22);
	/* There is room for so many; then less is known, never more. */
	for (uint64_t i = 0; i < 2 * DYN_GAPS_MAX; i++)
		dyn_gap_add(&g, 100 + 4 * i, 101 + 4 * i);
	assert_int_equal(g.nr, DYN_GAPS_MAX);
	assert_int_equal(dyn_gap_first(&g, 0, UINT64_MAX), 5);
	for (uint64_t i = 0; i < 2 * DYN_GAPS_MAX; i++)
		assert_int_equal(dyn_gap_first(&g, 100 + 4 * i, 101 + 4 * i), 100 + 4 * i);
	dyn_gap_release(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),  cmocka_unit_test(test_tree),
		cmocka_unit_test(test_living), cmocka_unit_test(test_living_long),
		cmocka_unit_test(test_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
