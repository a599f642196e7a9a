/* SPDX-License-Identifier: BSD-2-Clause */
/* A machine that slept received nothing: a gap in its samples that is nobody's fault. Whose clock
 * was set has epochs and messages whose times do not follow one another. */
#include "suspend.h"

/* The two clocks are read one after the other, and much may come between. */
#define SUSPENDED_NS 1000000000ull

uint64_t suspends_look(struct suspends *s, uint64_t ahead_ns)
{
	bool first = !s->looked;
	uint64_t slept = ahead_ns > s->ahead_ns ? ahead_ns - s->ahead_ns : 0;

	s->looked = true;
	if (!first && slept < SUSPENDED_NS)
		return 0;
	s->ahead_ns = ahead_ns;
	if (first)
		return 0;
	s->nr++;
	s->ns += slept;
	return slept;
}

/* How far apart the readings of a clock may be, and by how much it must be off. */
#define APART_NS     100000000ull
#define CLOCK_SET_NS 2000000000ll

int64_t clock_sets_look(struct clock_sets *s, uint64_t before_ns, int64_t utc_ns, uint64_t after_ns)
{
	int64_t offset_ns = utc_ns - (int64_t)before_ns, by_ns = offset_ns - s->offset_ns;
	bool first = !s->looked;

	if (after_ns - before_ns > APART_NS)
		return 0;
	s->looked = true;
	s->offset_ns = offset_ns;
	if (first || (by_ns < CLOCK_SET_NS && by_ns > -CLOCK_SET_NS))
		return 0;
	s->nr++;
	return by_ns / 1000000000;
}
