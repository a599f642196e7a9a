/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes trees whose nodes are procedures below their callers, and adds up what they have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"

int nodes_begin(struct callpath_nodes *n, size_t nr_events)
{
	int r = base_grow(&n->v, &n->cap, 1, sizeof(*n->v));

	if (r < 0)
		return r;
	n->nr_events = nr_events;
	n->nr = 1;
	n->v[0] = (struct callpath_node){ .parent = CALLPATH_NO_NODE };
	return 0;
}

static int add_node(struct callpath_nodes *n, const uint32_t key[2], bool inlined)
{
	int r = base_grow(&n->v, &n->cap, n->nr + 1, sizeof(*n->v));

	if (r < 0 || n->nr + 1 >= CALLPATH_NO_NODE)
		return -ENOMEM;
	n->v[n->nr++] = (struct callpath_node){ key[0], key[1], inlined, false };
	return base_map_set(&n->children, key, 2 * sizeof(*key), (void *)(uintptr_t)n->nr);
}

int nodes_child(struct callpath_nodes *n, uint32_t parent, uint32_t procedure, bool inlined,
		uint32_t *out)
{
	const uint32_t key[2] = { parent, procedure };
	uintptr_t at = (uintptr_t)base_map_get(&n->children, key, sizeof(key));
	int r = 0;

	if (at) {
		*out = (uint32_t)(at - 1);
		n->v[*out].inlined &= inlined;
		return 0;
	}
	r = add_node(n, key, inlined);
	*out = (uint32_t)(n->nr - 1);
	return r;
}

int nodes_counts(struct callpath_nodes *n)
{
	n->self = calloc(n->nr * n->nr_events + 1, sizeof(*n->self));
	n->total = calloc(n->nr * n->nr_events + 1, sizeof(*n->total));
	return n->self && n->total ? 0 : -ENOMEM;
}

/* A child stands behind its parent, so that one walk from the last node on has all sums. */
void nodes_total(struct callpath_nodes *n)
{
	memcpy(n->total, n->self, n->nr * n->nr_events * sizeof(*n->total));
	for (size_t i = n->nr; --i;)
		for (size_t e = 0; e < n->nr_events; e++)
			n->total[n->v[i].parent * n->nr_events + e] +=
				n->total[i * n->nr_events + e];
}

void callpath_nodes_release(struct callpath_nodes *n)
{
	base_map_release(&n->children);
	free(n->v);
	free(n->self);
	free(n->total);
	memset(n, 0, sizeof(*n));
}

/* ---- children of each node ------------------------------------------------------------------- */

struct order {
	const struct callpath_tree *t;
	const struct callpath_nodes *n;
	size_t event;
};

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct order *o = ctx;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	uint64_t na = o->n->total[a * o->n->nr_events + o->event];
	uint64_t nb = o->n->total[b * o->n->nr_events + o->event];

	if (na != nb)
		return na > nb ? -1 : 1;
	return procedures_compare(o->t, o->n->v[a].procedure, o->n->v[b].procedure);
}

/* Counting sort by parent. */
static void fill(const struct callpath_nodes *n, struct callpath_children *c)
{
	for (size_t i = 1; i < n->nr; i++)
		c->first[n->v[i].parent + 1]++;
	for (size_t i = 0; i < n->nr; i++)
		c->first[i + 1] += c->first[i];
	for (size_t i = n->nr; --i;)
		c->child[--c->first[n->v[i].parent + 1]] = (uint32_t)i;
	/* Now first[i + 1] is where the children of i begin. */
	memmove(c->first, c->first + 1, n->nr * sizeof(*c->first));
	c->first[n->nr] = (uint32_t)(n->nr - 1);
}

int nodes_children(const struct callpath_nodes *n, struct callpath_children *out)
{
	out->first = calloc(n->nr + 2, sizeof(*out->first));
	out->child = calloc(n->nr + 1, sizeof(*out->child));
	if (!out->first || !out->child) {
		callpath_children_release(out);
		return -ENOMEM;
	}
	fill(n, out);
	return 0;
}

int callpath_children_make(const struct callpath_tree *t, const struct callpath_nodes *n,
			   size_t event, struct callpath_children *out)
{
	struct order o = { t, n, event };
	int r = nodes_children(n, out);

	for (size_t i = 0; i < n->nr && r >= 0; i++)
		if (out->first[i + 1] - out->first[i] > 1)
			qsort_r(out->child + out->first[i], out->first[i + 1] - out->first[i],
				sizeof(*out->child), compare, &o);
	return r;
}

void callpath_children_release(struct callpath_children *c)
{
	free(c->first);
	free(c->child);
	memset(c, 0, sizeof(*c));
}

/* ---- other trees of the same samples --------------------------------------------------------- */

