/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "perf_internal.h"

static struct perf_order o;

static void add(size_t queue, uint64_t time_ns, uint64_t addr)
{
	const struct driver_count count = { .time_ns = time_ns, .addr = addr, .count = 1 };

	assert_int_equal(perf_order_add(&o, queue, &count), 0);
}

/* Take what is due; the addresses must be these, in this order (0 ends). */
static void expect(uint64_t horizon, const uint64_t *addrs)
{
	const struct perf_item *item;

	perf_order_settle(&o);
	for (; *addrs; addrs++) {
		item = perf_order_take(&o, horizon);
		assert_non_null(item);
		assert_int_equal(item->count.addr, *addrs);
	}
	assert_null(perf_order_take(&o, horizon));
}

#define EXPECT(horizon, ...) expect((horizon), (const uint64_t[]){ __VA_ARGS__, 0 })

static void rings_are_merged_by_time(void **state)
{
	(void)state;
	assert_int_equal(perf_order_init(&o, 3), 0);
	add(0, 10, 1);
	add(0, 40, 4);
	add(1, 20, 2);
	add(1, 50, 5);
	add(2, 30, 3);
	assert_int_equal(o.nr_samples, 5);
	EXPECT(UINT64_MAX, 1, 2, 3, 4, 5);
	assert_int_equal(o.nr_samples, 0);
	perf_order_release(&o);
}

static void young_ones_are_held(void **state)
{
	(void)state;
	assert_int_equal(perf_order_init(&o, 2), 0);
	add(0, 10, 1);
	add(0, 30, 3);
	add(1, 31, 4);
	EXPECT(30, 1, 3);
	assert_int_equal(o.nr_samples, 1);
	/* What another CPU delivers later, but took earlier, still comes first. */
	add(0, 29, 2);
	add(0, 35, 5);
	EXPECT(34, 2, 4);
	EXPECT(UINT64_MAX, 5);
	perf_order_release(&o);
}

static void an_interrupt_may_swap_records(void **state)
{
	(void)state;
	assert_int_equal(perf_order_init(&o, 1), 0);
	add(0, 10, 1);
	add(0, 30, 3);
	add(0, 20, 2);
	add(0, 5, 9);
	EXPECT(UINT64_MAX, 9, 1, 2, 3);
	perf_order_release(&o);
}

static void equal_times_keep_their_order(void **state)
{
	(void)state;
	assert_int_equal(perf_order_init(&o, 3), 0);
	add(2, 10, 5);
	add(2, 10, 6);
	add(0, 10, 1);
	add(0, 10, 2);
	add(1, 10, 3);
	add(1, 10, 4);
	EXPECT(UINT64_MAX, 1, 2, 3, 4, 5, 6);
	perf_order_release(&o);
}

/* Many rings, random times, drains in between: nothing lost, nothing out of order. */
static void long_runs_stay_sorted_and_complete(void **state)
{
	enum { RINGS = 37, ROUNDS = 60, EACH = 20 };
	uint64_t now = 1000, taken = 0, sum_in = 0, sum_out = 0, last = 0;
	unsigned int seed = 7;
	const struct perf_item *item;

	(void)state;
	assert_int_equal(perf_order_init(&o, RINGS), 0);
	for (int round = 0; round < ROUNDS; round++, now += 1000) {
		for (size_t i = 0; i < RINGS * EACH; i++) {
			uint64_t addr = (uint64_t)rand_r(&seed) + 1;

			add(i % RINGS, now + (uint64_t)rand_r(&seed) % 1000, addr);
			sum_in += addr;
		}
		perf_order_settle(&o);
		while ((item = perf_order_take(&o, round + 1 < ROUNDS ? now + 500 : UINT64_MAX))) {
			assert_true(item->count.time_ns >= last);
			last = item->count.time_ns;
			sum_out += item->count.addr;
			taken++;
		}
		/* The next round's times begin behind this horizon. */
	}
	assert_int_equal(taken, RINGS * ROUNDS * EACH);
	assert_int_equal(sum_in, sum_out);
	assert_int_equal(o.nr_samples, 0);
	perf_order_release(&o);
}

