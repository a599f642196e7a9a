/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the time of a procedure has gone: samples laid to execution and to causes of stalls. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stall_internal.h"

static double stall_at_most(double samples);

/* ---- how often a cause can have come up ---------------------------------------------------- */

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
/* Fill in @wrong and @mispredicted, once the pace is known. */
static void stall_find_mispredicted(struct stall_work *w)
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

/* Samples of @b's that wrong predictions may have taken at most; INFINITY: not known. */
static double stall_at_most_mispredicted(const struct stall_work *w, uint32_t b)
{
	return w->in->outside == STALL_PESSIMISTIC ? INFINITY : near(w, b, w->mispredicted);
}

/* In how many of @b's executions the cause may have come up: above 0, up to 1. */
static double stall_chance(const struct stall_work *w, uint32_t b, int cause)
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

/* ---- what samples of other events allow ---------------------------------------------------- */

static double stall_at_most(double samples)
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

/* For each cause, of which the block's instructions have @high stalled samples: the part of these
 * that the events, and for branches the flow, let it have; 1 where none speaks of it. */
static void stall_parts(const struct stall_work *w, uint32_t b, double stalled, const double *high,
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

enum {
	LOOP_MAX = 16 << 10, /* bytes of code that stay in any instruction cache */
	WINDOW = 2,	     /* instructions that may retire together: one shows for both */
};

const char *stall_cause_name(enum stall_cause cause)
{
	static const char *const names[STALL_NR_CAUSES] = {
		[STALL_MEMORY] = "memory",
		[STALL_STORE] = "stores",
		[STALL_SYNCHRONIZATION] = "synchronization",
		[STALL_DIVISION] = "division",
		[STALL_ARITHMETIC] = "arithmetic",
		[STALL_BRANCH] = "branch misprediction",
		[STALL_FRONT_END] = "front end",
	};

	return cause < STALL_NR_CAUSES ? names[cause] : "unexplained";
}

char stall_cause_letter(enum stall_cause cause)
{
	static const char letters[STALL_NR_CAUSES + 1] = {
		[STALL_MEMORY] = 'd',	 [STALL_STORE] = 'w',	   [STALL_SYNCHRONIZATION] = 'y',
		[STALL_DIVISION] = 'v',	 [STALL_ARITHMETIC] = 'a', [STALL_BRANCH] = 'p',
		[STALL_FRONT_END] = 'I', [STALL_NR_CAUSES] = '?',
	};

	return letters[cause];
}

/* Of a cause, or what is unexplained. */
static double likely(const struct stall_tally *t, enum stall_cause cause)
{
	return cause < STALL_NR_CAUSES ? t->cause[cause].likely : t->unexplained;
}

size_t stall_order(const struct stall_tally *t, enum stall_cause order[STALL_NR_CAUSES + 1])
{
	size_t nr = 0;

	for (int k = 0; k <= STALL_NR_CAUSES; k++) {
		double mine = likely(t, (enum stall_cause)k);
		size_t at = nr;

		if (mine <= 0)
			continue;
		for (; at > 0 && likely(t, order[at - 1]) < mine; at--)
			order[at] = order[at - 1];
		order[at] = (enum stall_cause)k;
		nr++;
	}
	return nr;
}

/* ---- the pace ------------------------------------------------------------------------------ */

struct window {
	double pace, weight;
};

static int by_pace(const void *a, const void *b)
{
	const struct window *x = a, *y = b;

	return (x->pace > y->pace) - (x->pace < y->pace);
}

/* Each stretch of a few instructions of a block that ran. */
static uint32_t windows(const struct stall_work *w, struct window *v)
{
	uint32_t nr = 0;

	for (uint32_t b = 0; b < w->f->nr_blocks; b++) {
		const struct flow_block *block = &w->f->blocks[b];

		for (uint32_t i = 0; i < block->nr_insns; i += WINDOW) {
			uint32_t n = block->nr_insns - i < WINDOW ? block->nr_insns - i : WINDOW;
			double samples = 0;

			if (stall_runs(w, b) <= 0 || (n < WINDOW && block->nr_insns > WINDOW))
				continue;
			for (uint32_t k = 0; k < n; k++)
				samples += w->in->samples[block->insn + i + k];
			v[nr++] = (struct window){ samples / (stall_runs(w, b) * n),
						   stall_runs(w, b) * n };
		}
	}
	return nr;
}

/* The lower tenth: some stretches have hardly any, for their neighbours show for them. */
static int find_pace(struct stall_work *w)
{
	struct window *v = calloc((size_t)w->f->nr_insns + 1, sizeof(*v));
	double total = 0, sum = 0, samples = 0;
	uint32_t nr;

	if (!v)
		return -ENOMEM;
	nr = windows(w, v);
	qsort(v, nr, sizeof(*v), by_pace);
	for (uint32_t i = 0; i < nr; i++) {
		total += v[i].weight;
		samples += v[i].pace * v[i].weight;
	}
	w->per_run = total > 0 ? samples / total : 0;
	for (uint32_t i = 0; i < nr && sum < total / 10; i++) {
		sum += v[i].weight;
		w->pace = v[i].pace;
	}
	free(v);
	return 0;
}

/* ---- loops --------------------------------------------------------------------------------- */

/* Blocks that lead to each other (Kosaraju): in order of finishing, then against the edges. */
static void finish_order(struct stall_work *w, uint32_t *next)
{
	const struct flow *f = w->f;
	uint32_t nr = 0;

	memset(w->component, 0, f->nr_blocks * sizeof(*w->component));
	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		uint32_t depth = 0;

		if (w->component[b])
			continue;
		w->component[b] = 1;
		w->stack[depth++] = b;
		while (depth) {
			uint32_t at = w->stack[depth - 1], to;

			if (next[at] == f->blocks[at].nr_out) {
				w->order[nr++] = at;
				depth--;
				continue;
			}
			to = f->edges[f->out_of[f->blocks[at].out + next[at]++]].to;
			if (to != FLOW_OUTSIDE && !w->component[to]) {
				w->component[to] = 1;
				w->stack[depth++] = to;
			}
		}
	}
}

