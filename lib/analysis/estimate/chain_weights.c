/* SPDX-License-Identifier: BSD-2-Clause */
/* By what windows count, which begin where time is spent; and those of which only one half counts.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chain_internal.h"

#define CLIP 50.0 /* no window counts as more of the one in the middle, or as less */

struct weighed {
	double weight, windows;
};

static int by_weight(const void *pa, const void *pb)
{
	const struct weighed *a = pa, *b = pb;

	return (a->weight > b->weight) - (a->weight < b->weight);
}

/* That of the window in the middle. */
static double median(struct weighed *v, size_t nr)
{
	double all = 0, upto = 0;

	if (nr)
		qsort(v, nr, sizeof(*v), by_weight);
	for (size_t i = 0; i < nr; i++)
		all += v[i].windows;
	for (size_t i = 0; i < nr; i++) {
		upto += v[i].windows;
		if (upto >= all / 2)
			return v[i].weight;
	}
	return 0;
}

void chain_count_windows(struct chain *c, const bool half[2])
{
	memset(c->windows, 0, c->in->nr_starts * sizeof(double));
	for (size_t i = 0; i < c->in->nr_moves; i++) {
		const struct chain_move *m = &c->in->moves[i];

		if (m->start < CHAIN_LOST && m->from == CHAIN_OUTSIDE)
			c->windows[m->start] += chain_counted(m, half);
	}
}

static void weigh_starts(struct chain *c, enum chain_weight how, double *by_node)
{
	const uint32_t *starts = c->in->starts;

	for (uint32_t i = 0; i < c->in->nr_starts; i++)
		by_node[starts[i]] += c->windows[i];
	for (uint32_t i = 0; i < c->in->nr_starts; i++) {
		double executed = c->answer[starts[i]], begun = by_node[starts[i]];

		if (how == CHAIN_BY_START)
			begun = c->windows[i];
		else
			executed *= c->in->nodes[starts[i]].insns;
		c->weight[i] = begun > 0 ? executed / begun : 0;
		if (how == CHAIN_ROOT)
			c->weight[i] = sqrt(c->weight[i]);
	}
}

int chain_weigh(struct chain *c, enum chain_weight how)
{
	double *by_node = calloc((size_t)c->in->nr_nodes + 1, sizeof(*by_node)), middle;
	struct weighed *v = calloc((size_t)c->in->nr_starts + 1, sizeof(*v));
	int r = by_node && v ? 0 : -ENOMEM;

	if (r >= 0) {
		weigh_starts(c, how, by_node);
		for (uint32_t i = 0; i < c->in->nr_starts; i++)
			v[i] = (struct weighed){ c->weight[i], c->windows[i] };
		middle = median(v, c->in->nr_starts);
		for (uint32_t i = 0; i < c->in->nr_starts; i++)
			c->weight[i] =
				middle > 0 ? fmin(CLIP, fmax(1 / CLIP, c->weight[i] / middle)) : 1;
	}
	free(by_node);
	free(v);
	return r;
}

struct ranked {
	double fast; /* executions of the instruction by windows that begin at it */
	uint32_t group, start;
};

static int by_rank(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->fast != b->fast)
		return a->fast < b->fast ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

/* Those of one procedure, ascending: the windows of one half of them count nothing. */
static void leave_out(struct chain *c, enum chain_starts which, const struct ranked *v, size_t nr)
{
	double all = 0, upto = 0;

	for (size_t i = 0; i < nr; i++)
		all += c->windows[v[i].start];
	for (size_t i = 0; i < nr; i++) {
		double windows = c->windows[v[i].start];
		bool slow = upto + windows / 2 < all / 2;

		upto += windows;
		if (slow != (which == CHAIN_SLOW))
			c->weight[v[i].start] = 0;
	}
}

int chain_choose(struct chain *c, enum chain_starts which)
{
	uint32_t nr = 0, from = 0;
	struct ranked *v = calloc((size_t)c->in->nr_starts + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->in->nr_starts; i++) {
		uint32_t node = c->in->starts[i];

		if (c->windows[i] > 0)
			v[nr++] = (struct ranked){ c->answer[node] / c->windows[i],
						   c->in->nodes[node].group, i };
	}
	if (nr)
		qsort(v, nr, sizeof(*v), by_rank);
	for (uint32_t i = 0; i < nr; i++)
		if (i + 1 == nr || v[i].group != v[i + 1].group) {
			leave_out(c, which, v + from, i + 1 - from);
			from = i + 1;
		}
	free(v);
	return 0;
}
