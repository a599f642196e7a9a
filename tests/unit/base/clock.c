/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <time.h>

#include "base.h"

static void goes_on(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on),
		cmocka_unit_test(never_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
