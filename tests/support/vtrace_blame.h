/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a trace ended at what is unknown: the instruction that first did not know. */
#ifndef DCPI_VTRACE_BLAME_H
#define DCPI_VTRACE_BLAME_H

#include "vtrace_blocks.h"

struct blame {
	bool found; /* false: it was unknown when the trace began */
	uint8_t len, code[16];
	uint64_t pc; /* of the instruction; not found: of the trace's end */
};

/*
 * Run the trace in @done, which began as *@begun, once more, and say what its end depends on.
 * *@begun is changed.
 */
struct blame vtrace_blame(const struct vtrace_blocks *b, const struct vtrace_memory *m,
			  struct vtrace_state *begun, const struct vtrace_state *done);

/* How often each instruction is to blame; printed with the most frequent first. */
void vtrace_blame_count(const struct blame *r);
void vtrace_blame_print(unsigned long traces);

#endif
