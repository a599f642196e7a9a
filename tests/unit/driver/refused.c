/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said where counting in the kernel is refused before it has looked at the events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bpf_source.h"
#include "source.h"

/* As the linker names what stands in for bpf_open. */
int __wrap_bpf_open(const struct driver_config *config, struct driver **out, struct base_err *err);

static bool only_traces; /* they alone are refused */
static unsigned int nr_opens;

static void forget(struct driver *d)
{
	(void)d;
}

static const struct driver_ops ops = { .close = forget };
static struct driver counting;

int __wrap_bpf_open(const struct driver_config *config, struct driver **out, struct base_err *err)
{
	*out = NULL;
	nr_opens++;
	if (only_traces && config->trace_every)
		return base_fail(err, -DCPI_ENOEVENTS, "too much for this kernel");
	if (only_traces) {
		counting = (struct driver){ .ops = &ops, .describe = "bpf: it counts" };
		*out = &counting;
		return 0;
	}
	return base_fail(err, -DCPI_EUNSUPPORTED, "no counting in the kernel");
}

/* The error of opening @event with the default source; its code is what was returned. */
static struct base_err refusal(const char *event)
{
	const struct driver_config config = { .slots = &event, .nr_slots = 1 };
	struct base_err err = { 0 };
	struct driver *d;
	int r = driver_open(&config, &d, &err);

	assert_int_equal(r, err.code);
	assert_null(d);
	return err;
}

static void wrong_events_are_wrong_for_perf_too(void **state)
{
	static const char *const wrong[] = { "cyclez", "cpu-clock:q", "tick:u", "tick+cyclez",
					     "cpu-clock:1" };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct base_err err = refusal(wrong[i]);

		assert_int_equal(err.code, -DCPI_EUSAGE);
		assert_null(strstr(err.text, "no counting"));
	}
	assert_non_null(strstr(refusal("cyclez").text, "'cyclez'"));
}

static void what_only_bpf_can_fails_for_its_reason(void **state)
{
	static const char *const only[] = { "tick", "tick+cpu-clock" };

	(void)state;
	for (size_t i = 0; i < sizeof(only) / sizeof(only[0]); i++) {
		struct base_err err = refusal(only[i]);

		assert_int_equal(err.code, -DCPI_EUNSUPPORTED);
		assert_string_equal(err.text, "no counting in the kernel");
	}
}

/* The source is there without them, and says why. */
static struct driver *open_optional(const char *event)
{
	const struct driver_config config = { .source = "bpf",
					      .slots = &event,
					      .nr_slots = 1,
					      .trace_every = 16,
					      .trace_optional = true };
	struct driver *d = NULL;

	nr_opens = 0;
	only_traces = true;
	assert_int_equal(driver_open(&config, &d, NULL), 0);
	only_traces = false;
	assert_non_null(d);
	assert_false(driver_has_traces(d));
	assert_non_null(strstr(driver_describe(d), "bpf: it counts (no traces: "));
	return d;
}

static void optional_traces_may_be_refused(void **state)
{
	struct base_err err = { 0 };

	(void)state;
	if (driver_traces_possible(NULL, &err) < 0) {
		assert_non_null(strstr(driver_describe(open_optional("cpu-clock")), err.text));
		return;
	}
	assert_non_null(strstr(driver_describe(open_optional("cpu-clock")), "too much"));
	assert_int_equal(nr_opens, 2);
	/* Modifiers do not matter. */
	open_optional("cycles:u");
	assert_int_equal(nr_opens, 2);
	assert_non_null(strstr(driver_describe(open_optional("page-faults")),
			       "'page-faults', is not of time"));
	assert_int_equal(nr_opens, 1);
}

static void traces_that_were_asked_for_may_not(void **state)
{
	const char *const event = "page-faults";
	const struct driver_config config = {
		.source = "bpf", .slots = &event, .nr_slots = 1, .trace_every = 16
	};
	struct base_err err = { 0 };
	struct driver *d = NULL;

	(void)state;
	only_traces = true;
	assert_int_equal(driver_open(&config, &d, &err), -DCPI_ENOEVENTS);
	only_traces = false;
	assert_null(d);
	assert_string_equal(err.text, "too much for this kernel");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_events_are_wrong_for_perf_too),
		cmocka_unit_test(what_only_bpf_can_fails_for_its_reason),
		cmocka_unit_test(optional_traces_may_be_refused),
		cmocka_unit_test(traces_that_were_asked_for_may_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