static void add(struct callpath_nodes *to, uint32_t node, const uint64_t *count)
{
	for (size_t e = 0; e < to->nr_events; e++)
		to->self[node * to->nr_events + e] += count[e];
}

static int copy_child(struct callpath_nodes *to, uint32_t parent, const struct callpath_node *v,
		      uint32_t *out)
{
	int r = nodes_child(to, parent, v->procedure, v->inlined, out);

	if (r >= 0)
		to->v[*out].recursive |= v->recursive;
	return r;
}

/* Copies what is below the outermost frames of the procedure: @at is indexed by node. */
static int copy_below(const struct callpath_nodes *n, uint32_t procedure,
		      struct callpath_nodes *out, uint32_t *at)
{
	int r = 0;

	at[0] = CALLPATH_NO_NODE;
	for (size_t i = 1; i < n->nr && r >= 0; i++) {
		const struct callpath_node *v = &n->v[i];
		uint32_t parent = at[v->parent];

		at[i] = CALLPATH_NO_NODE;
		if (parent == CALLPATH_NO_NODE && v->procedure == procedure)
			parent = 0;
		if (parent != CALLPATH_NO_NODE)
			r = copy_child(out, parent, v, &at[i]);
	}
	return r;
}

/* With @counted its nodes are there, and get their samples. */
static int below(const struct callpath_nodes *n, uint32_t procedure, struct callpath_nodes *out,
		 bool counted)
{
	uint32_t *at = calloc(n->nr, sizeof(*at));
	int r = at ? copy_below(n, procedure, out, at) : -ENOMEM;

	for (size_t i = 1; i < n->nr && r >= 0 && counted; i++)
		if (at[i] != CALLPATH_NO_NODE)
			add(out, at[i], n->self + i * n->nr_events);
	free(at);
	return r;
}

static bool is_empty(const uint64_t *count, size_t nr)
{
	while (nr && !count[nr - 1])
		nr--;
	return !nr;
}

/* Adds the callers of @node below each other; *@last is the outermost one. */
static int climb(const struct callpath_nodes *n, uint32_t node, struct callpath_nodes *out,
		 uint32_t *last)
{
	uint32_t at = 0;
	int r = 0;

	for (; node && r >= 0; node = n->v[node].parent)
		r = copy_child(out, at, &n->v[node], &at);
	*last = at;
	return r;
}

/* From each of the procedure's outermost frames with all that is below it. */
static int above(const struct callpath_nodes *n, uint32_t procedure, struct callpath_nodes *out,
		 bool counted)
{
	bool *has = calloc(n->nr, sizeof(*has));
	int r = has ? 0 : -ENOMEM;
	uint32_t last;

	for (size_t i = 1; i < n->nr && r >= 0; i++) {
		bool is = n->v[i].procedure == procedure;

		has[i] = is || has[n->v[i].parent];
		if (!is || has[n->v[i].parent])
			continue;
		r = climb(n, (uint32_t)i, out, &last);
		if (r >= 0 && counted)
			add(out, last, n->total + i * n->nr_events);
	}
	free(has);
	return r;
}

static int above_all(const struct callpath_nodes *n, struct callpath_nodes *out, bool counted)
{
	uint32_t last;
	int r = 0;

	for (size_t i = 1; i < n->nr && r >= 0; i++) {
		if (is_empty(n->self + i * n->nr_events, n->nr_events))
			continue;
		r = climb(n, (uint32_t)i, out, &last);
		if (r >= 0 && counted)
			add(out, last, n->self + i * n->nr_events);
	}
	return r;
}

typedef int other_fn(const struct callpath_nodes *n, uint32_t procedure, struct callpath_nodes *out,
		     bool counted);

static int each_chosen(const struct callpath_tree *t, const bool *procedures, other_fn *fn,
		       struct callpath_nodes *out, bool counted)
{
	int r = 0;

	for (uint32_t i = 0; i < t->nr_procedures && r >= 0; i++)
		if (procedures[i])
			r = fn(&t->nodes, i, out, counted);
	return r;
}

/* In two rounds: first the nodes, then their samples. */
static int make_other(const struct callpath_tree *t, const bool *procedures, other_fn *fn,
		      struct callpath_nodes *out)
{
	int r = nodes_begin(out, t->nodes.nr_events);

	for (int round = 0; round < 2 && r >= 0; round++) {
		r = procedures ? each_chosen(t, procedures, fn, out, round)
			       : above_all(&t->nodes, out, round);
		if (r >= 0 && !round)
			r = nodes_counts(out);
	}
	if (r >= 0)
		nodes_total(out);
	return r;
}

int callpath_below(const struct callpath_tree *t, const bool *procedures,
		   struct callpath_nodes *out)
{
	return make_other(t, procedures, below, out);
}

int callpath_above(const struct callpath_tree *t, const bool *procedures,
		   struct callpath_nodes *out)
{
	return make_other(t, procedures, above, out);
}
