/* SPDX-License-Identifier: BSD-2-Clause */
/* How much of a block's stalls the samples of other events leave to each cause. */
#include <math.h>

#include "stall_internal.h"

double stall_at_most(double samples)
{
	return samples + 1.645 * sqrt(samples) + 3;
}

static double events_in(const struct stall_work *w, uint32_t b, const struct stall_evidence *e)
{
	const struct flow_block *block = &w->f->blocks[b];
	double sum = 0;

	for (uint32_t i = 0; i < block->nr_insns; i++)
		sum += e->samples[block->insn + i];
	return sum;
}

/* Of the block and of those beside it; of one before and behind it twice, for it is a limit. */
static double events_near(const struct stall_work *w, uint32_t b, const struct stall_evidence *e)
{
	const struct flow_block *block = &w->f->blocks[b];
	uint32_t nr = block->nr_in + block->nr_out;
	double sum = events_in(w, b, e);

	for (uint32_t i = 0; i < nr; i++) {
		bool in = i < block->nr_in;
		uint32_t other = in ? w->f->edges[w->f->into[block->in + i]].from
				    : w->f->edges[w->f->out_of[block->out + i - block->nr_in]].to;

		if (other != FLOW_OUTSIDE && other != b)
			sum += events_in(w, other, e);
	}
	return sum;
}

/* What an event lets its cause have of the block's stalled samples. */
static double allowed(const struct stall_work *w, uint32_t b, const struct stall_evidence *e,
		      double stalled)
{
	double beside = e->beside ? e->beside[b] : 0, near = events_near(w, b, e);

	if (near <= 0 && beside <= 0 && 3 * e->each <= stalled)
		return 0;
	return stall_at_most(near) * e->each + beside;
}

/* Events of what came late from outside were sampled there. */
static bool speaks(const struct stall_work *w, const struct stall_evidence *e, int cause)
{
	return e->cause == (enum stall_cause)cause &&
	       (cause != STALL_MEMORY || w->in->outside == STALL_OPTIMISTIC);
}

void stall_parts(const struct stall_work *w, uint32_t b, double stalled, const double *high,
		 double *part)
{
	for (int c = 0; c < STALL_NR_CAUSES; c++) {
		double most = INFINITY, more = 0;

		for (size_t i = 0; high[c] > 0 && i < w->in->nr_evidence; i++) {
			const struct stall_evidence *e = &w->in->evidence[i];

			if (!speaks(w, e, c))
				continue;
			if (e->adds)
				more += allowed(w, b, e, stalled);
			else
				most = fmin(most, allowed(w, b, e, stalled));
		}
		if (c == STALL_BRANCH)
			most = fmin(most, stall_at_most_mispredicted(w, b));
		part[c] = most + more < high[c] ? (most + more) / high[c] : 1;
	}
}