/* What is queued must not point into a ring that is overwritten. */
static void loads_are_copied(void **state)
{
	uint64_t data[2] = { 0x1122334455667788, 0x99 };
	char path[] = "/bin/x";
	const struct driver_load load = {
		.time_ns = 5, .addr = 7, .path = path, .data = data, .data_len = 9
	};
	const struct perf_item *item;

	(void)state;
	assert_int_equal(perf_order_init(&o, 1), 0);
	assert_int_equal(perf_order_add_load(&o, 0, &load), 0);
	assert_int_equal(perf_order_add_load(&o, 0, &(struct driver_load){ .time_ns = 6 }), 0);
	path[1] = '?';
	data[0] = 0;
	perf_order_settle(&o);
	item = perf_order_take(&o, 9);
	assert_non_null(item);
	assert_int_equal(item->count.time_ns, 5);
	assert_int_equal(item->load->load.addr, 7);
	assert_string_equal(item->load->load.path, "/bin/x");
	assert_int_equal((uintptr_t)item->load->load.data % 8, 0);
	assert_memory_equal(item->load->load.data, "\x88\x77\x66\x55\x44\x33\x22\x11\x99", 9);
	perf_order_drop(&o, item->load);
	item = perf_order_take(&o, 9);
	assert_non_null(item);
	assert_null(item->load->load.path);
	assert_null(item->load->load.data);
	perf_order_drop(&o, item->load);
	perf_order_release(&o);
}

/* A count over an interval weighs what it says. */
static void counts_are_held_by_their_number(void **state)
{
	const struct driver_count many = { .time_ns = 7, .count = 40 };
	const struct perf_item *item;

	(void)state;
	assert_int_equal(perf_order_init(&o, 1), 0);
	assert_int_equal(perf_order_add(&o, 0, &many), 0);
	add(0, 8, 1);
	assert_int_equal(o.nr_samples, 41);
	perf_order_settle(&o);
	item = perf_order_take(&o, 7);
	assert_non_null(item);
	assert_int_equal(item->count.count, 40);
	assert_int_equal(o.nr_samples, 1);
	perf_order_release(&o);
}

/* A load of @number, and bytes that tell of it, as many as it says. */
static void add_numbered(size_t queue, uint64_t number, size_t data_len)
{
	static uint8_t data[200000];
	const struct driver_load load = {
		.time_ns = number, .addr = number, .data = data, .data_len = data_len
	};

	memset(data, (int)(number & 0xff), data_len);
	assert_int_equal(perf_order_add_load(&o, queue, &load), 0);
}

static void check_numbered(const struct perf_load *l)
{
	const uint8_t *data = l->load.data;

	for (size_t i = 0; i < l->load.data_len; i++)
		assert_int_equal(data[i], l->load.addr & 0xff);
}

/* Their room is used again by later ones, also when one from before is still there. */
static void loads_share_room(void **state)
{
	enum { ROUNDS = 50, EACH = 400 };
	struct perf_load *held[ROUNDS];
	const struct perf_item *item;
	unsigned int seed = 5;
	uint64_t number = 1;

	(void)state;
	assert_int_equal(perf_order_init(&o, 2), 0);
	for (size_t round = 0; round < ROUNDS; round++) {
		uint64_t first = number;

		for (; number < first + EACH; number++)
			add_numbered(number % 2, number, (size_t)rand_r(&seed) % 500);
		/* More than any room has. */
		add_numbered(0, number++, 100000 + round);
		perf_order_settle(&o);
		for (uint64_t n = first; (item = perf_order_take(&o, UINT64_MAX)); n++) {
			assert_int_equal(item->load->load.addr, n);
			check_numbered(item->load);
			if (n == first + round)
				held[round] = item->load;
			else
				perf_order_drop(&o, item->load);
		}
	}
	for (size_t round = 0; round < ROUNDS; round++) {
		assert_int_equal(held[round]->load.addr, round * (EACH + 1) + 1 + round);
		check_numbered(held[round]);
		perf_order_drop(&o, held[round]);
	}
	perf_order_release(&o); /* asan tells of what is left */
}

static void waiting_loads_are_freed(void **state)
{
	const struct perf_item *item;

	(void)state;
	assert_int_equal(perf_order_init(&o, 1), 0);
	for (uint64_t number = 1; number < 1000; number++)
		add_numbered(0, number, 300);
	assert_int_equal(o.nr_samples, 0);
	perf_order_settle(&o);
	item = perf_order_take(&o, 1);
	assert_non_null(item);
	perf_order_drop(&o, item->load);
	perf_order_release(&o); /* the others; asan tells */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_are_merged_by_time),
		cmocka_unit_test(young_ones_are_held),
		cmocka_unit_test(an_interrupt_may_swap_records),
		cmocka_unit_test(equal_times_keep_their_order),
		cmocka_unit_test(long_runs_stay_sorted_and_complete),
		cmocka_unit_test(loads_are_copied),
		cmocka_unit_test(counts_are_held_by_their_number),
		cmocka_unit_test(loads_share_room),
		cmocka_unit_test(waiting_loads_are_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
