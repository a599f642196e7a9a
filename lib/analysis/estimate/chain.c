/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chain_internal.h"

/* The damping times the transitions for each node that matters. */
#define ENOUGH	    2
#define DAMPING_MAX 0.05
/* Of a visit to a start: where none begins, walks are few, and they are there. */
#define FAINT	   0.01
#define MAX_SWEEPS 4000
#define PRECISION  1e-7

/* ---- counting -------------------------------------------------------------------------------- */

static void add(struct chain *c, size_t edge, double n)
{
	if (edge == SIZE_MAX)
		return;
	c->count[edge] += n;
	c->left[c->edges[edge].from] += n;
}

static void add_moves(struct chain *c, const bool half[2])
{
	for (size_t i = 0; i < c->in->nr_moves; i++) {
		const struct chain_move *m = &c->in->moves[i];
		double n = chain_counted(m, half);

		if (m->start < CHAIN_LOST)
			n *= c->weight[m->start];
		if (m->to != CHAIN_OUTSIDE)
			c->visits[m->to] += n;
		else if (m->from != CHAIN_OUTSIDE)
			c->ends[m->from] += n;
		/* Of a call's node all that was seen goes on, wherever it went meanwhile. */
		add(c, c->edge_of[i], n);
		add(c, c->come_of[i], n);
	}
}

/* What neither ended nor moved on ran into the next node. */
static void add_falls(struct chain *c)
{
	for (uint32_t i = 0; i < c->in->nr_nodes; i++) {
		const struct chain_edge e = chain_edge(i, i + 1);
		double on = c->visits[i] - c->ends[i] - c->left[i];

		if (!chain_falls(c->in, i) || c->in->nodes[i].after != CHAIN_OUTSIDE)
			continue;
		on = fmax(0, on);
		c->visits[i + 1] += on;
		add(c, chain_edge_find(c, &e), on);
	}
}

/* Of a way that nobody was seen to leave by: is it the only one, or that anybody ever was? */
static bool is_only(const struct chain *c, size_t i)
{
	const struct chain_edge *e = &c->edges[i];

	if (e->from >= c->in->nr_nodes)
		return chain_is_first(c->in, e->to);
	if (e->to == chain_only_way(c->in, e->from))
		return true;
	return (i == 0 || e[-1].from != e->from) && (i + 1 == c->nr_edges || e[1].from != e->from);
}

static void divide(struct chain *c)
{
	for (size_t i = 0; i < c->nr_edges; i++) {
		struct chain_edge *e = &c->edges[i];

		e->part = c->left[e->from] > 0 ? c->count[i] / c->left[e->from] : is_only(c, i);
	}
}

static void count(struct chain *c, const bool half[2])
{
	memset(c->visits, 0, c->nr_all * sizeof(double));
	memset(c->ends, 0, c->nr_all * sizeof(double));
	memset(c->left, 0, c->nr_all * sizeof(double));
	memset(c->count, 0, c->nr_edges * sizeof(double));
	add_moves(c, half);
	add_falls(c);
	divide(c);
}

/* ---- solving --------------------------------------------------------------------------------- */

/* As many nodes as would have the same entropy if all were visited equally often: the fewer
 * transitions each of them has, the more the answer is held to where windows begin. */
static double damping_of(const struct chain *c, double least)
{
	double visits = 0, moves = 0, entropy = 0;

	for (uint32_t i = 0; i < c->in->nr_nodes; i++) {
		visits += c->visits[i];
		moves += c->left[i];
	}
	for (uint32_t i = 0; i < c->in->nr_nodes; i++)
		if (c->visits[i] > 0)
			entropy -= c->visits[i] / visits * log(c->visits[i] / visits);
	if (!(moves > 0))
		return DAMPING_MAX;
	return fmin(DAMPING_MAX, fmax(least, ENOUGH * exp(entropy) / moves));
}

static void begin(struct chain *c, const bool half[2])
{
	for (uint32_t i = 0; i < c->in->nr_nodes; i++) {
		c->begun[i] = FAINT * c->visits[i];
		c->kept[i] = pow(1 - c->damping, c->in->nodes[i].insns);
	}
	/* All of what left a group comes in again. */
	for (uint32_t i = c->in->nr_nodes; i < c->nr_all; i++)
		c->kept[i] = 1;
	for (size_t i = 0; i < c->in->nr_moves; i++) {
		const struct chain_move *m = &c->in->moves[i];

		if (m->from == CHAIN_OUTSIDE && m->to != CHAIN_OUTSIDE && m->start < CHAIN_LOST)
			c->begun[m->to] += chain_counted(m, half) * c->weight[m->start];
	}
}

/* N = d B + P' K N, in its own row. */
static double answer_of(const struct chain *c, uint32_t i)
{
	double in = 0, self = 0;

	for (size_t k = c->first[i]; k < c->first[i + 1]; k++) {
		const struct chain_edge *e = &c->edges[c->into[k]];
		double part = e->part * c->kept[e->from];

		if (e->from == i)
			self = part;
		else
			in += part * c->answer[e->from];
	}
	return (c->damping * c->begun[i] + in) / (1 - self);
}

