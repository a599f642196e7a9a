/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Divides the samples of each procedure among its leaves, in proportion to their paths. Leaves are
 * taken in the order of a walk through the tree, and each gets what the share of all up to it is
 * more than before, rounded down: so the sums are exact, and what any subtree has of a procedure is
 * less than one sample away from its share.
 */
#include <errno.h>
#include <stdlib.h>

#include "callpath_internal.h"

/* Numbers the nodes as they are met from the root, those below a node right behind it. */
static void walk(const struct callpath_children *c, uint32_t *waiting, uint32_t *rank)
{
	uint32_t next = 0;
	size_t nr = 1;

	for (waiting[0] = 0; nr;) {
		uint32_t node = waiting[--nr];

		rank[node] = next++;
		for (uint32_t i = c->first[node]; i < c->first[node + 1]; i++)
			waiting[nr++] = c->child[i];
	}
}

struct order {
	const struct callpath_tree *t;
	const uint32_t *rank; /* indexed by node */
};

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct order *o = ctx;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	uint32_t ra = o->rank[o->t->leaves[a].node], rb = o->rank[o->t->leaves[b].node];

	return ra != rb ? (ra > rb) - (ra < rb) : (a > b) - (a < b);
}

/* The leaves in the order of the walk: *@out, the caller's. */
static int order_leaves(const struct callpath_tree *t, uint32_t *out)
{
	struct callpath_children c = { 0 };
	uint32_t *waiting = calloc(t->nodes.nr, sizeof(*waiting));
	uint32_t *rank = calloc(t->nodes.nr, sizeof(*rank));
	struct order o = { t, rank };
	int r = waiting && rank ? nodes_children(&t->nodes, &c) : -ENOMEM;

	if (r >= 0) {
		walk(&c, waiting, rank);
		for (size_t i = 0; i < t->nr_leaves; i++)
			out[i] = (uint32_t)i;
		qsort_r(out, t->nr_leaves, sizeof(*out), compare, &o);
	}
	callpath_children_release(&c);
	free(waiting);
	free(rank);
	return r;
}

/* The paths of one procedure that were met so far, and the samples that they have got. */
struct given {
	uint64_t paths, samples;
};

static uint64_t give(const struct callpath_procedure *p, size_t event, uint64_t paths,
		     struct given *g)
{
	unsigned __int128 due;
	uint64_t before = g->samples;

	if (!paths)
		return 0;
	g->paths += paths;
	due = (unsigned __int128)p->flat[event] * g->paths / p->paths[event];
	g->samples = (uint64_t)due;
	return g->samples - before;
}

static void scale_event(struct callpath_tree *t, size_t event, const uint32_t *order,
			struct given *given)
{
	size_t nr_events = t->a->nr_events;

	for (size_t k = 0; k < t->nr_leaves; k++) {
		const struct callpath_leaf *leaf = &t->leaves[order[k]];
		const struct callpath_procedure *p = &t->procedures[leaf->procedure];
		size_t at = order[k] * nr_events + event;

		if (leaf->alone)
			t->count[at] = p->paths[event] ? 0 : p->flat[event];
		else
			t->count[at] = give(p, event, t->raw[at], &given[leaf->procedure]);
		t->alone[event] += leaf->alone ? t->count[at] : 0;
		t->nodes.self[leaf->node * nr_events + event] += t->count[at];
	}
	for (size_t i = 0; i < t->nr_procedures; i++) {
		given[i] = (struct given){ 0, 0 };
		if (!t->procedures[i].flat[event])
			t->unused[event] += t->procedures[i].paths[event];
	}
}

int scale_leaves(struct callpath_tree *t)
{
	uint32_t *order = calloc(t->nr_leaves + 1, sizeof(*order));
	struct given *given = calloc(t->nr_procedures, sizeof(*given));
	int r = order && given ? order_leaves(t, order) : -ENOMEM;

	for (size_t e = 0; e < t->a->nr_events && r >= 0; e++)
		scale_event(t, e, order, given);
	free(order);
	free(given);
	return r;
}
