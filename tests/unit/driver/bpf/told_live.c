/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Beside events that the kernel counts, one whose samples have what the hardware tells: they come
 * through the rings. No hardware here tells, so a clock is taken for IBS: its raw data are empty,
 * and each sample says that they make no sense.
 */
#include "live.h"

int __real_perf_specs_choose(const struct driver_config *config, struct event_spec *out,
			     const char **why, struct base_err *err);
int __wrap_perf_specs_choose(const struct driver_config *config, struct event_spec *out,
			     const char **why, struct base_err *err);

int __wrap_perf_specs_choose(const struct driver_config *config, struct event_spec *out,
			     const char **why, struct base_err *err)
{
	int nr = __real_perf_specs_choose(config, out, why, err);

	if (nr == 2) {
		out[1].hardware = EVENT_HW_IBS_OP;
		out[1].told = true;
	}
	return nr;
}

static uint64_t told[2], untold[2];

static int on_told(void *ctx, const struct driver_count *c)
{
	if (c->insn && c->insn->bits == ISAMPLE_BIT(ISAMPLE_UNREADABLE))
		told[c->event] += c->count;
	else
		untold[c->event] += c->count;
	return on_count(ctx, c);
}

static void drain_told(struct seen *s)
{
	const struct driver_sink sink = { .load = on_load, .count = on_told, .ctx = s };
	struct base_err err = { 0 };

	assert_true(driver_drain(d, true, &sink, &err) >= 0);
	check_law(s);
}

static void told_samples_come_among_the_counts(void **state)
{
	static const char *const slots[] = { "cpu-clock+cpu-clock:u" };
	struct seen s = { .pid = getpid() };
	struct driver_stats st;

	(void)state;
	start(&(struct driver_config){ .slots = slots, .nr_slots = 1 });
	for (int i = 0; i < 500 && (told[1] < 100 || untold[0] < 100); i++) {
		spin(20);
		drain_told(&s);
	}
	driver_stop(d);
	drain_told(&s);
	st = check_law(&s);
	assert_true(told[1] >= 100 && untold[0] >= 100);
	assert_int_equal(told[0] + untold[1], 0);
	assert_int_equal(st.received[1], told[1]);
	assert_int_equal(st.received[0], untold[0] + lost(&st));
	assert_int_equal(st.held, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { LIVE_TEST(told_samples_come_among_the_counts) };
	int code = live_begin(argc, argv);

	return code >= 0 ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
