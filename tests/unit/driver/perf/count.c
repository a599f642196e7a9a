/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of one event: what was due, what was missed, over draws, slots and CPUs' absences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf_internal.h"

static struct perf_count c;

static int reset(void **state)
{
	(void)state;
	c = (struct perf_count){ .period = 1000, .is_time = true };
	return 0;
}

/* A clock that ran for @ns in all, of @enabled. */
static void ran(uint64_t ns, uint64_t enabled, uint64_t lost)
{
	perf_count_read(&c, &(struct perf_reading){ ns, enabled, ns, lost });
}

static void expect_missed(uint64_t missed)
{
	perf_count_miss(&c);
	assert_int_equal(c.missed, missed);
}

static void missed_is_what_was_due_less_what_came(void **state)
{
	(void)state;
	ran(10999, 10999, 0);
	expect_missed(10);
	c.received = 7;
	ran(20000, 20000, 3);
	expect_missed(10);
	/* Late samples do not take back what was said, nor do early ones. */
	c.received = 8;
	expect_missed(10);
	c.received = 30;
	expect_missed(10);
	ran(50000, 50000, 3);
	expect_missed(17);
}

static void each_interval_has_its_period(void **state)
{
	(void)state;
	ran(100500, 100500, 0);
	perf_count_draw(&c, 1040); /* 100 were due; the broken one is none */
	ran(100500 + 104000, 204500, 0);
	perf_count_draw(&c, 960); /* 100 more */
	ran(204500 + 96000 + 959, 400000, 0);
	c.received = 290;
	expect_missed(10);
	/* By the nominal period 301 would have been due. */
}

/* Time in which another slot had its turn, or the kernel another event, is not missed. */
static void only_running_time_is_due(void **state)
{
	(void)state;
	ran(50000, 100000, 0);
	c.received = 50;
	expect_missed(0);
}

static void an_absent_cpu_takes_nothing_back(void **state)
{
	(void)state;
	ran(100900, 100900, 5);
	c.received = 90;
	expect_missed(5);
	perf_count_close(&c);
	expect_missed(5);
	assert_int_equal(perf_count_lost(&c), 5);
	assert_int_equal(perf_count_running_ns(&c), 100900);
	/* It is back, and counts from nothing. */
	c.period = 1010;
	ran(10100, 10100, 1);
	expect_missed(14);
	assert_int_equal(perf_count_lost(&c), 6);
	assert_int_equal(perf_count_running_ns(&c), 111000);
	assert_int_equal(perf_count_value(&c), 111000);
}

/* One that was drawn for before counts from nothing, too. */
static void an_absence_ends_a_draw(void **state)
{
	(void)state;
	ran(100000, 100000, 0);
	perf_count_draw(&c, 1000);
	ran(105000, 105000, 0);
	perf_count_close(&c);
	ran(3000, 3000, 0);
	c.received = 100;
	expect_missed(8);
}

static void readings_never_shrink(void **state)
{
	(void)state;
	ran(5000, 6000, 7);
	ran(4000, 5000, 6);
	assert_int_equal(perf_count_value(&c), 5000);
	assert_int_equal(c.now.enabled_ns, 6000);
	assert_int_equal(perf_count_lost(&c), 7);
}

/* A draw breaks a period off, so that rare samples need time between two. */
static void rare_events_are_not_starved(void **state)
{
	(void)state;
	assert_false(perf_count_may_draw(&c));
	ran(99999, 99999, 0);
	assert_false(perf_count_may_draw(&c));
	ran(100000, 100000, 0);
	assert_true(perf_count_may_draw(&c));
	perf_count_draw(&c, 1020);
	assert_false(perf_count_may_draw(&c));
	ran(202000, 202000, 0);
	assert_true(perf_count_may_draw(&c));
	c.period = 0; /* by frequency: the kernel's matter */
	assert_false(perf_count_may_draw(&c));
}

/* A counter counts on while its interrupt waits: the overflows that had none are missed. */
static void a_counter_tells_what_it_lost(void **state)
{
	(void)state;
	c.is_time = false;
	perf_count_read(&c, &(struct perf_reading){ 10999, 500, 400, 0 });
	c.received = 10;
	expect_missed(0);
	perf_count_read(&c, &(struct perf_reading){ 20999, 900, 800, 0 });
	c.received = 13;
	expect_missed(7);
	perf_count_draw(&c, 500);
	perf_count_read(&c, &(struct perf_reading){ 25999, 1000, 900, 0 });
	c.received = 23;
	expect_missed(7);
}

static void fractions_of_time(void **state)
{
	(void)state;
	assert_true(perf_count_enabled(0, 0) == 1);
	assert_true(perf_count_enabled(0, 10) == 0);
	assert_true(perf_count_enabled(500, 1000) == 0.5);
	assert_true(perf_count_enabled(9991, 10000) == 1);
	assert_true(perf_count_enabled(10001, 10000) == 1);
	assert_true(perf_count_enabled(990, 1000) == 0.99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(missed_is_what_was_due_less_what_came, reset),
		cmocka_unit_test_setup(each_interval_has_its_period, reset),
		cmocka_unit_test_setup(only_running_time_is_due, reset),
		cmocka_unit_test_setup(an_absent_cpu_takes_nothing_back, reset),
		cmocka_unit_test_setup(an_absence_ends_a_draw, reset),
		cmocka_unit_test_setup(readings_never_shrink, reset),
		cmocka_unit_test_setup(rare_events_are_not_starved, reset),
		cmocka_unit_test_setup(a_counter_tells_what_it_lost, reset),
		cmocka_unit_test_setup(fractions_of_time, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
