/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPUs of two kinds, of which this machine has none: perf_event_open is answered as there, by cores
 * of which only CPU 1's has raw events. A clock stands for what it counts.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "check_internal.h"
#include "perf_internal.h"
#include "work.h"

/* As the linker names what stands in for syscall(2), and the true one. */
long __wrap_syscall(long nr, ...);
long __real_syscall(long nr, ...);

enum { CPU = 1 };

static struct perf_event_attr last; /* of the raw event that was asked for last */
static unsigned int nr_kinds = 2;

static long open_event(const struct perf_event_attr *attr, int pid, int cpu, int group, long flags)
{
	struct perf_event_attr own = *attr;

	if (attr->type == PERF_TYPE_RAW) {
		last = *attr;
		if (cpu != CPU || nr_kinds < 2) {
			errno = ENOENT;
			return -1;
		}
		own.type = PERF_TYPE_SOFTWARE;
		own.config = PERF_COUNT_SW_CPU_CLOCK;
		own.exclude_guest = 0;
	}
	return __real_syscall(SYS_perf_event_open, &own, pid, cpu, group, flags);
}

long __wrap_syscall(long nr, ...)
{
	long a[6];
	va_list args;

	va_start(args, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (nr == SYS_perf_event_open)
		return open_event((const struct perf_event_attr *)a[0], (int)a[1], (int)a[2],
				  (int)a[3], a[4]);
	return __real_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int on_load(void *ctx, const struct driver_load *load)
{
	(void)ctx;
	(void)load;
	return 0;
}

static int on_count(void *ctx, const struct driver_count *count)
{
	uint64_t *counts = ctx;

	counts[count->event] += count->count;
	return 0;
}

/* Where there are samples to be had: 50 ms, and until both events had most of the time. */
static void spin(struct driver *d, const struct driver_sink *sink)
{
	struct work w = { 0 };
	cpu_set_t old, one;

	CPU_ZERO(&one);
	CPU_SET(CPU, &one);
	assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	while (work_ms(&w) < 50 ||
	       (driver_event_get(d, 1)->enabled <= 0.8 && work_ms(&w) < 20000)) {
		if (work_ms(&w) >= 50)
			assert_int_equal(driver_drain(d, false, sink, NULL), 0);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
}

/* Counted on its kind of CPU, all of the time there is: nothing was multiplexed. */
static void an_event_of_some_cpus_is_counted_there(void **state)
{
	const struct driver_config config = { .source = "perf",
					      .slots = (const char *const[]){ "cpu-clock+r1" },
					      .nr_slots = 1 };
	uint64_t counts[DRIVER_NR_EVENTS] = { 0 };
	const struct driver_sink sink = { .load = on_load, .count = on_count, .ctx = counts };
	struct base_err err = { 0 };
	struct driver *d;
	char text[200];

	(void)state;
	nr_kinds = 2;
	if (driver_open(&config, &d, &err) < 0)
		fail_msg("%s", err.text);
	snprintf(text, sizeof(text),
		 "perf: cpu-clock at 1000 Hz + r1 at 1000 Hz (not on %ld) on %ld CPUs",
		 sysconf(_SC_NPROCESSORS_ONLN) - 1, sysconf(_SC_NPROCESSORS_ONLN));
	assert_string_equal(driver_describe(d), text);
	assert_int_equal(driver_start(d, NULL), 0);
	spin(d, &sink);
	driver_stop(d);
	assert_int_equal(driver_drain(d, true, &sink, NULL), 0);
	assert_true(counts[0] > 0 && counts[1] > 0);
	/*
	 * Events start one after another, so a machine with other work to do takes parts of a short
	 * time from one of them. Had the other CPU been counted, it were half of this for ever.
	 */
	assert_true(driver_event_get(d, 1)->enabled > 0.75);
	driver_close(d);
}

static void an_event_of_no_cpu_is_refused(void **state)
{
	const struct driver_config config = { .source = "perf",
					      .slots = (const char *const[]){ "cpu-clock+r1" },
					      .nr_slots = 1 };
	struct base_err err = { 0 };
	struct driver *d;

	(void)state;
	nr_kinds = 1;
	assert_int_equal(driver_open(&config, &d, &err), -DCPI_ENOEVENTS);
	assert_string_equal(err.text,
			    "cannot sample 'r1' on all CPUs: this machine has no such event");
}

/* Whatever CPU we run on, and as the driver would ask. */
static void probes_ask_for_what_will_be_asked_for(void **state)
{
	struct event_spec spec;
	int error;

	(void)state;
	nr_kinds = 2;
	assert_int_equal(event_parse("r1:u", NULL, &spec, NULL), 0);
	assert_int_equal(check_event_try(&spec, 250, &error), CHECK_SYSTEM);
	assert_int_equal(last.freq, 1);
	assert_int_equal(last.sample_freq, 250);
	assert_int_equal(last.exclude_guest, 1);
	assert_int_equal(last.sample_type, PERF_SAMPLES);
	assert_int_equal(check_event_try(&spec, UINT32_MAX, &error), CHECK_REFUSED);
	assert_int_equal(error, ERANGE);
	assert_true(last.sample_freq < UINT32_MAX);
	nr_kinds = 1;
	assert_int_equal(check_event_try(&spec, 0, &error), CHECK_REFUSED);
	assert_int_equal(error, ENOENT);
	assert_int_equal(last.sample_freq, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_of_some_cpus_is_counted_there),
		cmocka_unit_test(an_event_of_no_cpu_is_refused),
		cmocka_unit_test(probes_ask_for_what_will_be_asked_for),
	};
	struct base_err err = { 0 };
	struct driver *d;
	int r = driver_open(&(struct driver_config){ .source = "perf" }, &d, &err);

	if (r == -DCPI_ENOEVENTS) {
		base_err_print(&err, "skipped", stdout);
		return BASE_EXIT_SKIP;
	}
	if (r < 0)
		return 1;
	driver_close(d);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		puts("skipped: one CPU is of one kind");
		return BASE_EXIT_SKIP;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
