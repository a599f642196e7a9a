/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "perf_internal.h"

static struct perf_event_attr attr;

static const struct event_spec cycles = { .name = "cycles",
					  .type = PERF_TYPE_HARDWARE,
					  .config = PERF_COUNT_HW_CPU_CYCLES };
static const struct event_spec clock_event = { .name = "cpu-clock",
					       .type = PERF_TYPE_SOFTWARE,
					       .config = PERF_COUNT_SW_CPU_CLOCK,
					       .clock = true };
/* As a PMU of some CPU takes it. */
static const struct event_spec precise = { .name = "ibs_op:u",
					   .type = 11,
					   .config = 0x80001,
					   .config1 = 0x22,
					   .config2 = 0x33,
					   .period = 250000,
					   .precise = 2,
					   .exclude_kernel = true,
					   .exclude_hv = true };

enum { TOLD = PERF_SAMPLE_RAW | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC };
enum { TIMES = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING };

/* What all events must have, or records of one ring would not end alike. */
static void check_common(void)
{
	assert_int_equal(attr.size, sizeof(attr));
	assert_int_equal(attr.sample_type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
						   PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
	assert_int_equal(attr.disabled, 1);
	assert_int_equal(attr.sample_id_all, 1);
	assert_int_equal(attr.use_clockid, 1);
	assert_int_equal(attr.clockid, CLOCK_MONOTONIC);
	assert_int_equal(attr.inherit, 0);
}

static void specs_become_attributes(void **state)
{
	struct event_spec of_kernel = precise;

	(void)state;
	of_kernel.exclude_user = true;
	of_kernel.exclude_kernel = of_kernel.exclude_hv = false;
	perf_attr_sampling(&attr, &clock_event, 250000, 4000, -1, PERF_USE_ALL);
	check_common();
	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(attr.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_int_equal(attr.freq, 0);
	assert_int_equal(attr.sample_period, 250000);
	assert_int_equal(attr.exclude_guest, 0);
	assert_int_equal(attr.mmap | attr.comm | attr.task | attr.ksymbol | attr.text_poke, 0);
	assert_int_equal(attr.read_format, TIMES | PERF_FORMAT_LOST);

	perf_attr_sampling(&attr, &cycles, 0, 4000, -1, PERF_USE_ALL);
	check_common();
	assert_int_equal(attr.type, PERF_TYPE_HARDWARE);
	assert_int_equal(attr.freq, 1);
	assert_int_equal(attr.sample_freq, 4000);
	assert_int_equal(attr.exclude_guest, 1);
	assert_int_equal(attr.exclude_kernel | attr.exclude_user | attr.exclude_hv, 0);

	perf_attr_sampling(&attr, &precise, 250000, 4000, -1, PERF_USE_ALL);
	assert_int_equal(attr.sample_type & TOLD, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC);
	attr.sample_type &= ~(uint64_t)TOLD;
	check_common();
	assert_int_equal(attr.type, 11);
	assert_int_equal(attr.config, 0x80001);
	assert_int_equal(attr.config1, 0x22);
	assert_int_equal(attr.config2, 0x33);
	assert_int_equal(attr.precise_ip, 2);
	assert_int_equal(attr.freq, 0);
	assert_int_equal(attr.sample_period, 250000);
	assert_true(attr.exclude_kernel && attr.exclude_hv && !attr.exclude_user);

	perf_attr_sampling(&attr, &of_kernel, 250000, 4000, -1, PERF_USE_ALL);
	assert_true(attr.exclude_user && !attr.exclude_kernel && !attr.exclude_hv);
}

/* Behind what all samples have, the kernel gives what the hardware tells of the instruction. */
static void attributes_ask_for_what_the_hardware_tells(void **state)
{
	struct event_spec ibs = precise;

	(void)state;
	ibs.precise = 0;
	for (enum event_hardware h = EVENT_HW_IBS_OP; h <= EVENT_HW_IBS_FETCH; h++) {
		ibs.hardware = h;
		perf_attr_sampling(&attr, &ibs, 250000, 4000, -1, PERF_USE_ALL);
		assert_int_equal(attr.sample_type & TOLD, PERF_SAMPLE_RAW);
	}
	perf_attr_sampling(&attr, &cycles, 0, 4000, -1, PERF_USE_ALL);
	assert_int_equal(attr.sample_type & TOLD, 0);
}

/* The kernel takes it, and puts nothing into a ring. */
static void traces_of_hardware_are_refused(void **state)
{
	static const struct event_spec spe = {
		.name = "arm_spe_0//", .type = 9, .slots = 1, .hardware = EVENT_HW_SPE
	};
	const struct driver_config config = { 0 };
	struct perf_sampler *s = calloc(1, sizeof(*s));
	struct driver d = { 0 };
	struct base_err err = { 0 };

	(void)state;
	assert_non_null(s);
	assert_int_equal(perf_sampler_open(s, &d, &config, &spe, 1, NULL, "", &err), -DCPI_EUSAGE);
	assert_non_null(strstr(err.text, "cannot sample 'arm_spe_0//' live"));
	assert_non_null(strstr(err.hint, "dcpid -replay"));
	perf_sampler_close(s);
	free(s);
}

static void periods_are_told_or_follow_from_the_rate(void **state)
{
	struct event_spec spec = clock_event;

	(void)state;
	assert_int_equal(perf_spec_period(&clock_event, 4000), 250000);
	assert_int_equal(perf_spec_period(&cycles, 4000), 0);
	assert_int_equal(perf_spec_period(&precise, 4000), 250000);
	spec.period = 12345;
	assert_int_equal(perf_spec_period(&spec, 4000), 12345);
}

static void tracking_asks_for_all_load_events(void **state)
{
	(void)state;
	perf_attr_tracking(&attr, 8192, -1, PERF_USE_ALL);
	check_common();
	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(attr.config, PERF_COUNT_SW_DUMMY);
	assert_int_equal(attr.watermark, 1);
	assert_int_equal(attr.wakeup_watermark, 4096);
	assert_true(attr.mmap && attr.mmap2 && attr.build_id && attr.comm && attr.comm_exec &&
		    attr.task && attr.ksymbol && attr.text_poke);
	assert_int_equal(attr.mmap_data, 0);
	assert_int_equal(attr.read_format, TIMES | PERF_FORMAT_LOST);
}

/* What paranoid level 2 lets every user ask for. */
static void a_process_is_seen_in_user_mode_alone(void **state)
{
	(void)state;
	perf_attr_tracking(&attr, 8192, 4711, PERF_USE_ALL);
	assert_true(attr.inherit && attr.exclude_kernel && attr.exclude_hv && !attr.exclude_user);
	assert_true(attr.mmap && attr.mmap2 && attr.build_id && attr.comm && attr.comm_exec &&
		    attr.task);
	assert_int_equal(attr.ksymbol | attr.text_poke, 0);
	perf_attr_sampling(&attr, &clock_event, 250000, 4000, 4711, PERF_USE_ALL);
	assert_true(attr.inherit && attr.exclude_kernel && attr.exclude_hv && !attr.exclude_user);
}

static void features_can_be_given_up(void **state)
{
	(void)state;
	perf_attr_tracking(&attr, 8192, -1, PERF_USE_ALL & ~PERF_USE_LOST);
	assert_int_equal(attr.read_format, TIMES);
	assert_int_equal(attr.build_id, 1);
	perf_attr_tracking(&attr, 8192, -1, PERF_USE_ALL & ~PERF_USE_BUILD_ID);
	assert_int_equal(attr.build_id, 0);
	assert_true(attr.ksymbol && attr.text_poke);
	perf_attr_tracking(&attr, 8192, -1, PERF_USE_ALL & ~PERF_USE_POKE);
	assert_int_equal(attr.text_poke, 0);
	assert_int_equal(attr.ksymbol, 1);
	perf_attr_tracking(&attr, 8192, -1, 0);
	check_common();
	assert_int_equal(attr.ksymbol | attr.build_id | attr.text_poke, 0);
	assert_true(attr.mmap && attr.mmap2 && attr.comm && attr.comm_exec && attr.task);
	perf_attr_sampling(&attr, &cycles, 0, 1000, -1, PERF_USE_LOST);
	assert_int_equal(attr.read_format, TIMES | PERF_FORMAT_LOST);
	assert_int_equal(attr.exclude_guest, 0);
	perf_attr_sampling(&attr, &cycles, 0, 1000, -1, 0);
	assert_int_equal(attr.read_format, TIMES);
}

static void the_newest_feature_is_given_up_first(void **state)
{
	int f = PERF_USE_ALL;

	(void)state;
	f = perf_attr_fallback((unsigned int)f, PERF_USE_KERNEL, EINVAL);
	assert_int_equal(f, PERF_USE_ALL & ~PERF_USE_LOST);
	f = perf_attr_fallback((unsigned int)f, PERF_USE_KERNEL, E2BIG);
	assert_int_equal(f, PERF_USE_POKE | PERF_USE_KSYMBOL | PERF_USE_EXCLUDE_GUEST);
	f = perf_attr_fallback((unsigned int)f, PERF_USE_KERNEL, EINVAL);
	assert_int_equal(f, PERF_USE_KSYMBOL | PERF_USE_EXCLUDE_GUEST);
	f = perf_attr_fallback((unsigned int)f, PERF_USE_KERNEL, EINVAL);
	assert_int_equal(f, PERF_USE_EXCLUDE_GUEST);
	assert_int_equal(perf_attr_fallback((unsigned int)f, PERF_USE_KERNEL, EINVAL), -1);
	assert_int_equal(perf_attr_fallback((unsigned int)f, PERF_USE_EXCLUDE_GUEST, EOPNOTSUPP),
			 0);
	assert_int_equal(perf_attr_fallback(PERF_USE_ALL, PERF_USE_ALL, EACCES), -1);
	assert_int_equal(perf_attr_fallback(PERF_USE_ALL, PERF_USE_ALL, ENOENT), -1);
}

static void rates_above_the_limit_are_refused(void **state)
{
	struct event_spec specs[] = { cycles, clock_event };
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(perf_rate_check(specs, 2, 4000, 4000, &err), 0);
	assert_int_equal(perf_rate_check(specs, 2, 4000, 0, &err), 0);
	assert_int_equal(perf_rate_check(specs, 2, 4001, 4000, &err), -DCPI_EUSAGE);
	assert_string_equal(err.text, "cannot sample 'cycles' 4001 times a second: "
				      "kernel.perf_event_max_sample_rate is 4000");
	assert_non_null(strstr(err.hint, "sysctl kernel.perf_event_max_sample_rate=4001"));
	/* A clock by its period: 200 us are 5000 a second. Of others a period tells no rate. */
	specs[0].period = specs[1].period = 200000;
	err = (struct base_err){ 0 };
	assert_int_equal(perf_rate_check(specs, 2, 1000, 5000, &err), 0);
	assert_int_equal(perf_rate_check(specs, 2, 1000, 4999, &err), -DCPI_EUSAGE);
	assert_non_null(strstr(err.text, "'cpu-clock' 5000 times a second"));
	specs[1].tick = true;
	assert_int_equal(perf_rate_check(specs, 2, 1000, 4999, &err), 0);
}

static void a_rate_that_no_event_takes_is_told(void **state)
{
	struct event_spec specs[] = { cycles, clock_event };

	(void)state;
	assert_string_equal(perf_rate_unused(specs, 2), "");
	specs[0].period = 200000;
	assert_string_equal(perf_rate_unused(specs, 2), "");
	assert_string_equal(perf_rate_unused(specs, 1),
			    " (no event takes the rate: each has its own)");
	specs[1].tick = true;
	assert_string_equal(perf_rate_unused(specs, 2),
			    " (no event takes the rate: each has its own)");
}

/* A rate that nobody asked for is no reason to sample nothing. */
static void the_usual_rate_gives_way(void **state)
{
	(void)state;
	assert_int_equal(perf_frequency(0, 0), PERF_FREQUENCY);
	assert_int_equal(perf_frequency(0, 100000), PERF_FREQUENCY);
	assert_int_equal(perf_frequency(0, 500), 500);
	assert_int_equal(perf_frequency(4000, 500), 4000);
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
		  "cycles" },
		{ { .frequency = 100001 }, "frequency 100001 is above 100000", "" },
		{ { .ring_pages = 3 }, "ring of 3 pages: not a power of two", "" },
		{ { .source = "perf", .slots = (const char *const[]){ "tick" }, .nr_slots = 1 },
		  "cannot sample 'tick' with the source 'perf'",
		  "cpu-clock" },
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
		cmocka_unit_test(specs_become_attributes),
		cmocka_unit_test(attributes_ask_for_what_the_hardware_tells),
		cmocka_unit_test(traces_of_hardware_are_refused),
		cmocka_unit_test(periods_are_told_or_follow_from_the_rate),
		cmocka_unit_test(tracking_asks_for_all_load_events),
		cmocka_unit_test(a_process_is_seen_in_user_mode_alone),
		cmocka_unit_test(features_can_be_given_up),
		cmocka_unit_test(the_newest_feature_is_given_up_first),
		cmocka_unit_test(rates_above_the_limit_are_refused),
		cmocka_unit_test(a_rate_that_no_event_takes_is_told),
		cmocka_unit_test(the_usual_rate_gives_way),
		cmocka_unit_test(cpu_lists_are_read),
		cmocka_unit_test(bad_wishes_are_usage_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
