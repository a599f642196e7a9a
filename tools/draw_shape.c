/* SPDX-License-Identifier: BSD-2-Clause */
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

enum { ROUNDS_MAX = 64 }; /* the order of blocks is mostly that of flow: a few do */

#define NOBODY	(UINT32_MAX - 1) /* nothing leads here yet */
#define SEVERAL UINT32_MAX

static uint32_t leader(const uint32_t *group, uint32_t b)
{
	while (group[b] != b)
		b = group[b];
	return b;
}

/* Of each group the one other group that leads to it, or SEVERAL. */
static void find_parents(const struct graph_proc *p, const uint32_t *group, uint32_t *parent)
{
	for (uint32_t b = 0; b < p->nr_blocks; b++)
		parent[b] = NOBODY;
	for (size_t i = 0; i < p->nr_edges; i++) {
		const struct graph_edge *e = &p->edges[i];
		uint32_t from, to;

		if (e->kind == GRAPH_EXIT)
			continue;
		to = leader(group, e->to);
		from = e->kind == GRAPH_ENTRY ? SEVERAL : leader(group, e->from);
		if (from != to)
			parent[to] = parent[to] == NOBODY || parent[to] == from ? from : SEVERAL;
	}
}

static bool join(const struct graph_proc *p, const bool *small, uint32_t *group,
		 const uint32_t *parent)
{
	bool any = false;

	for (uint32_t b = 0; b < p->nr_blocks; b++) {
		uint32_t to;

		if (group[b] != b || !small[b] || parent[b] >= p->nr_blocks)
			continue;
		to = leader(group, parent[b]);
		if (to == b || !small[to])
			continue;
		group[b] = to;
		any = true;
	}
	return any;
}

int draw_groups(const struct graph_proc *p, const bool *small, uint32_t *group)
{
	uint32_t *parent = calloc((size_t)p->nr_blocks + 1, sizeof(*parent));
	int rounds = 0;

	if (!parent)
		return -ENOMEM;
	for (uint32_t b = 0; b < p->nr_blocks; b++)
		group[b] = b;
	do
		find_parents(p, group, parent);
	while (join(p, small, group, parent) && ++rounds < ROUNDS_MAX);
	for (uint32_t b = 0; b < p->nr_blocks; b++)
		group[b] = leader(group, b);
	free(parent);
	return 0;
}
