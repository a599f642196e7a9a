/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "stand_ins.h"

static struct trial t;
static char told[512];
static unsigned int nr_calls;
static int32_t told_pid;

/* What the driver was told, as "1-2 5-9" (pages). */
static int set(struct driver *d, int32_t pid, const struct driver_range *ranges, size_t nr)
{
	size_t len = 0;

	assert_ptr_equal(d, &t);
	assert_true(nr <= DRIVER_NR_RANGES);
	nr_calls++;
	told_pid = pid;
	told[0] = '\0';
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(ranges[i].words, 0);
		len += (size_t)snprintf(told + len, sizeof(told) - len, "%s%x-%x", i ? " " : "",
					(unsigned int)(ranges[i].start >> 12),
					(unsigned int)(ranges[i].end >> 12));
	}
	return 0;
}

static int setup(void **state)
{
	(void)state;
	trial_open(&t);
	t.a.driver = (struct driver *)&t;
	t.a.ranges_set = set;
	nr_calls = 0;
	told[0] = '\0';
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	trial_close(&t);
	return 0;
}

static void anon(int32_t pid, uint64_t page, uint64_t nr)
{
	trial_mmap(&t, pid, page << 12, nr << 12, 0, "//anon", 0);
}

static void attach(int32_t pid)
{
	trial_mmap(&t, pid, 0x7000000, 0x1000, 0, "/memfd:dbgdyn (deleted)", 0);
}

static void whoever_is_registered(void **state)
{
	(void)state;
	anon(10, 1, 2);
	trial_mmap(&t, 10, 0x8000, 0x1000, 0, "/bin/a", 1);
	ranges_tell(&t.a);
	assert_int_equal(nr_calls, 0);
	stand_ins.code_virgin = true;
	attach(10);
	ranges_tell(&t.a);
	assert_int_equal(nr_calls, 0);
	/* An address gets its second routine: the registry had news. */
	stand_ins.code_virgin = false;
	t.a.ranges_changed = true;
	ranges_tell(&t.a);
	assert_string_equal(told, "1-3");
	assert_int_equal(told_pid, 10);
	/* Nothing new: nothing told. */
	ranges_tell(&t.a);
	anon(10, 1, 1);
	ranges_tell(&t.a);
	assert_int_equal(nr_calls, 1);
	anon(10, 3, 1);
	anon(10, 5, 1);
	/* What its registry says of addresses whose mapping is not known. */
	stand_ins.code_start = 0x20000;
	stand_ins.code_end = 0x21000;
	ranges_tell(&t.a);
	assert_string_equal(told, "1-4 5-6 20-21");
	/* A file in its place: nothing tells whether dynamic code comes back. */
	trial_mmap(&t, 10, 0x1000, 0x5000, 0, "/bin/a", 1);
	ranges_tell(&t.a);
	assert_int_equal(nr_calls, 2);
	/* The kernel's addresses are no process's. */
	anon(10, 0xffffffffff600, 1);
	ranges_tell(&t.a);
	assert_int_equal(nr_calls, 2);
}

static void nearest_are_joined(void **state)
{
	static const uint64_t pages[] = {
		0x10, 0x20, 0x30, 0x38, 0x50, 0x60, 0x70, 0x7c, 0x90, 0xa0
	};

	(void)state;
	attach(10);
	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		anon(10, pages[i], 1);
	ranges_tell(&t.a);
	assert_string_equal(told, "10-11 20-21 30-39 50-51 60-61 70-7d 90-91 a0-a1");
}

static void children_and_ends(void **state)
{
	(void)state;
	attach(10);
	anon(10, 1, 1);
	ranges_tell(&t.a);
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	ranges_tell(&t.a);
	assert_int_equal(told_pid, 11);
	assert_string_equal(told, "1-2");
	assert_int_equal(nr_calls, 2);
	trial_event(&t, DRIVER_LOAD_EXIT, 11, 0);
	attrib_resolve(&t.a, 0);
	assert_int_equal(nr_calls, 3);
	assert_int_equal(told_pid, 11);
	assert_string_equal(told, "");
	/* The life after an exec has told of itself before the one before is let go. */
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	attach(10);
	anon(10, 4, 1);
	ranges_tell(&t.a);
	assert_string_equal(told, "4-5");
	attrib_resolve(&t.a, 0);
	assert_int_equal(nr_calls, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(whoever_is_registered),
		TEST(nearest_are_joined),
		TEST(children_and_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