/* By Gauss and Seidel, forwards and backwards in turn. */
static void walk(struct chain *c)
{
	double sum = 0, moved = INFINITY;

	/* About what the answers come to together. */
	for (uint32_t i = 0; i < c->in->nr_nodes; i++)
		sum += c->begun[i] / c->in->nodes[i].insns;
	for (int sweep = 0; sweep < MAX_SWEEPS && moved > PRECISION * sum; sweep++) {
		moved = 0;
		for (uint32_t k = 0; k < c->nr_all; k++) {
			uint32_t i = sweep & 1 ? c->nr_all - 1 - k : k;
			double now = answer_of(c, i);

			moved += fabs(now - c->answer[i]);
			c->answer[i] = now;
		}
	}
}

/* Between procedures it is the visits that tell most. */
static void scale(struct chain *c)
{
	const struct chain_node *nodes = c->in->nodes;

	for (int k = 0; k < 2; k++)
		memset(c->total[k], 0, c->in->nr_groups * sizeof(double));
	for (uint32_t i = 0; i < c->in->nr_nodes; i++) {
		c->total[0][nodes[i].group] += c->visits[i];
		c->total[1][nodes[i].group] += c->answer[i];
	}
	for (uint32_t i = 0; i < c->in->nr_nodes; i++)
		if (c->total[1][nodes[i].group] > 0)
			c->answer[i] *= c->total[0][nodes[i].group] / c->total[1][nodes[i].group];
}

/* ---- the interface --------------------------------------------------------------------------- */

static void solve(struct chain *c, const struct chain_how *how)
{
	count(c, how->half);
	c->damping = damping_of(c, how->damping);
	begin(c, how->half);
	walk(c);
	scale(c);
}

int chain_solve(struct chain *c, const struct chain_how *how, double *node)
{
	int r = 0;

	for (uint32_t i = 0; i < c->in->nr_starts; i++)
		c->weight[i] = 1;
	memset(c->answer, 0, c->nr_all * sizeof(double));
	chain_count_windows(c, how->half);
	solve(c, how);
	if (how->weight == CHAIN_EVEN) {
		memcpy(c->seen, c->visits, c->in->nr_nodes * sizeof(double));
	} else {
		r = chain_weigh(c, how->weight);
		if (r >= 0 && how->starts != CHAIN_ALL)
			r = chain_choose(c, how->starts);
		if (r >= 0)
			solve(c, how);
	}
	memcpy(node, c->answer, c->in->nr_nodes * sizeof(double));
	return r;
}

double chain_part(const struct chain *c, uint32_t from, uint32_t to)
{
	const struct chain_edge e = chain_edge(from, to);
	size_t at = chain_edge_find(c, &e);

	return at == SIZE_MAX ? 0 : c->edges[at].part;
}

double chain_visits(const struct chain *c, uint32_t node)
{
	return c->seen[node];
}

static int allocate(struct chain *c)
{
	size_t nodes = (size_t)c->nr_all + 2, starts = (size_t)c->in->nr_starts + 1;
	size_t moves = c->in->nr_moves + 1, edges = 2 * moves + 2 * nodes;

	c->edges = calloc(edges, sizeof(*c->edges));
	c->count = calloc(edges, sizeof(*c->count));
	c->into = calloc(edges, sizeof(*c->into));
	c->edge_of = calloc(moves, sizeof(*c->edge_of));
	c->come_of = calloc(moves, sizeof(*c->come_of));
	c->first = calloc(nodes, sizeof(*c->first));
	c->is_after = calloc(nodes, sizeof(*c->is_after));
	c->visits = calloc(nodes, sizeof(*c->visits));
	c->ends = calloc(nodes, sizeof(*c->ends));
	c->left = calloc(nodes, sizeof(*c->left));
	c->answer = calloc(nodes, sizeof(*c->answer));
	c->seen = calloc(nodes, sizeof(*c->seen));
	c->begun = calloc(nodes, sizeof(*c->begun));
	c->kept = calloc(nodes, sizeof(*c->kept));
	for (int k = 0; k < 2; k++)
		c->total[k] = calloc((size_t)c->in->nr_groups + 1, sizeof(double));
	c->windows = calloc(starts, sizeof(*c->windows));
	c->weight = calloc(starts, sizeof(*c->weight));
	return c->edges && c->count && c->into && c->edge_of && c->come_of && c->first &&
			       c->is_after && c->visits && c->ends && c->left && c->answer &&
			       c->seen && c->begun && c->kept && c->total[0] && c->total[1] &&
			       c->windows && c->weight
		       ? 0
		       : -ENOMEM;
}

int chain_new(const struct chain_input *in, struct chain **out, struct base_err *err)
{
	struct chain *c = NULL;
	int r = chain_check(in, err);

	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	r = c ? 0 : -ENOMEM;
	if (r >= 0) {
		c->in = in;
		c->nr_all = in->nr_nodes + in->nr_groups;
		r = allocate(c);
	}
	if (r < 0) {
		chain_free(c);
		return base_fail_errno(err, r, "cannot follow the windows");
	}
	chain_list(c);
	*out = c;
	return 0;
}

void chain_free(struct chain *c)
{
	if (!c)
		return;
	free(c->edges);
	free(c->count);
	free(c->into);
	free(c->edge_of);
	free(c->come_of);
	free(c->first);
	free(c->is_after);
	free(c->visits);
	free(c->ends);
	free(c->left);
	free(c->answer);
	free(c->seen);
	free(c->begun);
	free(c->kept);
	free(c->total[0]);
	free(c->total[1]);
	free(c->windows);
	free(c->weight);
	free(c);
}
