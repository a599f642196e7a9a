/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of threads as load events tell them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "perf_internal.h"

static struct perf_names n;

static int release(void **state)
{
	(void)state;
	perf_names_release(&n);
	return 0;
}

static void tell(enum driver_load_kind kind, int32_t tid, int32_t ptid, const char *path)
{
	const struct driver_load load = {
		.kind = kind, .pid = 10, .tid = tid, .ptid = ptid, .path = path
	};

	perf_names_load(&n, &load);
}

static const char *name(int32_t tid)
{
	return perf_names_text(&n, perf_names_get(&n, tid));
}

static void threads_have_the_name_told_last(void **state)
{
	(void)state;
	assert_string_equal(name(10), "");
	tell(DRIVER_LOAD_EXEC, 10, 0, "main");
	tell(DRIVER_LOAD_FORK, 11, 10, NULL);
	tell(DRIVER_LOAD_FORK, 12, 99, NULL);
	assert_string_equal(name(11), "main");
	assert_int_equal(perf_names_get(&n, 11), perf_names_get(&n, 10));
	assert_string_equal(name(12), "");
	tell(DRIVER_LOAD_COMM, 11, 0, "worker");
	tell(DRIVER_LOAD_COMM, 12, 0, "0123456789abcdefgh");
	assert_string_equal(name(11), "worker");
	assert_string_equal(name(10), "main");
	assert_string_equal(name(12), "0123456789abcde");
	tell(DRIVER_LOAD_COMM, 12, 0, "");
	assert_string_equal(name(12), "");
	tell(DRIVER_LOAD_EXEC, 10, 0, NULL);
	assert_string_equal(name(10), "");
	tell(DRIVER_LOAD_EXIT, 11, 0, NULL);
	assert_string_equal(name(11), "");
	assert_int_equal(perf_names_get(&n, 0), 0);
	assert_int_equal(perf_names_get(&n, -1), 0);
	assert_string_equal(perf_names_text(&n, UINT32_MAX), "");
}

static void lost_events_leave_no_wrong_name(void **state)
{
	uint32_t number;

	(void)state;
	tell(DRIVER_LOAD_COMM, 10, 0, "main");
	number = perf_names_get(&n, 10);
	perf_names_lose(&n);
	assert_string_equal(name(10), "");
	assert_string_equal(perf_names_text(&n, number), "main");
}

static void many_names_are_forgotten(void **state)
{
	char text[PERF_NAME_LEN];

	(void)state;
	tell(DRIVER_LOAD_COMM, 10, 0, "main");
	perf_names_forget(&n);
	assert_string_equal(name(10), "main");
	for (int i = 0; i < 70000; i++) {
		snprintf(text, sizeof(text), "w%d", i);
		tell(DRIVER_LOAD_COMM, 11, 0, text);
		assert_true(!perf_names_get(&n, 11) || !strcmp(name(11), text));
	}
	assert_string_equal(name(11), "");
	perf_names_forget(&n);
	assert_string_equal(name(10), "");
	tell(DRIVER_LOAD_COMM, 11, 0, "again");
	assert_string_equal(name(11), "again");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(threads_have_the_name_told_last, release),
		cmocka_unit_test_teardown(lost_events_leave_no_wrong_name, release),
		cmocka_unit_test_teardown(many_names_are_forgotten, release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
