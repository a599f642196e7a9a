/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <time.h>

#include "base.h"

static void continues(void **state)
{
	const struct timespec nap = { .tv_nsec = 5000000 };
	uint64_t before = base_now_ns(), after;

	(void)state;
	nanosleep(&nap, NULL);
	after = base_now_ns();
	assert_true(after - before >= 5000000);
	assert_true(after - before < 10000000000);
}

static void never_back(void **state)
{
	uint64_t last = base_now_ns();

	(void)state;
	for (int i = 0; i < 10000; i++) {
		uint64_t now = base_now_ns();

		assert_true(now >= last);
		last = now;
	}
}

/* However often the machine slept: start times are by that clock. */
static void ahead_by_the_sleep(void **state)
{
	struct timespec boot;
	uint64_t before = base_now_ns() + base_boot_ahead_ns(), now, after;

	(void)state;
	assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &boot), 0);
	now = (uint64_t)boot.tv_sec * 1000000000 + (uint64_t)boot.tv_nsec;
	after = base_now_ns() + base_boot_ahead_ns();
	assert_true(before <= now + 1000000000 && now <= after + 1000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(continues),
		cmocka_unit_test(never_back),
		cmocka_unit_test(ahead_by_the_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
