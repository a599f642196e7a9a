/* SPDX-License-Identifier: BSD-2-Clause */
/* A machine that slept received nothing: a gap in its samples that is nobody's fault. */
#include "daemon_core.h"

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
