/* SPDX-License-Identifier: BSD-2-Clause */
/* The loops and groups of a flow graph are found before it is drawn. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "draw_internal.h"

/* ---- loops --------------------------------------------------------------------------------- */

enum { UNMET, INSIDE, DONE };

struct walk {
	size_t *first, *index; /* edges by the block that they leave, as rows of one array */
	uint8_t *state;
	uint32_t *stack;
	size_t *next; /* by block: the edge to follow next */
};

bool draw_edge_stays(const struct graph_edge *e)
{
	return e->from != GRAPH_OUTSIDE && e->to != GRAPH_OUTSIDE;
}

static int walk_init(const struct graph_proc *p, struct walk *w)
{
	size_t n = (size_t)p->nr_blocks + 2;

	w->first = calloc(n, sizeof(*w->first));
	w->next = calloc(n, sizeof(*w->next));
	w->index = calloc(p->nr_edges + 1, sizeof(*w->index));
	w->state = calloc(n, 1);
	w->stack = calloc(n, sizeof(*w->stack));
	if (!w->first || !w->next || !w->index || !w->state || !w->stack)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_edges; i++)
		if (draw_edge_stays(&p->edges[i]))
			w->first[p->edges[i].from + 1]++;
	for (size_t b = 1; b < n; b++)
		w->first[b] += w->first[b - 1];
	memcpy(w->next, w->first, n * sizeof(*w->next));
	for (size_t i = 0; i < p->nr_edges; i++)
		if (draw_edge_stays(&p->edges[i]))
			w->index[w->next[p->edges[i].from]++] = i;
	memcpy(w->next, w->first, n * sizeof(*w->next));
	return 0;
}

static void walk_release(struct walk *w)
{
	free(w->first);
	free(w->next);
	free(w->index);
	free(w->state);
	free(w->stack);
}

static void walk_from(const struct graph_proc *p, struct walk *w, uint32_t start, bool *back)
{
	size_t depth = 0;

	if (w->state[start] != UNMET)
		return;
	w->state[start] = INSIDE;
	w->stack[depth++] = start;
	while (depth) {
		uint32_t b = w->stack[depth - 1], to;
		size_t edge;

		if (w->next[b] == w->first[b + 1]) {
			w->state[b] = DONE;
			depth--;
			continue;
		}
		edge = w->index[w->next[b]++];
		to = p->edges[edge].to;
		back[edge] = w->state[to] == INSIDE;
		if (w->state[to] == UNMET) {
			w->state[to] = INSIDE;
			w->stack[depth++] = to;
		}
	}
}

int draw_loops(const struct graph_proc *p, bool *back)
{
	struct walk w = { 0 };
	int r = walk_init(p, &w);

	for (size_t i = 0; i < p->nr_edges && r >= 0; i++)
		if (p->edges[i].kind == GRAPH_ENTRY)
			walk_from(p, &w, p->edges[i].to, back);
	for (uint32_t b = 0; b < p->nr_blocks && r >= 0; b++)
		walk_from(p, &w, b, back);
	walk_release(&w);
	return r;
}

/* ---- groups -------------------------------------------------------------------------------- */

enum {
	ROUNDS_MAX = 64, /* the order of blocks is mostly that of flow: a few do */
	BOXES_MAX = 200, /* limit for small blocks; with more of them they are grouped whatever
			    leads to them */
};

#define NOBODY	(UINT32_MAX - 1) /* nothing leads here */
#define SEVERAL UINT32_MAX

struct groups {
	const struct graph_proc *p;
	const bool *hidden, *small;
	uint32_t *group, *parent;
};

static uint32_t leader(uint32_t *group, uint32_t b)
{
	for (; group[b] != b; b = group[b])
		group[b] = group[group[b]];
	return b;
}

/* For each group find the only other group that leads to it, or SEVERAL. */
static void find_parents(struct groups *g)
{
	for (uint32_t b = 0; b < g->p->nr_blocks; b++)
		g->parent[b] = NOBODY;
	for (size_t i = 0; i < g->p->nr_edges; i++) {
		const struct graph_edge *e = &g->p->edges[i];
		uint32_t from, to;

		if (e->kind == GRAPH_EXIT || g->hidden[i])
			continue;
		to = leader(g->group, e->to);
		from = e->kind == GRAPH_ENTRY ? SEVERAL : leader(g->group, e->from);
		if (from != to)
			g->parent[to] =
				g->parent[to] == NOBODY || g->parent[to] == from ? from : SEVERAL;
	}
}

static bool join(struct groups *g)
{
	bool any = false;

	for (uint32_t b = 0; b < g->p->nr_blocks; b++) {
		uint32_t to;

		if (g->group[b] != b || !g->small[b] || g->parent[b] >= g->p->nr_blocks)
			continue;
		to = leader(g->group, g->parent[b]);
		if (to == b || !g->small[to])
			continue;
		g->group[b] = to;
		any = true;
	}
	return any;
}

static uint32_t nr_boxes(const struct groups *g)
{
	uint32_t nr = 0;

	for (uint32_t b = 0; b < g->p->nr_blocks; b++)
		nr += g->small[b] && g->group[b] == b;
	return nr;
}

/* Small blocks that hang together, and all of those that no line leads to. */
static void join_coarsely(struct groups *g)
{
	uint32_t first = NOBODY;

	for (size_t i = 0; i < g->p->nr_edges; i++) {
		const struct graph_edge *e = &g->p->edges[i];

		if (draw_edge_stays(e) && !g->hidden[i] && g->small[e->from] && g->small[e->to])
			g->group[leader(g->group, e->to)] = leader(g->group, e->from);
	}
	find_parents(g);
	for (uint32_t b = 0; b < g->p->nr_blocks; b++) {
		if (g->group[b] != b || !g->small[b] || g->parent[b] != NOBODY)
			continue;
		if (first == NOBODY)
			first = b;
		g->group[b] = first;
	}
}

int draw_groups(const struct graph_proc *p, const bool *hidden, const bool *small, uint32_t *group)
{
	struct groups g = { .p = p, .hidden = hidden, .small = small, .group = group };
	int rounds = 0;

	g.parent = calloc((size_t)p->nr_blocks + 1, sizeof(*g.parent));
	if (!g.parent)
		return -ENOMEM;
	for (uint32_t b = 0; b < p->nr_blocks; b++)
		group[b] = b;
	do
		find_parents(&g);
	while (join(&g) && ++rounds < ROUNDS_MAX);
	if (nr_boxes(&g) > BOXES_MAX)
		join_coarsely(&g);
	for (uint32_t b = 0; b < p->nr_blocks; b++)
		group[b] = leader(group, b);
	free(g.parent);
	return 0;
}
