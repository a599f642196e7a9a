/* SPDX-License-Identifier: BSD-2-Clause */
/* Users' shares of time and of tables: taken, refused, refilled, and given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "budget.h"
#include "fast_clock.h"

enum { USER = 1000, OTHER = 1001, MS = 1000000 };

static struct budgets *b;

static int setup(void **state)
{
	(void)state;
	stands = true;
	b = budgets_new();
	base_log_init(NULL, BASE_LOG_ERROR, BASE_LOG_BARE);
	return b ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	budgets_free(b);
	return 0;
}

/* Waits until the budget is spent: milliseconds in all. */
static unsigned int spend(uint32_t uid)
{
	unsigned int ms, sum = 0;

	while ((ms = budget_wait_ms(b, uid))) {
		ahead_ns += (uint64_t)ms * MS;
		budget_waited(b, uid, (uint64_t)ms * MS, 0, 0);
		sum += ms;
	}
	return sum;
}

static void waiting(void **state)
{
	struct budget_stats stats;

	(void)state;
	assert_in_range(spend(USER), 200, 300);
	assert_int_equal(budget_wait_ms(b, USER), 0);
	assert_true(budget_wait_ms(b, OTHER) >= 200);
	budget_stats_get(b, &stats);
	assert_int_equal(stats.users_over, 1);
	assert_int_equal(stats.requests_refused, 2);
	/* After that it gets a part of the time. */
	unsigned int again = 0;

	for (int s = 0; s < 100; s++) {
		ahead_ns += 1000ull * MS;
		again += spend(USER);
	}
	assert_in_range(again, 4000, 7000);
}

/* However many: what is answered as fast as an honest process answers is free. */
static void honest(void **state)
{
	(void)state;
	for (int i = 0; i < 10000; i++) {
		budget_turn(b);
		assert_true(budget_wait_ms(b, USER) >= 200);
		budget_waited(b, USER, 9 * MS, 0, 0);
		budget_waited(b, USER, 80 * MS, 0, 2 << 20);
	}
}

/* On a slow machine the helpers work longer for an answer; but not without end in one turn. */
static void slow_machine(void **state)
{
	(void)state;
	for (int i = 0; i < 10000; i++) {
		budget_turn(b);
		ahead_ns += 100ull * MS;
		budget_waited(b, USER, 90 * MS, 85 * MS, 1000);
		assert_true(budget_wait_ms(b, USER) >= 190);
	}
	budget_turn(b);
	for (int i = 0; i < 10; i++)
		budget_waited(b, USER, 90 * MS, 85 * MS, 1000);
	assert_int_equal(budget_wait_ms(b, USER), 0);
}

static void turns(void **state)
{
	uint64_t since;

	(void)state;
	budget_turn(b);
	since = budget_begin(b);
	assert_true(budget_has_turn(b, USER));
	ahead_ns += 50ull * MS;
	/* Part of what is done for it anyway. */
	budget_waited(b, USER, 50ull * MS, 0, 0);
	budget_end(b, USER, since);
	assert_true(budget_has_turn(b, USER));
	budget_waited(b, USER, 60ull * MS, 0, 0);
	assert_false(budget_has_turn(b, USER));
	assert_true(budget_has_turn(b, OTHER));
	budget_turn(b);
	assert_true(budget_has_turn(b, USER));
}

/* Users do not add up: from some time on each has a part of the turn, and the rest in the next. */
static void turns_of_many(void **state)
{
	const uint32_t third = OTHER + 1, fourth = OTHER + 2;

	(void)state;
	for (int i = 0; i < 2; i++) {
		budget_turn(b);
		budget_waited(b, USER, 90ull * MS, 0, 0);
		budget_waited(b, OTHER, 50ull * MS, 0, 0);
		assert_true(budget_has_turn(b, USER));
		budget_waited(b, third, 10ull * MS, 0, 0);
		assert_false(budget_has_turn(b, USER));
		assert_false(budget_has_turn(b, OTHER));
		assert_false(budget_has_turn(b, third));
		/* It has had nothing. */
		assert_true(budget_has_turn(b, fourth));
		budget_waited(b, fourth, MS, 0, 0);
		assert_false(budget_has_turn(b, fourth));
	}
}

static void places(void **state)
{
	unsigned int nr = 0;

	(void)state;
	while (budget_take(b, USER, BUDGET_ROOTS, 1, 90))
		nr++;
	assert_int_equal(nr, 45);
	for (nr = 0; budget_take(b, OTHER, BUDGET_ROOTS, 1, 90);)
		nr++;
	assert_int_equal(nr, 22);
	assert_true(budget_take(b, 7, BUDGET_ROOTS, 1, 90));
	assert_true(budget_take(b, USER, BUDGET_RECORDS, 45, 90));
	assert_false(budget_take(b, USER, BUDGET_RECORDS, UINT64_MAX, 90));
	/* The others left less than it has: it gets no more until it gave some back. */
	assert_false(budget_take(b, USER, BUDGET_ROOTS, 1, 90));
	budget_give_back(b, USER, BUDGET_ROOTS, 45);
	assert_true(budget_take(b, USER, BUDGET_ROOTS, 33, 90));
	assert_false(budget_take(b, USER, BUDGET_ROOTS, 1, 90));
	budget_clear(b, BUDGET_ROOTS);
	assert_true(budget_take(b, USER, BUDGET_ROOTS, 45, 90));
	assert_false(budget_take(b, USER, BUDGET_RECORDS, 1, 90));
}

static void telling(void **state)
{
	(void)state;
	assert_true(budget_may_tell(b, USER));
	assert_false(budget_may_tell(b, USER));
	assert_true(budget_may_tell(b, OTHER));
	ahead_ns += 60000ull * MS;
	assert_true(budget_may_tell(b, USER));
}

/* Where there are no budgets, as for a recorded stream. */
static void none(void **state)
{
	struct budget_stats stats;

	(void)state;
	assert_true(budget_wait_ms(NULL, USER) > 0);
	budget_waited(NULL, USER, UINT32_MAX, 0, 0);
	budget_turn(NULL);
	assert_true(budget_has_turn(NULL, USER));
	budget_end(NULL, USER, budget_begin(NULL));
	assert_true(budget_take(NULL, USER, BUDGET_RECORDS, UINT64_MAX, 1));
	budget_give_back(NULL, USER, BUDGET_RECORDS, 1);
	budget_clear(NULL, BUDGET_RECORDS);
	assert_true(budget_may_tell(NULL, USER));
	budget_stats_get(NULL, &stats);
	assert_int_equal(stats.users_over, 0);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(waiting),	     TEST(honest), TEST(slow_machine), TEST(turns),
		TEST(turns_of_many), TEST(places), TEST(telling),      TEST(none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
