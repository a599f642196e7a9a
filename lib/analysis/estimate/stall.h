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
 * one way is taken often enough. A wrong prediction takes 25 cycles at most (instructions of the
 * best pace stand for cycles), and no way is supposed to be foretold more often than it is gone: so
 * the usual way of a branch has no more wrong predictions than the others have, and no more samples
 * of them than stand behind these (twice that, as frequencies are unsure).
 * - memory, where such a branch goes by a comparison with memory and shows no samples of its own:
 * the two may be one to the processor, and what stands behind them may have waited for the load.
 * - front end (instruction cache, its TLB, decoding): it is the first of its cache line on some
 * way, and does not lie in a loop without calls that fits the cache.
 *
 * What is left may be several causes, or none that is known here (then it is unexplained: a chain
 * of plain instructions, say). It says what may have been, not what was, and single instructions
 * are not told apart from their neighbours: trust blocks and loops. A load behind a mispredicted
 * branch shows its whole latency, which is then laid to memory.
 *
 * What several may have had is divided by how often each can have come up at all: a branch as often
 * as its less usual ways were gone, the front end once each time that the loop was entered or
 * something called from it, memory as often as the load's address can have come to another line (in
 * each execution, but where the instructions that change it only add a number), the rest in each.
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
	STALL_NR_CAUSES, /* where a cause stands: none of these, unexplained */
};

/*
 * What happens outside of the procedure may stall it: where control comes in (its entry, the way
 * back from a call), and one instruction later, as the first may wait for a value that it was
 * handed.
 */
enum stall_outside {
	STALL_OPTIMISTIC,  /* not assumed */
	STALL_PESSIMISTIC, /* anything may, so all causes are candidates there */
	/* Memory, division and arithmetic may, for an instruction that reads a register in which
	 * the calling convention hands arguments in, or results back. */
	STALL_SELECTIVE,
};

/*
 * Samples of an event that comes with a cause, as cache misses with waiting for memory: no more can
 * be laid to the cause than its events may have taken. They stand up to some instructions behind
 * what they are of, so those of a block's neighbours count for it too; and chance may have left
 * out some, so that the limit is what 95 of 100 such numbers of samples stay below. Where there is
 * none, though it would have had three had it caused everything, the cause is ruled out.
 */
struct stall_evidence {
	enum stall_cause cause;
	bool adds; /* beside what the other events of this cause allow; else it limits */
	const double *samples; /* by instruction */
	double each;	      /* samples of time that one of these may stand for at most, above 0 */
	const double *beside; /* by block: what the cause may take without it; NULL: nothing */
};

struct stall_input {
	const struct flow *flow;
	const double *samples; /* by instruction */
	const double *block;   /* executions by block, any unit; NULL: not known */
	const double *edge;    /* by edge; NULL: not known, then no branch can be ruled out */
	enum stall_outside outside;
	uint32_t machine; /* EM_*: whose convention STALL_SELECTIVE goes by */
	const struct stall_evidence *evidence;
	size_t nr_evidence;
};

/*
 * All in samples. @low: those for which no other cause is left; @high: all for which this one is;
 * @likely: those with several divided among them, as above, so that it adds up.
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
	/* By instruction: */
	uint16_t *candidates; /* causes (1 << enum stall_cause) of its samples */
	double *stalled;      /* samples that were; they add up to what its block's tally has */
	double *unexplained;  /* and of these, what no candidate explains */
	/* The instruction whose result it waited for, where a single one with a single cause is
	 * left and that is what the instruction does; else FLOW_OUTSIDE. */
	uint32_t *culprit;
};

/* 0 or -ENOMEM. */
int stall_find(const struct stall_input *in, struct stall *out);
void stall_release(struct stall *s);
void stall_tally_add(struct stall_tally *to, const struct stall_tally *t);
/* "memory", "front end", …, "unexplained" */
const char *stall_cause_name(enum stall_cause cause);
/* What graphs and lists show for it: DCPI's letter where it has such a cause; '?' */
char stall_cause_letter(enum stall_cause cause);
/* Those that likely took something, most first. Returns how many. */
size_t stall_order(const struct stall_tally *t, enum stall_cause order[STALL_NR_CAUSES + 1]);

#endif
