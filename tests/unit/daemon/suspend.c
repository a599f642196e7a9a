/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core.h"

#define SECOND 1000000000ull

static void is_told_once(void **state)
{
	struct suspends s = { 0 };

	(void)state;
	/* What it slept before we came is not ours. */
	assert_int_equal(suspends_look(&s, 500 * SECOND), 0);
	assert_int_equal(suspends_look(&s, 500 * SECOND), 0);
	assert_int_equal(suspends_look(&s, 4100 * SECOND), 3600 * SECOND);
	assert_int_equal(suspends_look(&s, 4100 * SECOND), 0);
	assert_int_equal(suspends_look(&s, 4107 * SECOND), 7 * SECOND);
	assert_int_equal(s.nr, 2);
	assert_int_equal(s.ns, 3607 * SECOND);
}

/* We may be interrupted between the clocks; that never adds up to a sleep. */
static void clocks_are_read_apart(void **state)
{
	struct suspends s = { 0 };

	(void)state;
	suspends_look(&s, 100);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(suspends_look(&s, i % 7 * 100000000), 0);
	assert_int_equal(suspends_look(&s, 0), 0);
	assert_int_equal(s.nr, 0);
	assert_int_equal(s.ns, 0);
}

#define UTC 1795161250 /* seconds */

/* A look @at seconds since boot, when the clock is @ahead seconds ahead of UTC. */
static int64_t look_at(struct clock_sets *s, uint64_t at, double ahead)
{
	int64_t utc_ns = (int64_t)((UTC + (int64_t)at) * SECOND) + (int64_t)(ahead * 1e9);

	return clock_sets_look(s, at * SECOND, utc_ns, at * SECOND + 1000);
}

static void a_clock_that_is_set_is_told_once(void **state)
{
	struct clock_sets s = { 0 };

	(void)state;
	assert_int_equal(look_at(&s, 100, 0), 0);
	assert_int_equal(look_at(&s, 101, 3600), 3600);
	assert_int_equal(look_at(&s, 102, 3600), 0);
	/* A machine that slept meanwhile. */
	assert_int_equal(look_at(&s, 100000, 3600), 0);
	assert_int_equal(look_at(&s, 100001, -7.5), -3607);
	assert_int_equal(look_at(&s, 100002, -7.5), 0);
	assert_int_equal(s.nr, 2);
}

/* By NTP, half a millisecond in each second: twenty in all. */
static void a_clock_may_be_hurried(void **state)
{
	struct clock_sets s = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 40000; i++)
		assert_int_equal(look_at(&s, 100 + i, (double)i * 0.0005), 0);
	assert_int_equal(s.nr, 0);
}

/* We may have stood for long between the clocks: that look says nothing, and the next one does. */
static void a_look_that_took_long(void **state)
{
	struct clock_sets s = { 0 };

	(void)state;
	look_at(&s, 100, 0);
	assert_int_equal(clock_sets_look(&s, 110 * SECOND, (UTC + 150) * SECOND, 151 * SECOND), 0);
	assert_int_equal(look_at(&s, 152, 0), 0);
	assert_int_equal(s.nr, 0);
	clock_sets_look(&s, 160 * SECOND, (UTC + 300) * SECOND, 201 * SECOND);
	assert_int_equal(look_at(&s, 202, 100), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_told_once),
		cmocka_unit_test(clocks_are_read_apart),
		cmocka_unit_test(a_clock_that_is_set_is_told_once),
		cmocka_unit_test(a_clock_may_be_hurried),
		cmocka_unit_test(a_look_that_took_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
