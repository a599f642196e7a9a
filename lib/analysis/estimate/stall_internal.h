/* SPDX-License-Identifier: BSD-2-Clause */
/* Between stall.c and stall_causes.c only: what is known of a procedure while its stalls are found.
 */
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
	/* By loop and register; NULL: not known. */
	double *moved;
	double *new_lines; /* by instruction: the chance of its samples' loads */
	uint32_t *stack, *order, *component;
};

/* Executions of a block, 1 where they are not known; the samples of its instructions. */
static inline double stall_runs(const struct stall_work *w, uint32_t b)
{
	return w->in->block ? w->in->block[b] : 1;
}

static inline double stall_samples_in(const struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	double sum = 0;

	for (uint32_t i = 0; i < block->nr_insns; i++)
		sum += w->in->samples[block->insn + i];
	return sum;
}

/* Causes of the samples on the instruction at index @insn of block @b. @culprit: as
 * struct stall has it. */
uint16_t stall_candidates(const struct stall_work *w, uint32_t b, uint32_t insn, uint32_t *culprit);
/* How far registers that may be addresses go in each loop. 0 or -ENOMEM. */
int stall_find_moves(struct stall_work *w);

#endif
