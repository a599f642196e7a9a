/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a procedure's time has gone: what its instructions may have waited for, by elimination as
 * DCPI did it, from a flow graph, samples by instruction, and how often blocks and edges ran.
 *
 * A time sample stands on the instruction after the one that waited, and of instructions that
 * retire together one shows for all (measured on Zen 5). So each instruction's samples above the
 * pace of the code around it are laid to the instruction before it, on every way that leads there,
 * and all causes are candidates that cannot be ruled out for that one:
 *
 * - memory: it loads. Stores: it stores. Synchronization: a barrier, an atomic or serializing
 *   instruction. Division, arithmetic (multiplication, floating point): it is one.
 * - branch: it is the first one behind a conditional branch or an indirect jump, of which more than
 * one way is taken often enough.
 * - front end (instruction cache, its TLB, decoding): it is the first of its cache line on some
 * way, and does not lie in a loop without calls that fits the cache.
 *
 * What is left may be several causes, or none that is known here (then it is unexplained: a chain
 * of plain instructions, say). It says what may have been, not what was, and single instructions
 * are not told apart from their neighbours: trust blocks and loops. A load behind a mispredicted
 * branch shows its whole latency, which is then laid to memory.
 */
#ifndef DCPI_STALL_H
#define DCPI_STALL_H

#include "flow.h"

enum stall_cause {
	STALL_MEMORY,
	STALL_STORE,
	STALL_SYNCHRONIZATION,
	STALL_DIVISION,
	STALL_ARITHMETIC,
	STALL_BRANCH,
	STALL_FRONT_END,
	STALL_NR_CAUSES,
};

struct stall_input {
	const struct flow *flow;
	const double *samples; /* by instruction */
	const double *block;   /* executions by block, any unit; NULL: not known */
	const double *edge;    /* by edge; NULL: not known, then no branch can be ruled out */
};

/*
 * All in samples. @low: those for which no other cause is left; @high: all for which this one is;
 * @likely: those with several divided among them, so that it adds up.
 */
struct stall_range {
	double low, likely, high;
};

/*
 * What a block's samples went to: samples = execution + sum of likely + unexplained. Execution is
 * what the code takes at the best pace that is seen in the procedure.
 */
struct stall_tally {
	double samples, execution, unexplained;
	struct stall_range cause[STALL_NR_CAUSES];
};

struct stall {
	struct stall_tally *block; /* by block */
	struct stall_tally total;
	uint16_t *candidates; /* by instruction: causes (1 << enum stall_cause) of its samples */
};

/* 0 or -ENOMEM. */
int stall_find(const struct stall_input *in, struct stall *out);
void stall_release(struct stall *s);
/* "memory", "front end", … */
const char *stall_cause_name(enum stall_cause cause);

#endif
