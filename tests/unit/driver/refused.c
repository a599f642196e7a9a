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

int __wrap_bpf_open(const struct driver_config *config, struct driver **out, struct base_err *err)
{
	(void)config;
	*out = NULL;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_events_are_wrong_for_perf_too),
		cmocka_unit_test(what_only_bpf_can_fails_for_its_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