static void collect(struct stall_work *w, uint32_t b, uint32_t number)
{
	const struct flow *f = w->f;
	uint32_t depth = 0;

	w->component[b] = number;
	w->stack[depth++] = b;
	while (depth) {
		const struct flow_block *block = &f->blocks[w->stack[--depth]];

		for (uint32_t i = 0; i < block->nr_in; i++) {
			uint32_t from = f->edges[f->into[block->in + i]].from;

			if (from == FLOW_OUTSIDE || w->component[from] != UINT32_MAX)
				continue;
			w->component[from] = number;
			w->stack[depth++] = from;
		}
	}
}

static bool is_loop(const struct flow *f, uint32_t b, const uint32_t *component)
{
	for (uint32_t i = 0; i < f->blocks[b].nr_out; i++) {
		uint32_t to = f->edges[f->out_of[f->blocks[b].out + i]].to;

		if (to != FLOW_OUTSIDE && component[to] == component[b])
			return true;
	}
	return false;
}

/* How often control came into @b from outside of its loop, or back from a call. */
static double fetches(const struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	double sum = block->nr_calls * stall_runs(w, b);

	for (uint32_t i = 0; w->in->edge && i < block->nr_in; i++) {
		uint32_t edge = w->f->into[block->in + i], from = w->f->edges[edge].from;

		if (from == FLOW_OUTSIDE || w->component[from] != w->component[b])
			sum += w->in->edge[edge];
	}
	return sum;
}

static int count_fetches(struct stall_work *w)
{
	uint32_t nr = w->f->nr_blocks;
	double *of_loop = calloc((size_t)nr + 1, sizeof(*of_loop));

	if (!of_loop)
		return -ENOMEM;
	for (uint32_t b = 0; b < nr; b++)
		of_loop[w->component[b]] += fetches(w, b);
	for (uint32_t b = 0; b < nr; b++)
		w->fetched[b] = w->in->edge ? of_loop[w->component[b]] : stall_runs(w, b);
	free(of_loop);
	return 0;
}

/* Which loops stay in the cache: by the code in them that was met running. */
static void judge_loops(struct stall_work *w, uint64_t *size, bool *calls)
{
	const struct flow *f = w->f;

	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		if (stall_samples_in(w, b) <= 0)
			continue;
		size[w->component[b]] += f->blocks[b].end - f->blocks[b].vaddr;
		calls[w->component[b]] |= f->blocks[b].nr_calls > 0;
	}
	for (uint32_t b = 0; b < f->nr_blocks; b++)
		w->in_cache[b] = is_loop(f, b, w->component) && !calls[w->component[b]] &&
				 size[w->component[b]] <= LOOP_MAX;
}

