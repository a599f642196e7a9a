/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The value profile "values.replay" (dcpid -vreplay): loads that need what an older store of the
 * trace wrote. What DCPI's meant is lost; this one is ours.
 */
#ifndef DCPI_VALUES_REPLAY_H
#define DCPI_VALUES_REPLAY_H

#include "replay.h"

enum { VALUES_NR_STORES = 64 };
/* Added to the distance where the store is forwarded: then nothing waits. */
enum { VALUES_FORWARDED = 0x10000 };

/* The trace's stores, the last ones. */
struct values_stores {
	struct {
		uint64_t addr, end;
		uint32_t index; /* index of the instruction */
	} at[VALUES_NR_STORES];
	uint32_t nr;
};

/*
 * The next instruction, the @index-th of the trace. How many instructions the youngest store
 * before it lies back that wrote a byte of what it loads; 0: none did. *@covered: that store wrote
 * all of it (it can be forwarded); else the load has to wait until the store is done.
 */
uint32_t values_stores_add(struct values_stores *s, const struct vtrace_entry *e, uint32_t index,
			   bool *covered);

#endif
