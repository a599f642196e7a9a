/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns of slots under a fake clock, and periods from a seeded generator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf_internal.h"

#define MS 1000000ull

static void slots_take_equal_turns(void **state)
{
	struct perf_turn t = { .nr_slots = 3, .slot_ns = 100 * MS };
	uint64_t had[3] = { 0 }, now = 5000 * MS;

	(void)state;
	perf_turn_start(&t, now);
	for (int i = 0; i < 30000; i++, now += MS / 10) {
		perf_turn_rotate(&t, now);
		had[t.slot]++;
	}
	assert_int_equal(had[0], 10000);
	assert_int_equal(had[1], 10000);
	assert_int_equal(had[2], 10000);
}

static void the_timer_is_set_for_the_end_of_a_turn(void **state)
{
	struct perf_turn t = { .nr_slots = 2, .slot_ns = 250 * MS, .draws = true };

	(void)state;
	perf_turn_start(&t, 1000 * MS);
	assert_int_equal(perf_turn_next_ns(&t), 1250 * MS);
	assert_false(perf_turn_rotate(&t, 1250 * MS - 1));
	assert_int_equal(t.slot, 0);
	assert_true(perf_turn_rotate(&t, 1250 * MS));
	assert_int_equal(t.slot, 1);
	assert_false(perf_turn_rotate(&t, 1250 * MS));
	/* A late drain: one slot on, its whole turn from now. */
	assert_true(perf_turn_rotate(&t, 9000 * MS));
	assert_int_equal(t.slot, 0);
	assert_int_equal(perf_turn_next_ns(&t), 9250 * MS);
}

static void one_slot_has_all_the_time(void **state)
{
	struct perf_turn t = { .nr_slots = 1, .slot_ns = 100 * MS };

	(void)state;
	perf_turn_start(&t, 0);
	assert_false(perf_turn_rotate(&t, 100000 * MS));
	assert_int_equal(perf_turn_next_ns(&t), 0);
	assert_false(perf_turn_draw(&t, 100000 * MS));
}

/* A daemon with a clock of a second draws at each tick, an early one too; without one, at 1.5 s. */
static void periods_are_due_once_a_second(void **state)
{
	struct perf_turn t = { .nr_slots = 1, .draws = true };
	int drawn = 0;

	(void)state;
	perf_turn_start(&t, 0);
	assert_int_equal(perf_turn_next_ns(&t), 1500 * MS);
	for (uint64_t s = 1; s <= 20; s++)
		drawn += perf_turn_draw(&t, s * 1000 * MS - (s & 1) * 40 * MS);
	assert_int_equal(drawn, 20);
	for (uint64_t ms = 20001; ms < 20800; ms++)
		assert_false(perf_turn_draw(&t, ms * MS));
}

static void periods_leave_the_nominal_one_out(void **state)
{
	enum { NOMINAL = 1000000, ROUNDS = 40000 };
	uint64_t random = 42, shorter = 0, parts[6] = { 0 };
	int64_t sum = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		int64_t off = (int64_t)perf_period_draw(NOMINAL, 0, &random) - NOMINAL;

		assert_in_range(off < 0 ? -off : off, 10000, 40000);
		sum += off;
		shorter += off < 0;
		parts[(off < 0 ? 0 : 3) + ((off < 0 ? -off : off) - 10000) * 3 / 30001]++;
	}
	/* Of the mean the deviation is 27,000 / sqrt(40000) = 135; of the counts 100 and 75. */
	assert_in_range(sum / ROUNDS + 700, 0, 1400);
	assert_in_range(shorter, ROUNDS / 2 - 500, ROUNDS / 2 + 500);
	for (int i = 0; i < 6; i++)
		assert_in_range(parts[i], ROUNDS / 6 - 375, ROUNDS / 6 + 375);
	assert_int_equal(perf_period_mean(NOMINAL, 0), NOMINAL);
	assert_int_equal(perf_period_mean(NOMINAL, 960000), NOMINAL);
}

/* The kernel's shortest period, or its highest rate, leaves no room below. */
static void periods_at_the_limit_are_longer_ones(void **state)
{
	uint64_t random = 42, sum = 0;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		uint64_t period = perf_period_draw(10000, 10000, &random);

		assert_in_range(period, 10100, 10400);
		sum += period;
	}
	assert_int_equal(perf_period_mean(10000, 10000), 10256);
	assert_in_range(sum / 10000, 10251, 10261);
}

static void small_periods_have_no_room(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (uint64_t nominal = 0; nominal < 25; nominal++) {
		assert_int_equal(perf_period_draw(nominal, 0, &random), nominal);
		assert_int_equal(perf_period_mean(nominal, 0), nominal);
	}
	for (uint64_t nominal = 25; nominal < 1000; nominal++) {
		uint64_t period = perf_period_draw(nominal, 0, &random);

		assert_int_equal(period == nominal, nominal % 16 == 0 && nominal < 400);
		assert_in_range(period, nominal - nominal / 25, nominal + nominal / 25);
	}
	assert_in_range(perf_period_draw(UINT64_MAX / 2, 0, &random), UINT64_MAX / 100 * 48,
			UINT64_MAX / 100 * 53);
}

/* Or AMD's IBS would refuse them. */
static void multiples_of_16_stay_such(void **state)
{
	uint64_t random = 3, seen[2] = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t period = perf_period_draw(250000, 0, &random);

		assert_int_equal(period % 16, 0);
		assert_in_range(period, 240000, 260000);
		seen[period > 250000]++;
		period = perf_period_draw(250001, 0, &random);
		assert_true(period < 250001 - 2500 || period > 250001 + 2500);
	}
	assert_true(seen[0] > 400 && seen[1] > 400);
}

static void seeds_make_the_difference(void **state)
{
	uint64_t a = 7, b = 7, c = 8;
	bool differs = false;

	(void)state;
	for (int i = 0; i < 10; i++) {
		uint64_t first = perf_period_draw(1000000, 0, &a);

		assert_int_equal(first, perf_period_draw(1000000, 0, &b));
		differs |= first != perf_period_draw(1000000, 0, &c);
	}
	assert_true(differs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_take_equal_turns),
		cmocka_unit_test(the_timer_is_set_for_the_end_of_a_turn),
		cmocka_unit_test(one_slot_has_all_the_time),
		cmocka_unit_test(periods_are_due_once_a_second),
		cmocka_unit_test(periods_leave_the_nominal_one_out),
		cmocka_unit_test(periods_at_the_limit_are_longer_ones),
		cmocka_unit_test(small_periods_have_no_room),
		cmocka_unit_test(multiples_of_16_stay_such),
		cmocka_unit_test(seeds_make_the_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