static int find_loops(struct stall_work *w)
{
	const struct flow *f = w->f;
	uint32_t *next = calloc((size_t)f->nr_blocks + 1, sizeof(*next)), number = 0;
	uint64_t *size = calloc((size_t)f->nr_blocks + 1, sizeof(*size));
	bool *calls = calloc((size_t)f->nr_blocks + 1, sizeof(*calls));
	int r = next && size && calls ? 0 : -ENOMEM;

	if (r >= 0) {
		finish_order(w, next);
		for (uint32_t b = 0; b < f->nr_blocks; b++)
			w->component[b] = UINT32_MAX;
		for (uint32_t i = f->nr_blocks; i--;)
			if (w->component[w->order[i]] == UINT32_MAX)
				collect(w, w->order[i], number++);
		judge_loops(w, size, calls);
		r = count_fetches(w);
	}
	free(next);
	free(size);
	free(calls);
	return r;
}

/* ---- tallies ------------------------------------------------------------------------------- */

/*
 * What is left is divided by how often each cause may have come up, but none has more than its
 * part. Who has it all leaves more to the others, so it is found again.
 */
static void divide(uint16_t causes, const double *part, const double *chance, double *share)
{
	double left = 1;

	for (uint16_t open = causes, full = 1; open && full;) {
		double sum = 0, given = 0;

		full = 0;
		for (int c = 0; c < STALL_NR_CAUSES; c++)
			sum += open >> c & 1 ? chance[c] : 0;
		for (int c = 0; c < STALL_NR_CAUSES; c++) {
			if (!(open >> c & 1))
				continue;
			share[c] = fmin(part[c], left * chance[c] / sum);
			if (share[c] < part[c])
				continue;
			full |= (uint16_t)(1 << c);
			given += part[c];
		}
		open &= (uint16_t)~full;
		left -= given;
	}
}

/*
 * Divide an instruction's stalled samples among its causes, each of which may have its part of
 * them at most. What the others together cannot have is this one's, if it may have it.
 */
static double add_stall(struct stall_tally *t, uint16_t causes, double samples, const double *part,
			const double *chance)
{
	double sum = 0, unexplained, share[STALL_NR_CAUSES] = { 0 };

	for (int c = 0; c < STALL_NR_CAUSES; c++)
		sum += causes >> c & 1 ? part[c] : 0;
	unexplained = sum < 1 ? (1 - sum) * samples : 0;
	t->unexplained += unexplained;
	divide(causes, part, chance, share);
	for (int c = 0; c < STALL_NR_CAUSES; c++) {
		double others = sum - part[c];

		if (!(causes >> c & 1) || part[c] <= 0)
			continue;
		t->cause[c].high += part[c] * samples;
		t->cause[c].likely += share[c] * samples;
		t->cause[c].low += fmax(0, fmin(part[c], 1 - others)) * samples;
	}
	return unexplained;
}

/* Causes that the events leave nothing are candidates no more. */
static void strike_out(struct stall *out, uint32_t insn, const double *part)
{
	for (int c = 0; c < STALL_NR_CAUSES; c++)
		if (part[c] <= 0)
			out->candidates[insn] &= (uint16_t) ~(1 << c);
	if (!out->candidates[insn])
		out->culprit[insn] = FLOW_OUTSIDE;
}

/* The instructions' parts of what stalled stand in out->stalled; their causes are sought here. */
static void tally_stalls(const struct stall_work *w, uint32_t b, struct stall_tally *t,
			 double stalled)
{
	const struct flow_block *block = &w->f->blocks[b];
	double high[STALL_NR_CAUSES] = { 0 }, part[STALL_NR_CAUSES], chance[STALL_NR_CAUSES];
	struct stall *out = w->out;

	for (uint32_t i = block->insn; i < block->insn + block->nr_insns; i++) {
		if (out->stalled[i] <= 0)
			continue;
		out->candidates[i] = stall_candidates(w, b, i, &out->culprit[i]);
		for (int c = 0; c < STALL_NR_CAUSES; c++)
			high[c] += out->candidates[i] >> c & 1 ? out->stalled[i] : 0;
	}
	stall_parts(w, b, stalled, high, part);
	for (int c = 0; c < STALL_NR_CAUSES; c++)
		chance[c] = stall_chance(w, b, c);
	for (uint32_t i = block->insn; i < block->insn + block->nr_insns; i++) {
		strike_out(out, i, part);
		chance[STALL_MEMORY] = w->new_lines[i];
		out->unexplained[i] =
			add_stall(t, out->candidates[i], out->stalled[i], part, chance);
	}
}

