/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/analysis/stall*.c only. */
#ifndef DCPI_STALL_INTERNAL_H
#define DCPI_STALL_INTERNAL_H

#include "stall.h"

#define STALL_CHANCE_LEAST 1e-6

struct stall_work {
	const struct stall_input *in;
	const struct flow *f;
	struct stall *out;
	double per_run; /* samples that an instruction has for each time it ran, on average */
	double pace;	/* samples of one instruction's execution, at best */
	bool *in_cache; /* by block: a loop that fits the instruction cache */
	/* By block: how often its code may have had to be fetched anew: whenever its loop (else the
	 * block) was entered, or something called from there. */
	double *fetched;
	/* By block, of the ways to it, at most: how often they were gone after another was
	 * foretold, and the samples that this took. INFINITY: not known. */
	double *wrong, *mispredicted;
	/* By loop and register (stall_lines.c); NULL: not known. */
	double *moved;
	double *new_lines; /* by instruction: the chance of its samples' loads */
	uint32_t *stack, *order, *component;
};

/* Executions of a block, 1 where they are not known; the samples of its instructions. */
double stall_runs(const struct stall_work *w, uint32_t b);
double stall_samples_in(const struct stall_work *w, uint32_t b);

/* Causes of the samples on the instruction at index @insn of block @b. @culprit: as
 * struct stall has it. */
uint16_t stall_candidates(const struct stall_work *w, uint32_t b, uint32_t insn, uint32_t *culprit);

/* How far registers that may be addresses go in each loop. 0 or -ENOMEM. */
int stall_find_moves(struct stall_work *w);
/* In how many of its executions the load at @insn of @b can have come to another line of memory: as
 * stall_chance. Where an address goes on by 8 bytes it is one in eight. */
double stall_new_lines(const struct stall_work *w, uint32_t b, uint32_t insn);

/* Fill in @wrong and @mispredicted, once the pace is known. */
void stall_find_mispredicted(struct stall_work *w);
/* Samples of @b's that wrong predictions may have taken at most; INFINITY: not known. */
double stall_at_most_mispredicted(const struct stall_work *w, uint32_t b);
/* In how many of @b's executions the cause may have come up: above 0, up to 1. */
double stall_chance(const struct stall_work *w, uint32_t b, int cause);
/* What so many samples say at most of how many there should be: 95 of 100 such numbers are below.
 */
double stall_at_most(double samples);

/* For each cause, of which the block's instructions have @high stalled samples: the part of these
 * that the events, and for branches the flow, let it have; 1 where none speaks of it. */
void stall_parts(const struct stall_work *w, uint32_t b, double stalled, const double *high,
		 double *part);

#endif
