/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon_core.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_told_once),
		cmocka_unit_test(clocks_are_read_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
