/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums what is on a path with a procedure, what called it, and what it called: each path once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"

/* ---- totals of all procedures ---------------------------------------------------------------- */

struct walk {
	const struct callpath_nodes *n;
	struct callpath_children c;
	uint32_t *next;	 /* indexed by node: its next child, in c.child */
	uint32_t *depth; /* indexed by class: how often it is on the path to the node */
	const uint32_t *class;
};

static uint32_t class_of(const struct walk *w, uint32_t node)
{
	uint32_t p = w->n->v[node].procedure;

	return w->class ? w->class[p] : p;
}

/* Only where it is the first of its class on its path does a node count. */
static void enter(struct walk *w, uint32_t node, size_t event, uint64_t *total)
{
	uint32_t c = class_of(w, node);

	if (c != UINT32_MAX && !w->depth[c]++)
		total[c] += w->n->total[node * w->n->nr_events + event];
	w->next[node] = w->c.first[node];
}

static uint32_t leave(struct walk *w, uint32_t node)
{
	uint32_t c = class_of(w, node);

	if (c != UINT32_MAX)
		w->depth[c]--;
	return w->n->v[node].parent;
}

static void walk(struct walk *w, size_t event, uint64_t *total)
{
	uint32_t at = 0;

	enter(w, at, event, total);
	while (at != CALLPATH_NO_NODE) {
		if (w->next[at] < w->c.first[at + 1]) {
			at = w->c.child[w->next[at]++];
			enter(w, at, event, total);
		} else {
			at = leave(w, at);
		}
	}
}

int callpath_totals(const struct callpath_tree *t, size_t event, const uint32_t *class, size_t nr,
		    uint64_t *total)
{
	struct walk w = { .n = &t->nodes, .class = class };
	int r = nodes_children(&t->nodes, &w.c);

	w.next = calloc(t->nodes.nr, sizeof(*w.next));
	w.depth = calloc(nr + 1, sizeof(*w.depth));
	memset(total, 0, nr * sizeof(*total));
	if (r >= 0 && w.next && w.depth)
		walk(&w, event, total);
	else
		r = -ENOMEM;
	callpath_children_release(&w.c);
	free(w.next);
	free(w.depth);
	return r;
}

/* ---- one procedure --------------------------------------------------------------------------- */

struct around {
	const struct callpath_tree *t;
	uint32_t procedure;
	size_t event;
	/* Indexed by node: how many of it are on the path, 2 for any more; and the node below the
	 * innermost one of it, or that itself. */
	uint8_t *times;
	uint32_t *below;
	uint64_t *callers, *callees; /* indexed by procedure */
};

static uint64_t number(const struct around *x, const uint64_t *counts, size_t node)
{
	return counts[node * x->t->nodes.nr_events + x->event];
}

static void sum_node(struct around *x, size_t i, struct callpath_around *out)
{
	const struct callpath_nodes *n = &x->t->nodes;
	uint32_t parent = n->v[i].parent;
	bool is = n->v[i].procedure == x->procedure;

	x->times[i] = x->times[parent];
	x->below[i] = (uint32_t)i;
	if (is && x->times[parent] == 0) {
		x->callers[n->v[parent].procedure] += number(x, n->total, i);
		out->total += number(x, n->total, i);
	}
	if (is && x->times[parent] == 1)
		out->recursive += number(x, n->total, i);
	if (is && x->times[i] < 2)
		x->times[i]++;
	if (!is && x->times[i] && n->v[x->below[parent]].procedure != x->procedure)
		x->below[i] = x->below[parent];
	if (is)
		out->self += number(x, n->self, i);
	else if (x->times[i])
		x->callees[n->v[x->below[i]].procedure] += number(x, n->self, i);
}

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct callpath_edge *a = pa, *b = pb;
	const struct callpath_tree *t = ctx;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return procedures_compare(t, a->procedure, b->procedure);
}

static int list(const struct callpath_tree *t, const uint64_t *by, struct callpath_edge **out,
		size_t *nr)
{
	size_t cap = 0;
	int r = 0;

	for (size_t i = 0; i < t->nr_procedures && r >= 0; i++) {
		if (!by[i])
			continue;
		r = base_grow(out, &cap, *nr + 1, sizeof(**out));
		if (r >= 0)
			(*out)[(*nr)++] = (struct callpath_edge){ (uint32_t)i, by[i] };
	}
	if (*nr)
		qsort_r(*out, *nr, sizeof(**out), compare, (void *)(uintptr_t)t);
	return r;
}

int callpath_around_make(const struct callpath_tree *t, uint32_t procedure, size_t event,
			 struct callpath_around *out)
{
	struct around x = { t, procedure, event, NULL, NULL, NULL, NULL };
	int r = -ENOMEM;

	*out = (struct callpath_around){ .procedure = procedure };
	x.times = calloc(t->nodes.nr, sizeof(*x.times));
	x.below = calloc(t->nodes.nr, sizeof(*x.below));
	x.callers = calloc(t->nr_procedures, sizeof(*x.callers));
	x.callees = calloc(t->nr_procedures, sizeof(*x.callees));
	if (x.times && x.below && x.callers && x.callees) {
		for (size_t i = 1; i < t->nodes.nr; i++)
			sum_node(&x, i, out);
		r = list(t, x.callers, &out->callers, &out->nr_callers);
	}
	if (r >= 0)
		r = list(t, x.callees, &out->callees, &out->nr_callees);
	free(x.times);
	free(x.below);
	free(x.callers);
	free(x.callees);
	if (r < 0)
		callpath_around_release(out);
	return r;
}

void callpath_around_release(struct callpath_around *x)
{
	free(x->callers);
	free(x->callees);
	memset(x, 0, sizeof(*x));
}
