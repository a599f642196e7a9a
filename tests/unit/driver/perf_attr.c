/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "perf_internal.h"

static struct perf_event_attr attr;

/* What both events must have, or records of one ring would not end alike. */
static void check_common(void)
{
	assert_int_equal(attr.size, sizeof(attr));
	assert_int_equal(attr.sample_type, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
	assert_int_equal(attr.disabled, 1);
	assert_int_equal(attr.sample_id_all, 1);
	assert_int_equal(attr.watermark, 1);
	assert_int_equal(attr.wakeup_watermark, 4096);
	assert_int_equal(attr.use_clockid, 1);
	assert_int_equal(attr.clockid, CLOCK_MONOTONIC);
	assert_int_equal(attr.inherit, 0);
}

static void each_name_is_its_event(void **state)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
		bool clock;
	} want[] = {
		{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false },
		{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false },
		{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false },
		{ "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false },
		{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true },
		{ "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const struct perf_kind *kind = perf_kind_find(want[i].name);

		assert_non_null(kind);
		assert_non_null(strstr(perf_kind_names(), want[i].name));
		perf_attr_sampling(&attr, kind, 4000, 8192, PERF_USE_ALL);
		check_common();
		assert_int_equal(attr.type, want[i].type);
		assert_int_equal(attr.config, want[i].config);
		assert_int_equal(attr.freq, !want[i].clock);
		assert_int_equal(attr.sample_period, want[i].clock ? 250000 : 4000);
		assert_int_equal(attr.exclude_guest, !want[i].clock);
		assert_int_equal(attr.mmap | attr.comm | attr.task | attr.ksymbol, 0);
	}
	assert_null(perf_kind_find("cycle"));
	assert_null(perf_kind_find(""));
}

static void tracking_asks_for_all_load_events(void **state)
{
	(void)state;
	perf_attr_tracking(&attr, 8192, PERF_USE_ALL);
	check_common();
	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(attr.config, PERF_COUNT_SW_DUMMY);
	assert_true(attr.mmap && attr.mmap2 && attr.build_id && attr.comm && attr.comm_exec &&
		    attr.task && attr.ksymbol);
	assert_int_equal(attr.mmap_data, 0);
	assert_int_equal(attr.read_format, PERF_FORMAT_LOST);
}

static void features_can_be_given_up(void **state)
{
	const struct perf_kind *cycles = perf_kind_find("cycles");

	(void)state;
	perf_attr_tracking(&attr, 8192, PERF_USE_ALL & ~PERF_USE_LOST);
	assert_int_equal(attr.read_format, 0);
	assert_int_equal(attr.build_id, 1);
	perf_attr_tracking(&attr, 8192, PERF_USE_ALL & ~PERF_USE_BUILD_ID);
	assert_int_equal(attr.build_id, 0);
	assert_int_equal(attr.ksymbol, 1);
	perf_attr_tracking(&attr, 8192, 0);
	check_common();
	assert_int_equal(attr.ksymbol | attr.build_id, 0);
	assert_true(attr.mmap && attr.mmap2 && attr.comm && attr.comm_exec && attr.task);
	perf_attr_sampling(&attr, cycles, 1000, 8192, PERF_USE_LOST);
	assert_int_equal(attr.read_format, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_LOST);
	assert_int_equal(attr.exclude_guest, 0);
	perf_attr_sampling(&attr, cycles, 1000, 8192, 0);
	assert_int_equal(attr.read_format, PERF_FORMAT_TOTAL_TIME_ENABLED);
}

static void the_newest_feature_is_given_up_first(void **state)
{
	int f = PERF_USE_ALL;

	(void)state;
	f = perf_attr_fallback((unsigned int)f, PERF_USE_KERNEL, EINVAL);
	assert_int_equal(f, PERF_USE_BUILD_ID | PERF_USE_KSYMBOL | PERF_USE_EXCLUDE_GUEST);
	f = perf_attr_fallback((unsigned int)f, PERF_USE_KERNEL, E2BIG);
	assert_int_equal(f, PERF_USE_KSYMBOL | PERF_USE_EXCLUDE_GUEST);
	f = perf_attr_fallback((unsigned int)f, PERF_USE_KERNEL, EINVAL);
	assert_int_equal(f, PERF_USE_EXCLUDE_GUEST);
	assert_int_equal(perf_attr_fallback((unsigned int)f, PERF_USE_KERNEL, EINVAL), -1);
	assert_int_equal(perf_attr_fallback((unsigned int)f, PERF_USE_EXCLUDE_GUEST, EOPNOTSUPP),
			 0);
	assert_int_equal(perf_attr_fallback(PERF_USE_ALL, PERF_USE_ALL, EACCES), -1);
	assert_int_equal(perf_attr_fallback(PERF_USE_ALL, PERF_USE_ALL, ENOENT), -1);
}

static void cpu_lists_are_read(void **state)
{
	static const char *const bad[] = {
		"",   "x",	 "1-",	 "-1",	  "3-1",
		"1,", ",1",	 "1 2",	 "1--2",  "+1",
		" 1", "1000000", "0-3x", "1-2-3", "99999999999999999999"
	};
	unsigned int cpus[8];

	(void)state;
	assert_int_equal(perf_cpus_parse("0\n", cpus, 8), 1);
	assert_int_equal(cpus[0], 0);
	assert_int_equal(perf_cpus_parse("0-2,5,7-8\n", cpus, 8), 6);
	assert_int_equal(cpus[2], 2);
	assert_int_equal(cpus[3], 5);
	assert_int_equal(cpus[5], 8);
	assert_int_equal(perf_cpus_parse("0-999999", cpus, 8), 8);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(perf_cpus_parse(bad[i], cpus, 8), -EINVAL);
}

static void bad_wishes_are_usage_errors(void **state)
{
	struct {
		struct driver_config config;
		const char *text, *hint;
	} bad[] = {
		{ { .source = "oracle" }, "unknown source of samples 'oracle'", "perf, replay" },
		{ { .slots = (const char *const[]){ "cycels" }, .nr_slots = 1 },
		  "unknown event 'cycels'",
		  "cycles, instructions" },
		{ { .frequency = 100001 }, "frequency 100001 is above 100000", "" },
		{ { .ring_pages = 3 }, "ring of 3 pages: not a power of two", "" },
		{ { .source = "replay" }, "no file to replay", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct base_err err = { 0 };
		struct driver *d = (void *)&err;

		assert_int_equal(driver_open(&bad[i].config, &d, &err), -DCPI_EUSAGE);
		assert_null(d);
		assert_non_null(strstr(err.text, bad[i].text));
		assert_non_null(strstr(err.hint, bad[i].hint));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_name_is_its_event),
		cmocka_unit_test(tracking_asks_for_all_load_events),
		cmocka_unit_test(features_can_be_given_up),
		cmocka_unit_test(the_newest_feature_is_given_up_first),
		cmocka_unit_test(cpu_lists_are_read),
		cmocka_unit_test(bad_wishes_are_usage_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
