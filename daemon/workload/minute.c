/* SPDX-License-Identifier: BSD-2-Clause */
/* How the clock on the wall was set, for the minute in which a sample was. */
#include <string.h>

#include "workload.h"

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
