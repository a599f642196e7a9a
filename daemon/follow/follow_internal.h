/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of follow.h. */
#ifndef DCPI_FOLLOW_INTERNAL_H
#define DCPI_FOLLOW_INTERNAL_H

#include "follow.h"

/* How a mapping became known (load.c). */
enum follow_how {
	FOLLOW_EVENT,  /* it happened now: it covers what was there */
	FOLLOW_LATE,   /* /proc was read after it: what that listed stays, its age is told */
	FOLLOW_LISTED, /* /proc lists it */
};
void follow_mmap(struct follow *f, struct process *p, const struct driver_load *l,
		 enum follow_how how);

/* A life is over, and the trace module is to know (load.c). */
void follow_end(struct follow *f, struct process *p);
/* A new life of @pid; an older one is over. NULL: no memory. */
struct process *follow_begin(struct follow *f, int32_t pid);
/* Queue the end of a life of @pid of which no event told when. */
void follow_end_lost(struct follow *f, int32_t pid);

#endif
