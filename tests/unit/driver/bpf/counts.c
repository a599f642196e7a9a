/* SPDX-License-Identifier: BSD-2-Clause */
/* From tables to counts in order: nothing is lost without a name. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf_internal.h"

static struct count_shape shape;
static union count_bucket *table;
static struct bpf_counts counts;
static struct driver_stats stats;
static struct driver_count seen[64];
static size_t nr_seen, refuse_from;

static int make(void **state)
{
	(void)state;
	shape = count_shape_of(16);
	table = calloc(count_nr_elements(&shape), sizeof(*table));
	stats = (struct driver_stats){ 0 };
	nr_seen = 0;
	refuse_from = SIZE_MAX;
	return table ? 0 : -1;
}

static int clean(void **state)
{
	(void)state;
	bpf_counts_release(&counts);
	free(table);
	return 0;
}

static int see(void *ctx, const struct driver_count *c)
{
	assert_ptr_equal(ctx, &stats);
	if (nr_seen >= refuse_from)
		return -ENOMEM;
	seen[nr_seen++] = *c;
	return 0;
}

static void hand(void)
{
	bpf_counts_hand(&counts, see, &stats, &stats);
	assert_int_equal(counts.nr, 0);
}

static void add(uint64_t addr, uint32_t what, uint64_t time_ns)
{
	const struct count_key k = {
		.instance = 1, .addr = addr, .tgid = 7, .generation = 3, .what = what
	};

	count_sample(table, &shape, &k, false, time_ns);
}

static void counts_come_by_their_last_sample(void **state)
{
	(void)state;
	add(0x10, COUNT_WHAT(0, DRIVER_USER) | COUNT_WHAT_READ, 1);
	add(0x20, COUNT_WHAT(1, DRIVER_KERNEL), 2);
	add(0x30, COUNT_WHAT(0, DRIVER_USER) | COUNT_WHAT_UNREAD, 3);
	add(0x10, COUNT_WHAT(0, DRIVER_USER) | COUNT_WHAT_READ, 4);
	bpf_counts_take(&counts, table, &shape, &stats);
	assert_int_equal(table->head.received[0], 0);
	/* Another CPU's table, older. */
	add(0x40, COUNT_WHAT(2, DRIVER_OTHER), 1);
	bpf_counts_take(&counts, table, &shape, &stats);
	hand();
	assert_int_equal(nr_seen, 4);
	assert_int_equal(seen[0].addr, 0x40);
	assert_int_equal(seen[0].mode, DRIVER_OTHER);
	assert_int_equal(seen[0].event, 2);
	assert_int_equal(seen[1].addr, 0x20);
	assert_int_equal(seen[1].mode, DRIVER_KERNEL);
	assert_int_equal(seen[1].event, 1);
	assert_int_equal(seen[2].addr, 0x30);
	assert_true(seen[2].generation_unread);
	assert_false(seen[2].generation_read);
	assert_int_equal(seen[3].addr, 0x10);
	assert_int_equal(seen[3].count, 2);
	assert_int_equal(seen[3].first_ns, 1);
	assert_int_equal(seen[3].time_ns, 4);
	assert_int_equal(seen[3].pid, 7);
	assert_int_equal(seen[3].generation, 3);
	assert_true(seen[3].generation_read);
	assert_false(seen[1].generation_read);
	assert_false(seen[3].generation_unread);
	assert_int_equal(stats.received[0], 3);
	assert_int_equal(stats.received[1], 1);
	assert_int_equal(stats.received[2], 1);
	assert_int_equal(stats.lost_read, 0);
	/* An empty table has nothing more. */
	bpf_counts_take(&counts, table, &shape, &stats);
	hand();
	assert_int_equal(nr_seen, 4);
}

/* Two processes, and two threads, count apart at one address in the kernel. */
static void kernel_counts_are_of_a_process(void **state)
{
	const uint32_t what = COUNT_WHAT(0, DRIVER_KERNEL);
	const struct count_key keys[] = {
		{ .instance = 5, .addr = 0x10, .tgid = 7, .what = what | COUNT_OF_THREAD(16383) },
		{ .instance = 5, .addr = 0x10, .tgid = 7, .what = what | COUNT_OF_THREAD(1) },
		{ .instance = 6, .addr = 0x10, .tgid = 8, .what = what | COUNT_OF_THREAD(1) },
		{ .addr = 0x10, .what = what },
	};

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		count_sample(table, &shape, &keys[i % 4], false, i + 1);
	bpf_counts_take(&counts, table, &shape, &stats);
	hand();
	assert_int_equal(nr_seen, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(seen[i].count, 2);
		assert_int_equal(seen[i].mode, DRIVER_KERNEL);
		assert_int_equal(seen[i].event, 0);
		assert_int_equal(seen[i].pid, keys[i].tgid);
		assert_int_equal(seen[i].instance, keys[i].instance);
	}
	assert_int_equal(seen[0].thread, 16383);
	assert_int_equal(seen[1].thread, 1);
	assert_int_equal(seen[2].thread, 1);
	assert_int_equal(seen[3].thread, 0);
}

