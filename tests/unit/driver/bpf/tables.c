/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables exchanged where the kernel does not wait for its programs: no kernel is needed for that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bpf_internal.h"

static void add(void *ctx, const struct count_entry *e)
{
	*(uint64_t *)ctx += e->count;
}

static uint64_t sum(const union count_bucket *table, const struct count_shape *s)
{
	uint64_t counts = 0;

	count_walk(table, s, add, &counts);
	return counts;
}

/* A program that its host stopped counts behind the clearing. */
static void late_count_is_found_with_the_next_set(void **state)
{
	const struct count_key early = { 1, 0x2000, 7, 0, COUNT_WHAT(0, 0) };
	const struct count_key late = { 1, 0x1000, 7, 0, COUNT_WHAT(0, 0) };
	struct sample_shared shared = { 0 };
	struct bpf_tables t;
	union count_bucket *old;

	(void)state;
	assert_int_equal(bpf_tables_init(&t, 64, 1), 0);
	t.shared = &shared;
	t.gate_fd = 1000000; /* nothing is there */
	t.all = calloc(t.nr_elements, sizeof(*t.all));
	assert_non_null(t.all);
	assert_true(bpf_tables_swap(&t, 1, 0) < 0);
	old = bpf_tables_old(&t, 0);
	assert_true(count_sample(old, &t.shape, &early, false, 1));
	count_clear(old, &t.shape);
	assert_int_equal(sum(old, &t.shape), 0);
	assert_true(count_sample(old, &t.shape, &late, false, 1));
	assert_true(bpf_tables_swap(&t, 2, 0) < 0);
	assert_false(count_sample(old, &t.shape, &late, false, 2));
	assert_true(bpf_tables_swap(&t, 3, 0) < 0);
	assert_ptr_equal(bpf_tables_old(&t, 0), old);
	assert_int_equal(sum(old, &t.shape), 2);
	free(t.all);
}

/* It may have read a word of bits before the clearing, and store it behind. */
static void bits_brought_back_tell_of_nothing(void **state)
{
	const struct count_shape s = count_shape_of(64);
	union count_bucket *table = calloc(count_nr_elements(&s), sizeof(*table));
	union count_bucket bits;

	(void)state;
	assert_non_null(table);
	for (uint64_t i = 0; i < 8; i++) {
		const struct count_key k = { 1, 0x1000 + i, 7, 0, COUNT_WHAT(0, 0) };

		assert_true(count_sample(table, &s, &k, false, 1));
	}
	assert_int_equal(sum(table, &s), 8);
	bits = table[COUNT_USED];
	count_clear(table, &s);
	table[COUNT_USED] = bits;
	assert_int_equal(sum(table, &s), 0);
	free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_count_is_found_with_the_next_set),
		cmocka_unit_test(bits_brought_back_tell_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
