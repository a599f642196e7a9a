/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The causes of a procedure's stalls, found by elimination as in DCPI: the input is a flow graph,
 * samples by instruction, and frequencies of blocks and edges.
 *
 * A time sample lies on the instruction after the one that waited, and of instructions that retire
 * together one has the samples of all (measured on Zen 5). So the samples of each instruction above
 * the pace of the code around it are attributed to the instruction before it, on every edge that
 * leads there. Every cause that cannot be ruled out for that instruction is a candidate:
 *
 * - memory: it loads. Stores: it stores. Synchronization: it is a barrier, an atomic or a
 *   serializing instruction. Division, arithmetic (multiplication, floating point): it is such an
 *   instruction.
 * - branch: it is the first one behind a conditional branch or an indirect jump that takes more
 *   than one edge often enough. A wrong prediction takes at most 25 cycles (instructions at the
 *   best pace stand for cycles). No edge is assumed to be predicted more often than it is taken: so
 *   the usual edge of a branch has no more wrong predictions than the other edges are taken, and no
 *   more samples of them than lie behind these (twice that, as frequencies are uncertain).
 * - memory, if such a branch follows a comparison with memory and has no samples of its own: the
 *   processor may fuse the two, and the code behind them may have waited for the load.
 * - front end (instruction cache, its TLB, decoding): it is the first instruction of its cache line
 *   on some path, and does not lie in a loop without calls that fits the cache.
 *
 * Several causes may remain, or none that is known here; then the stall is unexplained (a chain of
 * plain instructions, for example). The result says which causes are possible, not which occurred,
 * and it does not separate single instructions from their neighbours: blocks and loops are
 * reliable. A load behind a mispredicted branch shows its whole latency, which is then attributed
 * to memory.
 *
 * Samples with several candidates are divided by how often each cause can occur: a branch
 * misprediction as often as the branch's less usual edges are taken, a front-end stall once for
 * each entry into the loop or call from it, memory as often as the load's address can be in a new
 * cache line (in each execution, unless the instructions that change it only add a number), the
 * others in each execution.
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
	STALL_NR_CAUSES, /* as a cause: unexplained */
};

/*
 * The assumption about stalls that begin outside of the procedure. They can occur where control
 * enters (at its entry, and behind a call) and one instruction later, as the first instruction may
 * wait for a value that it was passed.
 */
enum stall_outside {
	STALL_OPTIMISTIC,  /* there are no such stalls */
	STALL_PESSIMISTIC, /* every cause is a candidate there */
	/* memory, division and arithmetic are candidates for an instruction that reads a
	 * register in which the calling convention passes arguments or results */
	STALL_SELECTIVE,
};

/*
 * Samples of an event that accompanies a cause, as cache misses accompany waiting for memory: the
 * cause gets at most the time that its events may have taken. These samples lie up to some
 * instructions behind their instruction, so those of neighbouring blocks count too. Noise may have
 * lowered their number, so the limit is the upper end of a 95 % interval. A cause without such
 * samples is ruled out if it would have had three had it caused the whole stall.
 */
struct stall_evidence {
	enum stall_cause cause;
	bool adds; /* true: adds to the limits of the cause's other events; false: limits the cause
		    */
	const double *samples; /* indexed by instruction */
	double each; /* upper bound of the time samples for one sample of this event, above 0 */
	const double *beside; /* indexed by block: time that the cause may take without this event;
				 NULL: none */
};

struct stall_input {
	const struct flow *flow;
	const double *samples; /* indexed by instruction */
	const double *block;   /* executions by block, any unit; NULL: not known */
	const double *edge; /* indexed by edge; NULL: not known, then no branch can be ruled out */
	enum stall_outside outside;
	uint32_t machine; /* EM_*, whose calling convention STALL_SELECTIVE uses */
	const struct stall_evidence *evidence;
	size_t nr_evidence;
};

/*
 * Samples of a cause. @low: those that have no other candidate; @high: all that have this
 * candidate; @likely: samples with several candidates are divided as above, so that the sum is
 * right.
 */
struct stall_range {
	double low, likely, high;
};

/*
 * The breakdown of a block's samples: samples = execution + sum of likely + unexplained. Execution
 * is the time of the code at the best pace seen in the procedure.
 */
struct stall_tally {
	double samples, execution, unexplained;
	struct stall_range cause[STALL_NR_CAUSES];
};

struct stall {
	struct stall_tally *block; /* indexed by block */
	struct stall_tally total;
	/* Indexed by instruction: */
	uint16_t *candidates; /* causes (1 << enum stall_cause) of its samples */
	double *stalled;      /* stalled samples; their sum is that of the block's tally */
	double *unexplained;  /* the part of these that no candidate explains */
	/* The instruction whose result it waited for, if exactly one instruction with one cause
	 * is left and that cause fits the instruction; else FLOW_OUTSIDE. */
	uint32_t *culprit;
};

/* Finds the stalls. 0 or -ENOMEM. The caller releases @out with stall_release, also after a
 * failure. */
int stall_find(const struct stall_input *in, struct stall *out);
void stall_release(struct stall *s);
void stall_tally_add(struct stall_tally *to, const struct stall_tally *t);
/* "memory", "front end", …, "unexplained" */
const char *stall_cause_name(enum stall_cause cause);
/* The letter of a cause in graphs and lists: DCPI's, if it has such a cause; '?': unexplained. */
char stall_cause_letter(enum stall_cause cause);
/* Sorts the causes with likely samples, most first. Returns their number. */
size_t stall_order(const struct stall_tally *t, enum stall_cause order[STALL_NR_CAUSES + 1]);

#endif