static void losses_of_the_table_are_taken_over(void **state)
{
	uint64_t handed = 0;

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		add(i, 0, i);
	table->head.lost_late++;
	table->head.lost_nested++;
	table->head.received[0] += 2;
	bpf_counts_take(&counts, table, &shape, &stats);
	hand();
	for (size_t i = 0; i < nr_seen; i++)
		handed += seen[i].count;
	assert_true(stats.lost_table > 0);
	assert_int_equal(stats.lost_late, 1);
	assert_int_equal(stats.lost_nested, 1);
	assert_int_equal(stats.received[0], 102);
	assert_int_equal(stats.received[0], handed + stats.lost_table + 2);
}

static void what_is_refused_is_lost_by_name(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 6; i++)
		add(i / 2, 0, i);
	refuse_from = 1;
	bpf_counts_take(&counts, table, &shape, &stats);
	hand();
	assert_int_equal(nr_seen, 1);
	assert_int_equal(stats.lost_read, 4);
	assert_int_equal(stats.received[0], 6);
}

static void head_and_entries_that_disagree_keep_the_law(void **state)
{
	(void)state;
	add(1, 0, 1);
	table->head.received[0] += 5; /* entries that are not there */
	bpf_counts_take(&counts, table, &shape, &stats);
	assert_int_equal(stats.received[0], 6);
	assert_int_equal(stats.lost_read, 5);
	add(1, 0, 1);
	add(2, 0, 1);
	table->head.received[0] = 0; /* entries of which nobody knew */
	bpf_counts_take(&counts, table, &shape, &stats);
	assert_int_equal(stats.received[0], 8);
	hand();
	assert_int_equal(nr_seen, 3);
	assert_int_equal(stats.lost_read, 5);
}

static struct count_entry entries[3000];
static size_t nr_entries;

static int by_time_and_address(const void *a, const void *b)
{
	const struct count_entry *x = a, *y = b;

	if (x->last_ns != y->last_ns)
		return x->last_ns < y->last_ns ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int is_next(void *ctx, const struct driver_count *c)
{
	(void)ctx;
	assert_int_equal(c->time_ns, entries[nr_entries].last_ns);
	assert_int_equal(c->addr, entries[nr_entries].addr);
	nr_entries++;
	return 0;
}

/* As counts lie in a table, in no order; @mask of their times makes many equal. */
static void come_in_order(uint64_t from_ns, uint64_t mask)
{
	enum { NR = sizeof(entries) / sizeof(*entries) };
	uint64_t x = 1;

	for (uint64_t i = 0; i < NR; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		entries[i] = (struct count_entry){ .addr = (i * 7919) % NR,
						   .count = 1,
						   .last_ns = from_ns + (x >> 20 & mask) };
	}
	counts.entries = realloc(counts.entries, sizeof(entries));
	assert_non_null(counts.entries);
	memcpy(counts.entries, entries, sizeof(entries));
	counts.cap = counts.nr = NR;
	qsort(entries, NR, sizeof(*entries), by_time_and_address);
	nr_entries = 0;
	bpf_counts_hand(&counts, is_next, NULL, &stats);
	assert_int_equal(nr_entries, NR);
	assert_int_equal(counts.nr, 0);
	assert_int_equal(stats.lost_read, 0);
}

static void many_come_in_order(void **state)
{
	(void)state;
	come_in_order(5000000000, 0);
	come_in_order(5000000000, 7);
	come_in_order(5000000000, 0x7ff);
	come_in_order(5000000000, 0x1ffffffff);
	come_in_order(0, 0xfffffffffff);
	/* Few again, where there was room for many. */
	add(1, 0, 2);
	add(2, 0, 1);
	bpf_counts_take(&counts, table, &shape, &stats);
	hand();
	assert_int_equal(nr_seen, 2);
	assert_int_equal(seen[0].addr, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(counts_come_by_their_last_sample, make, clean),
		cmocka_unit_test_setup_teardown(kernel_counts_are_of_a_process, make, clean),
		cmocka_unit_test_setup_teardown(losses_of_the_table_are_taken_over, make, clean),
		cmocka_unit_test_setup_teardown(what_is_refused_is_lost_by_name, make, clean),
		cmocka_unit_test_setup_teardown(head_and_entries_that_disagree_keep_the_law, make,
						clean),
		cmocka_unit_test_setup_teardown(many_come_in_order, make, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
