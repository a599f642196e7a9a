/* SPDX-License-Identifier: BSD-2-Clause */
/* Hints for runtimes whose code has no names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime.h"

static void test_hints(void **state)
{
	(void)state;
	assert_non_null(strstr(runtime_hint("node: dynamic, unnamed"), "--perf-prof"));
	assert_non_null(strstr(runtime_hint("java: dynamic, unnamed"), "libdcpi-jvmti.so"));
	assert_non_null(strstr(runtime_hint("php8.2: dynamic, unnamed"), "jit_debug"));
	assert_non_null(strstr(runtime_hint("pypy3: dynamic, unnamed"), "RUNTIMES.md"));
	assert_null(runtime_hint("node"));
	assert_null(runtime_hint("node: dynamic"));
	assert_null(runtime_hint(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hints) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
