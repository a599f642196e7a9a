/* SPDX-License-Identifier: BSD-2-Clause */
/* How often causes can have come up, by how often code ran. */
#include <math.h>

#include "stall_internal.h"

enum {
	/*
	 * What a wrong prediction takes at most: 25 cycles (A. Fog, The microarchitecture of Intel,
	 * AMD and VIA CPUs: 15 to 20 on those of today), each of eight instructions at the best
	 * pace. That may show no samples; then two instructions in a cycle on average are supposed.
	 */
	PENALTY_BEST = 25 * 8,
	PENALTY_AVERAGE = 25 * 2,
	/* Frequencies of medium confidence may be wrong by it. */
	UNSURE = 2,
};

/* How often an edge was gone at most: as estimated, or as the samples behind it have it, where no
 * other edge leads there. Of two arms an estimate may starve one. */
static double gone(const struct stall_work *w, uint32_t edge)
{
	double n = w->in->edge[edge], by_samples;
	uint32_t to = w->f->edges[edge].to;

	if (to == FLOW_OUTSIDE || w->f->blocks[to].nr_in > 1 || w->per_run <= 0)
		return n;
	by_samples = stall_samples_in(w, to) / (w->f->blocks[to].nr_insns * w->per_run);
	return by_samples > n ? by_samples : n;
}

/* Calls and returns are predicted well. */
static bool ends_in_branch(const struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	uint8_t flow = w->f->insns[block->insn + block->nr_insns - 1].flow;

	return flow == INSN_BRANCH || flow == INSN_INDIRECT_JUMP;
}

/* The ways out of a block's branch together. */
struct ways {
	double gone, samples; /* how often; in the blocks that they lead to */
	uint32_t blind;	      /* of these, how many may not show what they cost */
};

/* Of one instruction the next may have the samples. */
static bool is_blind(const struct stall_work *w, uint32_t to)
{
	return to == FLOW_OUTSIDE || w->f->blocks[to].nr_insns < 2;
}

/* @sign -1: without this one. */
static void ways_add(struct ways *ways, const struct stall_work *w, uint32_t edge, int sign)
{
	uint32_t to = w->f->edges[edge].to;

	ways->gone += sign * gone(w, edge);
	ways->samples += to == FLOW_OUTSIDE ? 0 : sign * stall_samples_in(w, to);
	ways->blind += is_blind(w, to) ? (uint32_t)sign : 0;
}

/*
 * @edge was gone after another was foretold no oftener than itself or these were gone, as no way is
 * foretold more often than it is gone. So the more usual way is gone wrongly as often as the
 * others are, or more seldom, and takes no more samples for it than all that stand behind these.
 */
static void add_wrong(struct stall_work *w, uint32_t edge, const struct ways *all)
{
	double mine = gone(w, edge), most, wrong;
	double penalty = fmax(PENALTY_BEST * w->pace, PENALTY_AVERAGE * w->per_run);
	uint32_t to = w->f->edges[edge].to;
	struct ways others = *all;

	ways_add(&others, w, edge, -1);
	wrong = fmin(mine, fmax(others.gone, 0));
	most = wrong * penalty;
	if (mine > others.gone && !others.blind)
		most = fmin(most, UNSURE * stall_at_most(fmax(others.samples, 0)));
	w->wrong[to] += wrong;
	w->mispredicted[to] += most;
}

/* Each branch's ways are added up once: tables have thousands. */
void stall_find_mispredicted(struct stall_work *w)
{
	for (uint32_t b = 0; b < w->f->nr_blocks; b++) {
		const struct flow_block *block = &w->f->blocks[b];
		const uint32_t *out = &w->f->out_of[block->out];
		struct ways all = { 0 };

		if (!ends_in_branch(w, b))
			continue;
		for (uint32_t i = 0; w->in->edge && i < block->nr_out; i++)
			ways_add(&all, w, out[i], 1);
		for (uint32_t i = 0; i < block->nr_out; i++) {
			uint32_t to = w->f->edges[out[i]].to;

			if (to == FLOW_OUTSIDE)
				continue;
			if (w->in->edge)
				add_wrong(w, out[i], &all);
			else
				w->wrong[to] = w->mispredicted[to] = INFINITY;
		}
	}
}

/* What is of the ways to @b; and to a block of one instruction before it, which the next shows. */
static double near(const struct stall_work *w, uint32_t b, const double *of_ways)
{
	const struct flow_block *block = &w->f->blocks[b];
	double sum = of_ways[b];

	for (uint32_t i = 0; i < block->nr_in; i++) {
		uint32_t from = w->f->edges[w->f->into[block->in + i]].from;

		if (from != FLOW_OUTSIDE && from != b && w->f->blocks[from].nr_insns == 1)
			sum += of_ways[from];
	}
	return sum;
}

double stall_at_most_mispredicted(const struct stall_work *w, uint32_t b)
{
	return w->in->outside == STALL_PESSIMISTIC ? INFINITY : near(w, b, w->mispredicted);
}

double stall_chance(const struct stall_work *w, uint32_t b, int cause)
{
	double chance = 1;

	if (stall_runs(w, b) <= 0 || w->in->outside == STALL_PESSIMISTIC)
		return 1;
	if (cause == STALL_BRANCH)
		chance = near(w, b, w->wrong) / stall_runs(w, b);
	if (cause == STALL_FRONT_END)
		chance = w->fetched[b] / stall_runs(w, b);
	return fmax(fmin(chance, 1), STALL_CHANCE_LEAST);
}
