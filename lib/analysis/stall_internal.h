/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/analysis/stall*.c only. */
#ifndef DCPI_STALL_INTERNAL_H
#define DCPI_STALL_INTERNAL_H

#include "stall.h"

struct stall_work {
	const struct stall_input *in;
	const struct flow *f;
	struct stall *out;
	double per_run; /* samples that an instruction has for each time it ran, on average */
	double pace;	/* samples of one instruction's execution, at best */
	bool *in_cache; /* by block: a loop that fits the instruction cache */
	uint32_t *stack, *order, *component;
};

/* Executions of a block, 1 where they are not known; the samples of its instructions. */
double stall_runs(const struct stall_work *w, uint32_t b);
double stall_samples_in(const struct stall_work *w, uint32_t b);

/* Causes of the samples on the instruction at index @insn of block @b. @culprit: as
 * struct stall has it. */
uint16_t stall_candidates(const struct stall_work *w, uint32_t b, uint32_t insn, uint32_t *culprit);

/* For each cause, of which the block's instructions have @high stalled samples: the part of these
 * that the events let it have; 1 where none speaks of it. */
void stall_parts(const struct stall_work *w, uint32_t b, double stalled, const double *high,
		 double *part);

#endif
