/* SPDX-License-Identifier: BSD-2-Clause */
/* How often samples get a trace where dcpid chooses: as often as the traces' part of the machine
 * allows. */
#include "fake_traces.h"
#include "fast_clock.h"
#include "trace_parts.h"

#define SECOND_NS 1000000000ull
#define PART	  550e-6 /* of all CPUs */

/* Two CPUs with a thousand samples a second each, and what a trace costs there. */
enum { NR_CPUS = 2, SAMPLES = 2000, EVERY = 32 };

struct machine {
	struct trace_pace pace;
	uint64_t now_ns;
	double cost_ns, spent_ns;
};

static struct machine machine_begin(double cost_ns)
{
	struct machine m = { .now_ns = 5, .cost_ns = cost_ns };

	trace_pace_begin(&m.pace, EVERY, NR_CPUS, m.now_ns);
	return m;
}

/* The cost of @seconds more, as a part of the CPUs. */
static double run(struct machine *m, unsigned int seconds)
{
	double before = m->spent_ns;

	for (unsigned int i = 0; i < seconds; i++) {
		m->now_ns += SECOND_NS;
		m->spent_ns += m->cost_ns * SAMPLES / m->pace.every;
		trace_pace_look(&m->pace, m->now_ns, (uint64_t)m->spent_ns);
	}
	return (m->spent_ns - before) / (1e9 * NR_CPUS * seconds);
}

static void check_between(double v, double low, double high)
{
	if (v < low || v > high)
		fail_msg("%g is not between %g and %g", v, low, high);
}

/* Whatever one costs there. */
static void the_part_is_kept(void **state)
{
	static const double costs[] = { 10e3, 40e3, 100e3, 170e3 };

	(void)state;
	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++) {
		struct machine m = machine_begin(costs[i]);

		/* A start that is not made good yet. */
		check_between(run(&m, 120), 0.9 * PART, 1.3 * PART);
		check_between(run(&m, 600), 0.97 * PART, 1.01 * PART);
	}
}

/* Few seconds have nearly as many as were asked for, also on a busy machine. */
static void it_begins_with_many(void **state)
{
	struct machine m = machine_begin(40e3), busy = machine_begin(110e3);

	(void)state;
	run(&m, 6);
	check_between(m.spent_ns / m.cost_ns, 6. * SAMPLES / EVERY, 6. * SAMPLES / 10);
	run(&busy, 6);
	check_between(busy.spent_ns / busy.cost_ns, 0.6 * 6 * SAMPLES / EVERY,
		      6. * SAMPLES / EVERY);
}

static void there_are_limits(void **state)
{
	struct machine cheap = machine_begin(1e3), dear = machine_begin(10e6);

	(void)state;
	run(&cheap, 60);
	assert_true(cheap.pace.every == 10);
	run(&dear, 60);
	assert_true(dear.pace.every == 512);
}

/* One that was idle all night has no more to spend than half a minute's. */
static void what_was_saved_is_limited(void **state)
{
	struct machine m = machine_begin(0);

	(void)state;
	run(&m, 8 * 3600);
	assert_true(m.pace.every == 10);
	m.cost_ns = 60e3;
	check_between(run(&m, 120), 0.9 * PART, (120. + 30 + 10) / 120 * PART);
	check_between(run(&m, 300), 0.95 * PART, 1.02 * PART);
}

/* A moment that cost too much is made good, but not forever. */
static void too_much_is_made_good(void **state)
{
	struct machine m = machine_begin(40e3);

	(void)state;
	run(&m, 60);
	m.spent_ns += 1e9;
	check_between(run(&m, 60), 0.2 * PART, 0.8 * PART);
	check_between(run(&m, 120), 0.5 * PART, 1.02 * PART);
	check_between(run(&m, 300), 0.97 * PART, 1.02 * PART);
}

/* The loop looks as often as it turns, and rests where nothing runs. */
static void looks_are_as_they_come(void **state)
{
	struct machine m = machine_begin(40e3);
	uint64_t since = m.now_ns;

	(void)state;
	assert_false(trace_pace_look(&m.pace, since + SECOND_NS - 1, 1000000000));
	assert_true(m.pace.every == EVERY);
	/* An hour later, in which so much was spent as it might. */
	assert_true(trace_pace_look(&m.pace, since + 3600 * SECOND_NS,
				    (uint64_t)(3600e9 * NR_CPUS * PART)));
	check_between(m.pace.every, 10, EVERY);
}

/* ---- of the daemon --------------------------------------------------------------------------- */

static int setup(void **state)
{
	struct trace_config config = fake_traces_config();
	struct base_err err = { 0 };
	int r = fake_traces_setup(state);

	trace_close(traces);
	stands = true;
	stride_ns = 0;
	config.nr_cpus = NR_CPUS;
	config.every = EVERY;
	return r < 0 ? r : trace_open(&config, &traces, &err);
}

/* The driver counts what they took in the interrupt. */
static void the_driver_is_told(void **state)
{
	uint32_t before;

	(void)state;
	assert_int_equal(trace_every(traces), EVERY);
	for (int i = 0; i < 20; i++) {
		ahead_ns += SECOND_NS;
		driver.stats.ran_ns += 20000000;
		trace_serve(traces);
	}
	assert_int_equal(driver.every, trace_every(traces));
	assert_in_range(driver.every, EVERY + 1, 512);
	before = driver.every;
	for (int i = 0; i < 200; i++) {
		ahead_ns += SECOND_NS;
		trace_serve(traces);
	}
	assert_int_equal(driver.every, trace_every(traces));
	assert_in_range(driver.every, 10, before - 1);
}

/* Where so many were asked for. */
static void some_paces_are_fixed(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		ahead_ns += SECOND_NS;
		driver.stats.ran_ns += 20000000;
		trace_serve(traces);
	}
	assert_int_equal(driver.every, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_part_is_kept),
		cmocka_unit_test(it_begins_with_many),
		cmocka_unit_test(there_are_limits),
		cmocka_unit_test(what_was_saved_is_limited),
		cmocka_unit_test(too_much_is_made_good),
		cmocka_unit_test(looks_are_as_they_come),
		cmocka_unit_test_setup_teardown(the_driver_is_told, setup, fake_traces_teardown),
		cmocka_unit_test_setup_teardown(some_paces_are_fixed, fake_traces_setup,
						fake_traces_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