static void tally_block(const struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	struct stall_tally *t = &w->out->block[b];
	double per_insn = w->pace * stall_runs(w, b), stalled, above = 0;

	for (uint32_t i = block->insn; i < block->insn + block->nr_insns; i++) {
		t->samples += w->in->samples[i];
		above += w->in->samples[i] > per_insn ? w->in->samples[i] - per_insn : 0;
	}
	t->execution =
		per_insn * block->nr_insns < t->samples ? per_insn * block->nr_insns : t->samples;
	stalled = t->samples - t->execution;
	/* Neighbours without samples leave more above the pace than was stalled. */
	for (uint32_t i = block->insn; above > 0 && i < block->insn + block->nr_insns; i++)
		if (w->in->samples[i] > per_insn)
			w->out->stalled[i] = (w->in->samples[i] - per_insn) / above * stalled;
	if (above > 0)
		tally_stalls(w, b, t, stalled);
	else
		t->execution = t->samples;
}

void stall_tally_add(struct stall_tally *to, const struct stall_tally *t)
{
	to->samples += t->samples;
	to->execution += t->execution;
	to->unexplained += t->unexplained;
	for (int c = 0; c < STALL_NR_CAUSES; c++) {
		to->cause[c].low += t->cause[c].low;
		to->cause[c].likely += t->cause[c].likely;
		to->cause[c].high += t->cause[c].high;
	}
}

static int open_work(struct stall_work *w)
{
	size_t nr = (size_t)w->f->nr_blocks + 1;

	w->in_cache = calloc(nr, sizeof(*w->in_cache));
	w->fetched = calloc(nr, sizeof(*w->fetched));
	w->wrong = calloc(nr, sizeof(*w->wrong));
	w->mispredicted = calloc(nr, sizeof(*w->mispredicted));
	w->new_lines = calloc((size_t)w->f->nr_insns + 1, sizeof(*w->new_lines));
	w->stack = calloc(nr, sizeof(*w->stack));
	w->order = calloc(nr, sizeof(*w->order));
	w->component = calloc(nr, sizeof(*w->component));
	w->out->block = calloc(nr, sizeof(*w->out->block));
	w->out->candidates = calloc((size_t)w->f->nr_insns + 1, sizeof(*w->out->candidates));
	w->out->stalled = calloc((size_t)w->f->nr_insns + 1, sizeof(*w->out->stalled));
	w->out->unexplained = calloc((size_t)w->f->nr_insns + 1, sizeof(*w->out->unexplained));
	w->out->culprit = calloc((size_t)w->f->nr_insns + 1, sizeof(*w->out->culprit));
	if (!w->in_cache || !w->fetched || !w->wrong || !w->mispredicted || !w->new_lines ||
	    !w->stack || !w->order || !w->component || !w->out->block || !w->out->candidates ||
	    !w->out->stalled || !w->out->unexplained || !w->out->culprit)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->f->nr_insns; i++)
		w->out->culprit[i] = FLOW_OUTSIDE;
	return 0;
}

int stall_find(const struct stall_input *in, struct stall *out)
{
	struct stall_work w = { .in = in, .f = in->flow, .out = out };
	int r;

	memset(out, 0, sizeof(*out));
	r = open_work(&w);
	if (r >= 0)
		r = find_pace(&w);
	if (r >= 0)
		r = find_loops(&w);
	if (r >= 0)
		r = stall_find_moves(&w);
	if (r >= 0)
		stall_find_mispredicted(&w);
	for (uint32_t b = 0; r >= 0 && b < w.f->nr_blocks; b++) {
		tally_block(&w, b);
		stall_tally_add(&out->total, &out->block[b]);
	}
	free(w.in_cache);
	free(w.fetched);
	free(w.wrong);
	free(w.mispredicted);
	free(w.new_lines);
	free(w.moved);
	free(w.stack);
	free(w.order);
	free(w.component);
	if (r < 0)
		stall_release(out);
	return r;
}

void stall_release(struct stall *s)
{
	free(s->block);
	free(s->candidates);
	free(s->stalled);
	free(s->unexplained);
	free(s->culprit);
	memset(s, 0, sizeof(*s));
}
