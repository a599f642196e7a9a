/* SPDX-License-Identifier: BSD-2-Clause */
/* The test's own routines: no computed rule contradicts the one that the compiler wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agree.h"

static void own_program(void **state)
{
	struct agree a = { .to = stderr, .max_lines = 10 };
	struct base_err err = { 0 };
	int r = agree_file("/proc/self/exe", &a, &err);

	(void)state;
	if (r < 0)
		fail_msg("%s", err.text);
	agree_print(&a, stdout);
	assert_int_equal(a.wrong, 0);
	assert_true(a.compared > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
