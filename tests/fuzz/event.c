/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as slots of events, on each machine of tests/data/sysfs (in $DCPI_SRC, or here): refused
 * with a reason, or each event has a name that a profile can hold, and that name means the same.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char *const machines[] = { "intel-icelake", "amd-zen3", "amd-zen4", "arm-neoverse-n1",
					"none" };

static void check_name(const struct event_spec *e)
{
	size_t len = strnlen(e->name, sizeof(e->name));

	if (!len || len == sizeof(e->name) || e->precise > 3 || e->period > INT64_MAX)
		abort();
	for (size_t i = 0; i < len; i++)
		if (!isgraph((unsigned char)e->name[i]))
			abort();
}

/* The name is the text without its period; but for "name=", which is another's. */
static void check_again(const struct event_spec *e, const char *sysfs)
{
	struct event_spec again;

	if (event_parse(e->name, sysfs, &again, NULL) >= 0 &&
	    (again.exclude_user != e->exclude_user || again.exclude_kernel != e->exclude_kernel))
		abort();
}

static void run(const char *text, const char *sysfs)
{
	struct event_spec all[DRIVER_NR_EVENTS];
	const char *const slots[] = { text, "tick" };
	struct base_err err = { 0 };
	int n = event_parse_slots(slots, 2, sysfs, all, &err);

	if (n < 0 && (n != -DCPI_EUSAGE || !err.text[0] || err.code != n))
		abort();
	for (int i = 0; i < n; i++) {
		check_name(&all[i]);
		if (!strstr(text, "name="))
			check_again(&all[i], sysfs);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *src = getenv("DCPI_SRC");
	char *text = strndup((const char *)data, len), sysfs[1024];

	if (!text)
		abort();
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		snprintf(sysfs, sizeof(sysfs), "%s/tests/data/sysfs/%s", src ? src : ".",
			 machines[i]);
		run(text, sysfs);
	}
	free(text);
	return 0;
}
