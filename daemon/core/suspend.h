/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine suspended, the clock set (suspend.c). */
#ifndef DCPI_DAEMON_SUSPEND_H
#define DCPI_DAEMON_SUSPEND_H

#include "base.h"

struct suspends {
	uint64_t ahead_ns; /* as looked at last */
	uint64_t nr, ns;   /* since the daemon started */
	bool looked;
};
/*
 * @ahead_ns is base_boot_ahead_ns() now: returns for how long the machine was suspended since the
 * last look, and counts it. 0: it was not, or this is the first look.
 */
uint64_t suspends_look(struct suspends *s, uint64_t ahead_ns);

struct clock_sets {
	int64_t offset_ns; /* of UTC from the time since boot, as looked at last */
	uint64_t nr;	   /* since the daemon started */
	bool looked;
};
/*
 * @utc_ns was read between @before_ns and @after_ns, times since boot, suspended ones too: returns
 * by how many seconds the clock was set ahead (negative: back) since the last look, and counts it.
 * 0: by less than two, or this is the first look, or what came between the three says nothing. A
 * clock that is slowed or hurried step by step is not set.
 */
int64_t clock_sets_look(struct clock_sets *s, uint64_t before_ns, int64_t utc_ns,
			uint64_t after_ns);

#endif
