/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf_internal.h"

static struct perf_threads t;

static bool pass(enum driver_load_kind kind, int32_t pid, int32_t ppid, int32_t tid)
{
	const struct driver_load load = { .kind = kind, .pid = pid, .ppid = ppid, .tid = tid };

	return perf_threads_pass(&t, &load);
}

static bool fork_(int32_t pid, int32_t ppid, int32_t tid)
{
	return pass(DRIVER_LOAD_FORK, pid, ppid, tid);
}

static bool exit_(int32_t pid, int32_t tid)
{
	return pass(DRIVER_LOAD_EXIT, pid, 1, tid);
}

static int reset(void **state)
{
	(void)state;
	perf_threads_forget(&t);
	return 0;
}

static void a_process_without_threads(void **state)
{
	(void)state;
	assert_true(fork_(10, 1, 10));
	assert_true(exit_(10, 10));
	assert_int_equal(t.counts.nr, 0);
}

static void the_last_thread_ends_the_process(void **state)
{
	(void)state;
	assert_true(fork_(10, 1, 10));
	assert_false(fork_(10, 10, 11));
	assert_false(fork_(10, 10, 12));
	assert_false(exit_(10, 11));
	assert_false(exit_(10, 10)); /* the main thread, early */
	assert_true(exit_(10, 12));
	assert_int_equal(t.counts.nr, 0);
}

static void an_old_process_ends_with_its_main_thread(void **state)
{
	(void)state;
	assert_false(fork_(10, 10, 11));
	assert_false(exit_(10, 11));
	assert_true(exit_(10, 10));
	assert_false(exit_(10, 12));
	assert_int_equal(t.counts.nr, 0);
}

static void exec_leaves_one_thread(void **state)
{
	(void)state;
	assert_true(pass(DRIVER_LOAD_EXEC, 10, 0, 10)); /* known from here on */
	assert_false(fork_(10, 10, 11));
	assert_false(exit_(10, 10));
	assert_true(exit_(10, 11));
	/* A thread execs: the others' exits come first, then it has the main thread's number. */
	assert_true(fork_(20, 1, 20));
	assert_false(fork_(20, 20, 21));
	assert_false(exit_(20, 20));
	assert_true(pass(DRIVER_LOAD_EXEC, 20, 0, 20));
	assert_true(exit_(20, 20));
	assert_int_equal(t.counts.nr, 0);
}

static void a_number_is_used_again(void **state)
{
	(void)state;
	assert_true(fork_(10, 1, 10));
	assert_false(fork_(10, 10, 11));
	/* The exits were lost. */
	assert_true(fork_(10, 1, 10));
	assert_true(exit_(10, 10));
}

static void forgotten_counts_are_not_trusted(void **state)
{
	(void)state;
	assert_true(fork_(10, 1, 10));
	assert_false(fork_(10, 10, 11));
	perf_threads_forget(&t);
	assert_false(exit_(10, 11));
	assert_true(exit_(10, 10));
}

static void read(enum driver_load_kind kind, int32_t pid, int32_t tid, uint64_t time_ns)
{
	const struct driver_load load = {
		.kind = kind, .time_ns = time_ns, .pid = pid, .tid = tid
	};

	perf_threads_read(&t, &load);
}

static void exit_at(int32_t pid, uint64_t time_ns)
{
	const struct driver_load load = {
		.kind = DRIVER_LOAD_EXIT, .time_ns = time_ns, .pid = pid, .ppid = 1, .tid = pid
	};

	perf_threads_pass(&t, &load);
}

/* An end is known from its reading until its turn comes; of a number that is used again the last
 * one is. */
static void ends_that_are_to_come(void **state)
{
	(void)state;
	read(DRIVER_LOAD_EXIT, 10, 11, 50);
	read(DRIVER_LOAD_EXEC, 10, 10, 60);
	assert_int_equal(perf_threads_end(&t, 10), 0);
	read(DRIVER_LOAD_EXIT, 10, 10, 100);
	read(DRIVER_LOAD_EXIT, 10, 10, 200);
	assert_int_equal(perf_threads_end(&t, 10), 200);
	assert_int_equal(perf_threads_end(&t, 11), 0);
	exit_at(10, 100);
	assert_int_equal(perf_threads_end(&t, 10), 200);
	exit_at(10, 200);
	assert_int_equal(perf_threads_end(&t, 10), 0);
	assert_int_equal(t.ends.nr, 0);
}

static void only_main_threads_name_the_process(void **state)
{
	(void)state;
	assert_true(pass(DRIVER_LOAD_COMM, 10, 0, 10));
	assert_false(pass(DRIVER_LOAD_COMM, 10, 0, 11));
	assert_true(pass(DRIVER_LOAD_MMAP, 10, 0, 11));
	assert_true(pass(DRIVER_LOAD_KSYMBOL, 0, 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_process_without_threads, reset),
		cmocka_unit_test_setup(the_last_thread_ends_the_process, reset),
		cmocka_unit_test_setup(an_old_process_ends_with_its_main_thread, reset),
		cmocka_unit_test_setup(exec_leaves_one_thread, reset),
		cmocka_unit_test_setup(a_number_is_used_again, reset),
		cmocka_unit_test_setup(forgotten_counts_are_not_trusted, reset),
		cmocka_unit_test_setup(ends_that_are_to_come, reset),
		cmocka_unit_test_setup(only_main_threads_name_the_process, reset),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	perf_threads_forget(&t);
	return r;
}
