/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <time.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daily.h"

enum { HOUR = 3600, DAY = 24 * HOUR };

/* 2026-11-20 00:00 UTC */
#define MIDNIGHT INT64_C(1795132800)

static void zone(const char *tz)
{
	setenv("TZ", tz, 1);
	tzset();
}

static void slots_are_local(void **state)
{
	(void)state;
	zone("UTC0");
	assert_int_equal(daily_slot(MIDNIGHT + 3 * HOUR, 0), MIDNIGHT + 3 * HOUR);
	assert_int_equal(daily_slot(MIDNIGHT + 3 * HOUR - 1, 0), MIDNIGHT - 21 * HOUR);
	assert_int_equal(daily_slot(MIDNIGHT + 23 * HOUR, 7199), MIDNIGHT + 5 * HOUR - 1);
	zone("XXX-5"); /* five hours east: 03:00 there is 22:00 UTC */
	assert_int_equal(daily_slot(MIDNIGHT, 0), MIDNIGHT - 2 * HOUR);
	zone("XXX8");
	assert_int_equal(daily_slot(MIDNIGHT + 11 * HOUR, 0), MIDNIGHT + 11 * HOUR);
}

/* In the night in which 02:00 becomes 03:00, and in that in which 03:00 becomes 02:00. */
static void slots_are_once_a_day_when_summer_comes_and_goes(void **state)
{
	const char *tz = "CET-1CEST,M3.5.0,M10.5.0/3";
	int64_t at = 1774656000; /* 2026-03-28 00:00 UTC */
	int64_t last = 0;
	int nr = 0;

	(void)state;
	zone(tz);
	for (int i = 0; i < 4 * 24 * 4; i++) {
		int64_t slot = daily_slot(at + i * HOUR / 4, 600);

		assert_true(slot >= last && slot <= at + i * HOUR / 4);
		nr += i && slot != last;
		last = slot;
	}
	assert_int_equal(nr, 4);
	at = 1792800000; /* 2026-10-24 00:00 UTC */
	last = nr = 0;
	for (int i = 0; i < 4 * 24 * 4; i++) {
		int64_t slot = daily_slot(at + i * HOUR / 4, 600);

		assert_true(slot >= last);
		nr += i && slot != last;
		last = slot;
	}
	assert_int_equal(nr, 4);
}

static void is_due_once_a_day(void **state)
{
	struct daily s = { 0 };
	int nr = 0;

	(void)state;
	zone("UTC0");
	/* Nobody knows when it was done before. */
	assert_false(daily_is_due(&s, MIDNIGHT + 4 * HOUR, 1000, 0));
	assert_int_equal(s.last, MIDNIGHT + 4 * HOUR);
	for (int i = 0; i < 3 * DAY; i += 60) {
		int64_t now = MIDNIGHT + 4 * HOUR + i;

		if (!daily_is_due(&s, now, 1000 + i, 600))
			continue;
		assert_int_equal((now - MIDNIGHT) % DAY, 3 * HOUR + 600);
		s.last = now;
		nr++;
	}
	assert_int_equal(nr, 3);
	/* A daemon that is started again does not repeat it, and does what was left out. */
	s.looked = false;
	assert_false(daily_is_due(&s, s.last + HOUR, 5, 600));
	s.looked = false;
	assert_true(daily_is_due(&s, s.last + 30 * HOUR, 5, 600));
}

static void jumps_put_it_off(void **state)
{
	struct daily s = { .last = MIDNIGHT };
	const int64_t year = 365 * DAY;

	(void)state;
	zone("UTC0");
	assert_false(daily_is_due(&s, MIDNIGHT + HOUR, 1000, 0));
	/* The clock goes a year ahead: not at once is everything old. */
	assert_false(daily_is_due(&s, MIDNIGHT + year + 4 * HOUR, 1060, 0));
	assert_false(daily_is_due(&s, MIDNIGHT + year + 5 * HOUR, 1060 + HOUR, 0));
	/* It is put right: what was done is in the future. */
	assert_false(daily_is_due(&s, MIDNIGHT + 4 * HOUR, 1120 + HOUR, 0));
	assert_int_equal(s.last, MIDNIGHT + 4 * HOUR);
	assert_true(daily_is_due(&s, MIDNIGHT + DAY + 4 * HOUR, 1120 + HOUR + DAY, 0));
	/* A suspended machine's time since boot goes on. */
	assert_true(daily_is_due(&s, MIDNIGHT + 3 * DAY, 1120 - 3 * HOUR + 3 * DAY, 0));
	/* By the file somebody did it next year. */
	s = (struct daily){ .last = MIDNIGHT + year };
	assert_false(daily_is_due(&s, MIDNIGHT + 4 * HOUR, 1, 0));
	assert_int_equal(s.last, MIDNIGHT + 4 * HOUR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_local),
		cmocka_unit_test(slots_are_once_a_day_when_summer_comes_and_goes),
		cmocka_unit_test(is_due_once_a_day),
		cmocka_unit_test(jumps_put_it_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
