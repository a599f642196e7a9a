/* SPDX-License-Identifier: BSD-2-Clause */
/* The classes of blocks and edges that run equally often. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "classes.h"

/*
 * The undirected graph: block b is an arc from node 2b (its start) to 2b + 1 (its end), edges are
 * arcs between these, and everything outside of the procedure is one node.
 */
struct arcs {
	const struct flow *f;
	uint32_t nr_nodes, nr; /* arcs: the blocks, then the edges */
	uint32_t *first, *at;  /* arcs of node n: at[first[n]] to at[first[n + 1]] */
	uint64_t *number;      /* indexed by arc */
	uint32_t *order;       /* nodes in the order in which the search reaches them */
	uint32_t *parent;      /* indexed by node: the arc by which the search reaches it */
	bool *seen;	       /* indexed by node */
	bool *done;	       /* indexed by arc */
};

static uint32_t outside(const struct arcs *a)
{
	return 2 * a->f->nr_blocks;
}

static void ends(const struct arcs *a, uint32_t arc, uint32_t end[2])
{
	const struct flow_edge *e;

	if (arc < a->f->nr_blocks) {
		end[0] = 2 * arc;
		end[1] = 2 * arc + 1;
		return;
	}
	e = &a->f->edges[arc - a->f->nr_blocks];
	end[0] = e->from == FLOW_OUTSIDE ? outside(a) : 2 * e->from + 1;
	end[1] = e->to == FLOW_OUTSIDE ? outside(a) : 2 * e->to;
}

static int open_arcs(struct arcs *a)
{
	a->nr_nodes = 2 * a->f->nr_blocks + 1;
	a->nr = a->f->nr_blocks + a->f->nr_edges;
	a->first = calloc((size_t)a->nr_nodes + 2, sizeof(*a->first));
	a->at = calloc(2 * (size_t)a->nr + 1, sizeof(*a->at));
	a->number = calloc((size_t)a->nr + 1, sizeof(*a->number));
	a->order = calloc(a->nr_nodes, sizeof(*a->order));
	a->parent = calloc(a->nr_nodes, sizeof(*a->parent));
	a->seen = calloc(a->nr_nodes, sizeof(*a->seen));
	a->done = calloc((size_t)a->nr + 1, sizeof(*a->done));
	return a->first && a->at && a->number && a->order && a->parent && a->seen && a->done
		       ? 0
		       : -ENOMEM;
}

static void release(struct arcs *a)
{
	free(a->first);
	free(a->at);
	free(a->number);
	free(a->order);
	free(a->parent);
	free(a->seen);
	free(a->done);
}

/* first[n + 1] first grows to the start of n's arcs, then, while these are entered, to their
 * end. */
static void list_arcs(struct arcs *a)
{
	uint32_t end[2];

	for (uint32_t i = 0; i < a->nr; i++) {
		ends(a, i, end);
		a->first[end[0] + 2]++;
		a->first[end[1] + 2]++;
	}
	for (uint32_t n = 2; n <= a->nr_nodes; n++)
		a->first[n] += a->first[n - 1];
	for (uint32_t i = 0; i < a->nr; i++) {
		ends(a, i, end);
		a->at[a->first[end[0] + 1]++] = i;
		a->at[a->first[end[1] + 1]++] = i;
	}
}

/* The sequence is the same in every run (SplitMix64). */
static uint64_t random64(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Finds a spanning tree; any one serves. Returns the number of its nodes. */
static uint32_t span(struct arcs *a)
{
	uint32_t nr = 0, end[2];

	a->seen[outside(a)] = true;
	a->parent[outside(a)] = UINT32_MAX;
	a->order[nr++] = outside(a);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t n = a->order[i];

		for (uint32_t k = a->first[n]; k < a->first[n + 1]; k++) {
			uint32_t other;

			ends(a, a->at[k], end);
			other = end[0] == n ? end[1] : end[0];
			if (a->seen[other])
				continue;
			a->seen[other] = true;
			a->parent[other] = a->at[k];
			a->done[a->at[k]] = true; /* a tree arc */
			a->order[nr++] = other;
		}
	}
	return nr;
}

static void give_numbers(struct arcs *a, uint32_t nr_reached)
{
	uint64_t state = 0x64637069; /* "dcpi" */

	for (uint32_t i = 0; i < a->nr; i++)
		if (!a->done[i])
			a->number[i] = random64(&state);
	/* The number of a node's tree arc combines those of the arcs below it and of the other
	 * arcs that end at the node. */
	while (nr_reached-- > 1) {
		uint32_t n = a->order[nr_reached], own = a->parent[n];

		for (uint32_t k = a->first[n]; k < a->first[n + 1]; k++)
			if (a->at[k] != own)
				a->number[own] ^= a->number[a->at[k]];
	}
}

struct numbered {
	uint64_t number;
	uint32_t arc;
};

static int by_number(const void *pa, const void *pb)
{
	const struct numbered *a = pa, *b = pb;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->arc > b->arc) - (a->arc < b->arc);
}

static void set_class(struct flow *f, uint32_t arc, uint32_t eq_class)
{
	if (arc < f->nr_blocks)
		f->blocks[arc].eq_class = eq_class;
	else
		f->edges[arc - f->nr_blocks].eq_class = eq_class;
}

/* Numbers the classes in the order of their first block or edge. */
static int name_classes(struct flow *f, const struct arcs *a)
{
	struct numbered *v = calloc((size_t)a->nr + 1, sizeof(*v));
	uint32_t *class_of = calloc((size_t)a->nr + 1, sizeof(*class_of));
	int r = v && class_of ? 0 : -ENOMEM;

	for (uint32_t i = 0; r >= 0 && i < a->nr; i++)
		v[i] = (struct numbered){ a->number[i], i };
	if (r >= 0)
		qsort(v, a->nr, sizeof(*v), by_number);
	for (uint32_t i = 0; r >= 0 && i < a->nr; i++) {
		bool same = i && v[i].number == v[i - 1].number;

		class_of[v[i].arc] = same ? class_of[v[i - 1].arc] : v[i].arc;
	}
	f->nr_classes = 0;
	/* The first member of a class precedes the others, as by_number sorts them. */
	for (uint32_t i = 0; r >= 0 && i < a->nr; i++) {
		uint32_t leader = class_of[i];

		if (leader == i)
			v[i].arc = f->nr_classes++;
		set_class(f, i, v[leader].arc);
	}
	free(v);
	free(class_of);
	return r;
}

int flow_find_classes(struct flow *f)
{
	struct arcs a = { .f = f };
	int r = open_arcs(&a);

	if (r >= 0) {
		list_arcs(&a);
		give_numbers(&a, span(&a));
		r = name_classes(f, &a);
	}
	release(&a);
	return r;
}
