/* SPDX-License-Identifier: BSD-2-Clause */
/* The minute in which a sample was, as the clock on the wall showed it then. */
#include <string.h>

#include "workload.h"

#define MINUTE_NS 60000000000ll

/* A clock that is hurried or slowed is no news; one that is set is, or a machine that slept. */
#define STEP_NS 500000000ll

void workload_clock_look(struct workload_clock *c, uint64_t time_ns, int64_t utc_ns)
{
	int64_t offset_ns = (int64_t)((uint64_t)utc_ns - time_ns);
	struct workload_clock_step *last = c->nr ? &c->steps[c->nr - 1] : NULL;
	int64_t by_ns = last ? offset_ns - last->offset_ns : 0;

	if (last && by_ns < STEP_NS && by_ns > -STEP_NS) {
		last->offset_ns = offset_ns;
		return;
	}
	if (c->nr == WORKLOAD_NR_STEPS)
		memmove(c->steps, c->steps + 1, --c->nr * sizeof(*c->steps));
	c->steps[c->nr++] =
		(struct workload_clock_step){ .from_ns = time_ns, .offset_ns = offset_ns };
}

uint32_t workload_clock_minute(const struct workload_clock *c, uint64_t time_ns)
{
	size_t i = c->nr;
	int64_t utc_ns;

	while (i > 1 && c->steps[i - 1].from_ns > time_ns)
		i--;
	utc_ns = (int64_t)(time_ns + (i ? (uint64_t)c->steps[i - 1].offset_ns : 0));
	return utc_ns < 0 ? 0 : (uint32_t)(utc_ns / MINUTE_NS);
}
