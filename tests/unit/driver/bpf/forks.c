/* SPDX-License-Identifier: BSD-2-Clause */
/* FORK events and what was read at them, brought together: no kernel is needed for that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bpf_internal.h"
#include "kernel/sample.h"

static struct bpf_forks forks;

static int release(void **state)
{
	(void)state;
	bpf_forks_release(&forks);
	return 0;
}

/* Milliseconds. */
static void tell(uint64_t begun, uint64_t time, uint32_t parent, uint32_t child, uint64_t cursor)
{
	bpf_forks_add(&forks, &(struct sample_fork){ .begun_ns = begun * 1000000,
						     .time_ns = time * 1000000,
						     .cursor = cursor,
						     .parent = parent,
						     .child = child });
}

/* The cursor of that event, or -1. */
static int64_t cursor_of(uint64_t time, int32_t parent, int32_t child)
{
	struct driver_load load = {
		.kind = DRIVER_LOAD_FORK, .time_ns = time * 1000000, .pid = child, .ppid = parent
	};

	bpf_forks_tell(&forks, &load);
	return load.flags & DRIVER_LOAD_CURSOR ? (int64_t)load.cursor : -1;
}

static void each_fork_finds_its_own(void **state)
{
	(void)state;
	assert_int_equal(cursor_of(10, 1, 2), -1);
	tell(20, 30, 1, 3, 300);
	tell(10, 40, 1, 2, 200);
	tell(60, 70, 1, 3, 301);
	tell(60, 70, 9, 4, 400);
	assert_int_equal(cursor_of(25, 1, 3), 300);
	assert_int_equal(cursor_of(40, 1, 2), 200);
	assert_int_equal(cursor_of(10, 1, 2), 200);
	assert_int_equal(cursor_of(61, 1, 3), 301);
	/* Of another parent; of a child that nothing was told of. */
	assert_int_equal(cursor_of(61, 1, 4), -1);
	assert_int_equal(cursor_of(61, 9, 4), 400);
	assert_int_equal(cursor_of(61, 1, 5), -1);
}

/* Another life of the same pid, of the same parent, is not taken for one that nobody told of. */
static void a_lost_one_is_missing(void **state)
{
	(void)state;
	tell(60, 70, 1, 3, 301);
	assert_int_equal(cursor_of(25, 1, 3), -1);
	assert_int_equal(cursor_of(80, 1, 3), -1);
	assert_int_equal(cursor_of(65, 1, 3), 301);
}

static void what_was_handed_on_is_dropped(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		tell(i, i + 1, 1, 1000 - i, i);
	assert_int_equal(cursor_of(7, 1, 993), 7);
	bpf_forks_drop(&forks, 500 * 1000000);
	assert_int_equal(forks.nr, 500);
	assert_int_equal(cursor_of(7, 1, 993), -1);
	assert_int_equal(cursor_of(500, 1, 500), 500);
	tell(2000, 2001, 1, 5, 77);
	assert_int_equal(cursor_of(2000, 1, 5), 77);
	bpf_forks_drop(&forks, UINT64_MAX);
	assert_int_equal(forks.nr, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_fork_finds_its_own, release),
		cmocka_unit_test_teardown(a_lost_one_is_missing, release),
		cmocka_unit_test_teardown(what_was_handed_on_is_dropped, release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
