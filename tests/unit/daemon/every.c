/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests when the next epoch is due, for clocks that run, jump and sleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "every.h"

/* 2026-11-26 10:00 UTC. */
enum { TEN = 1795687200, HOUR = 3600 };

static void full_hours(void **state)
{
	(void)state;
	assert_false(every_is_due(HOUR, TEN, TEN));
	assert_false(every_is_due(HOUR, TEN, TEN + HOUR - 1));
	assert_true(every_is_due(HOUR, TEN, TEN + HOUR));
	/* Begun between two hours, by a start or by hand. */
	assert_false(every_is_due(HOUR, TEN + 1740, TEN + HOUR - 1));
	assert_true(every_is_due(HOUR, TEN + 1740, TEN + HOUR));
	assert_true(every_is_due(HOUR, TEN + 3540, TEN + HOUR));
	assert_true(every_is_due(1800, TEN, TEN + 1800));
	assert_false(every_is_due(86400, TEN, TEN + 13 * HOUR));
	assert_true(every_is_due(86400, TEN, TEN + 14 * HOUR));
}

static void a_sleep_and_a_clock_that_is_set(void **state)
{
	(void)state;
	/* Asleep over several hours: one epoch, which begins when the machine wakes. */
	assert_true(every_is_due(HOUR, TEN, TEN + 5 * HOUR + 7));
	assert_false(every_is_due(HOUR, TEN + 5 * HOUR + 7, TEN + 5 * HOUR + 8));
	/* Set back: no epoch begins until the clock has been there again. */
	assert_false(every_is_due(HOUR, TEN, TEN - 2 * HOUR));
	assert_false(every_is_due(HOUR, TEN, TEN - 1));
	assert_true(every_is_due(HOUR, TEN, TEN + HOUR));
	/* A clock that had been wrong by days is not waited for. */
	assert_true(every_is_due(HOUR, TEN, TEN - 86401));
	assert_false(every_is_due(0, TEN, TEN + 100 * HOUR));
}

static void as_users_say_it(void **state)
{
	static const char *const wrong[] = {
		"", "1", "h", "0h", "90s", "8d", "-1h", "never", "1h "
	};
	struct base_err err = { 0 };
	int64_t s = -1;

	(void)state;
	assert_int_equal(every_parse("1h", &s, &err), 0);
	assert_int_equal(s, HOUR);
	assert_int_equal(every_parse("30m", &s, &err), 0);
	assert_int_equal(s, 1800);
	assert_int_equal(every_parse("120s", &s, &err), 0);
	assert_int_equal(every_parse("1w", &s, &err), 0);
	assert_int_equal(every_parse("off", &s, &err), 0);
	assert_int_equal(s, 0);
	assert_int_equal(every_parse(NULL, &s, &err), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(every_parse(wrong[i], &s, &err), -DCPI_EUSAGE);
		assert_non_null(strstr(err.hint, "1h"));
		assert_int_equal(s, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_hours),
		cmocka_unit_test(a_sleep_and_a_clock_that_is_set),
		cmocka_unit_test(as_users_say_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
