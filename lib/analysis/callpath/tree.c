/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the tree of procedures of the database's tree of frames, divides samples among its leaves,
 * and sums over it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"

/* ---- nodes ----------------------------------------------------------------------------------- */

/* A tree with its root alone; the child of a node, made where missing; room for the
 * numbers, all 0, once all nodes are there; totals from what each node has itself. */
static int nodes_begin(struct callpath_nodes *n, size_t nr_events)
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

static int nodes_child(struct callpath_nodes *n, uint32_t parent, uint32_t procedure, bool inlined,
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

static int nodes_counts(struct callpath_nodes *n)
{
	n->self = calloc(n->nr * n->nr_events + 1, sizeof(*n->self));
	n->total = calloc(n->nr * n->nr_events + 1, sizeof(*n->total));
	return n->self && n->total ? 0 : -ENOMEM;
}

/* A child stands behind its parent, so that one walk from the last node on has all sums. */
static void nodes_total(struct callpath_nodes *n)
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

/* ---- leaves ---------------------------------------------------------------------------------- */

/*
 * Divides the samples of each procedure among its leaves, in proportion to their paths. Leaves are
 * taken in the order of a walk through the tree, and each gets what the share of all up to it is
 * more than before, rounded down: so the sums are exact, and what any subtree has of a procedure is
 * less than one sample away from its share.
 */

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

struct leaf_order {
	const struct callpath_tree *t;
	const uint32_t *rank; /* indexed by node */
};

static int compare_leaves(const void *pa, const void *pb, void *ctx)
{
	const struct leaf_order *o = ctx;
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
	struct leaf_order o = { t, rank };
	int r = waiting && rank ? nodes_children(&t->nodes, &c) : -ENOMEM;

	if (r >= 0) {
		walk(&c, waiting, rank);
		for (size_t i = 0; i < t->nr_leaves; i++)
			out[i] = (uint32_t)i;
		qsort_r(out, t->nr_leaves, sizeof(*out), compare_leaves, &o);
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

/* T->count from t->raw, and from it what nodes have. */
static int scale_leaves(struct callpath_tree *t)
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

/* ---- the tree -------------------------------------------------------------------------------- */

struct making {
	struct callpath_tree *t;
	const struct profdb_callpaths *paths;
	const struct callpath_how *how;
	struct frames frames;
	uint32_t *node;		     /* indexed by node of the paths */
	uint8_t *end;		     /* likewise: how its path ends */
	uint8_t *verdict;	     /* likewise: enum called of its caller, or NOT_ASKED */
	int event[PROFDB_NR_EVENTS]; /* indexed by event of the paths; negative: not chosen */
};

enum { NOT_ASKED = CALLPATH_NR_CHECKS };
_Static_assert((int)CALLED_AGREES == CALLPATH_AGREES &&
		       (int)CALLED_UNCHECKED == CALLPATH_UNCHECKED &&
		       (int)CALLED_CONTRADICTED == CALLPATH_CONTRADICTED,
	       "enum called");

static int leaf_find(struct callpath_tree *t, uint32_t node, uint32_t procedure, uint32_t *out)
{
	const uint32_t key[2] = { node, procedure };
	uintptr_t at = (uintptr_t)base_map_get(&t->by_leaf, key, sizeof(key));
	int r = 0;

	if (!at) {
		r = base_grow(&t->leaves, &t->cap_leaves, t->nr_leaves + 1, sizeof(*t->leaves));
		if (r < 0 || t->nr_leaves >= UINT32_MAX)
			return -ENOMEM;
		t->leaves[t->nr_leaves++] = (struct callpath_leaf){ node, procedure, false };
		at = t->nr_leaves;
		r = base_map_set(&t->by_leaf, key, sizeof(key), (void *)at);
	}
	*out = (uint32_t)(at - 1);
	return r;
}

/* ---- the nodes ------------------------------------------------------------------------------- */

/* The frame's procedures below their caller's node, the innermost one last. */
static int descend(struct making *m, const struct frame_chain *chain, uint32_t *at)
{
	struct callpath_nodes *n = &m->t->nodes;
	int r = 0;

	for (uint32_t i = chain->nr; i-- && r >= 0;) {
		uint32_t p = m->frames.procedures[chain->first + i];

		if (!m->how->fold || n->v[*at].procedure != p)
			r = nodes_child(n, *at, p, i + 1 < chain->nr, at);
		else
			n->v[*at].recursive = true;
	}
	return r;
}

static int make_ends(struct making *m)
{
	int r = nodes_begin(&m->t->nodes, m->t->a->nr_events);

	for (uint32_t i = 0; i < PROFDB_NR_CALLPATH_ENDS && r >= 0; i++) {
		m->end[i] = (uint8_t)i;
		m->node[i] = 0;
		if (i != CALLPATH_OUTERMOST)
			r = nodes_child(&m->t->nodes, 0, i, false, &m->node[i]);
	}
	return r;
}

static int make_nodes(struct making *m)
{
	size_t nr = profdb_callpaths_nr_nodes(m->paths);
	int r = make_ends(m);

	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < nr && r >= 0; i++) {
		struct profdb_callpath_node n = profdb_callpaths_frame(m->paths, i);

		m->t->contradicted[i] = m->verdict[i] == CALLED_CONTRADICTED;
		if (m->t->contradicted[i])
			n.parent = PROFDB_CALLPATH_CONTRADICTED;
		m->end[i] = m->end[n.parent];
		m->node[i] = m->node[n.parent];
		r = descend(m, &m->frames.of[i], &m->node[i]);
	}
	return r;
}

/* ---- the leaves ------------------------------------------------------------------------------ */

static uint32_t procedure_of(const struct making *m, size_t node)
{
	const struct frame_chain *chain = &m->frames.of[node];

	return m->frames.procedures[chain->first + chain->nr - 1];
}

static bool has_samples(const struct making *m, const uint64_t *count)
{
	for (size_t e = 0; e < profdb_callpaths_nr_events(m->paths); e++)
		if (m->event[e] >= 0 && count[e])
			return true;
	return false;
}

/* For each node with samples of its own. */
static int each_leaf(struct making *m, int (*fn)(struct making *m, size_t node, const uint64_t *n))
{
	int r = 0;

	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(m->paths) && r >= 0;
	     i++) {
		struct profdb_callpath_node n = profdb_callpaths_node(m->paths, i);

		if (has_samples(m, n.count))
			r = fn(m, i, n.count);
	}
	return r;
}

static int make_leaf(struct making *m, size_t node, const uint64_t *count)
{
	uint32_t leaf, procedure = procedure_of(m, node);
	int r = leaf_find(m->t, m->node[node], procedure, &leaf);

	for (size_t e = 0; e < profdb_callpaths_nr_events(m->paths); e++)
		if (m->event[e] >= 0)
			m->t->procedures[procedure].paths[m->event[e]] += count[e];
	return r;
}

static int count_leaf(struct making *m, size_t node, const uint64_t *count)
{
	struct callpath_tree *t = m->t;
	uint32_t leaf;
	int r = leaf_find(t, m->node[node], procedure_of(m, node), &leaf);

	t->leaf_of[node] = leaf;
	for (size_t e = 0; e < profdb_callpaths_nr_events(m->paths) && r >= 0; e++) {
		if (m->event[e] < 0)
			continue;
		t->raw[leaf * t->a->nr_events + (size_t)m->event[e]] += count[e];
		t->ends[(size_t)m->event[e] * PROFDB_NR_CALLPATH_ENDS + m->end[node]] += count[e];
	}
	return r;
}

/* The callers of each sample's path, by what the check of them said. */
static int count_checks(struct making *m)
{
	const struct profdb_callpaths *paths = m->paths;
	const size_t nr = profdb_callpaths_nr_nodes(paths);
	uint64_t *total = calloc(nr + 1, sizeof(*total));

	for (size_t e = 0; total && e < profdb_callpaths_nr_events(paths); e++) {
		uint64_t *checks = m->t->checks;

		if (m->event[e] < 0)
			continue;
		checks += (size_t)m->event[e] * CALLPATH_NR_CHECKS;
		for (size_t i = 0; i < nr; i++)
			total[i] = profdb_callpaths_node(paths, i).count[e];
		for (size_t i = nr; i-- > PROFDB_NR_CALLPATH_ENDS;) {
			total[profdb_callpaths_node(paths, i).parent] += total[i];
			if (m->verdict[i] != NOT_ASKED)
				checks[m->verdict[i]] += total[i];
		}
	}
	free(total);
	return total ? 0 : -ENOMEM;
}

static bool lacks_paths(const struct callpath_tree *t, const struct callpath_procedure *p)
{
	for (size_t e = 0; e < t->a->nr_events; e++)
		if (p->flat[e] && !p->paths[e])
			return true;
	return false;
}

/* A path of its own for the samples of procedures that no kept path ends in. */
static int make_alone(struct callpath_tree *t)
{
	uint32_t above = 0, node, leaf;
	int r = 0;

	for (size_t i = CALLPATH_NR_ENDS; i < t->nr_procedures && r >= 0; i++) {
		if (!lacks_paths(t, &t->procedures[i]))
			continue;
		r = nodes_child(&t->nodes, 0, CALLPATH_NO_PATH, false, &above);
		if (r >= 0)
			r = nodes_child(&t->nodes, above, (uint32_t)i, false, &node);
		if (r >= 0)
			r = leaf_find(t, node, (uint32_t)i, &leaf);
		if (r >= 0)
			t->leaves[leaf].alone = true;
	}
	return r;
}

static int make_counts(struct callpath_tree *t)
{
	size_t nr = t->nr_leaves * t->a->nr_events + 1, nr_events = t->a->nr_events + 1;

	t->raw = calloc(nr, sizeof(*t->raw));
	t->count = calloc(nr, sizeof(*t->count));
	t->ends = calloc(nr_events * PROFDB_NR_CALLPATH_ENDS, sizeof(*t->ends));
	t->checks = calloc(nr_events * CALLPATH_NR_CHECKS, sizeof(*t->checks));
	t->unused = calloc(nr_events, sizeof(*t->unused));
	t->alone = calloc(nr_events, sizeof(*t->alone));
	if (!t->raw || !t->count || !t->ends || !t->checks || !t->unused || !t->alone)
		return -ENOMEM;
	return nodes_counts(&t->nodes);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int make(struct making *m)
{
	int r;

	for (size_t e = 0; e < profdb_callpaths_nr_events(m->paths); e++)
		m->event[e] = analysis_event_find(m->t->a,
						  profdb_callpaths_event(m->paths, e)->name, NULL);
	r = frames_resolve(m->t, m->paths, m->how->inlined, &m->frames);
	if (r >= 0 && m->how->check)
		r = callpath_check(m->t, m->paths, &m->frames, m->verdict);
	if (r >= 0)
		r = make_nodes(m);
	if (r >= 0)
		r = each_leaf(m, make_leaf);
	if (r >= 0)
		r = make_alone(m->t);
	if (r >= 0)
		r = make_counts(m->t);
	if (r >= 0)
		r = count_checks(m);
	if (r >= 0)
		r = each_leaf(m, count_leaf);
	if (r >= 0)
		r = scale_leaves(m->t);
	if (r >= 0)
		nodes_total(&m->t->nodes);
	return r;
}

static void frames_release(struct frames *f)
{
	free(f->of);
	free(f->images);
	free(f->procedures);
}

int callpath_tree_make(struct analysis *a, const struct profdb_callpaths *paths,
		       const struct callpath_how *how, struct callpath_tree **out,
		       struct base_err *err)
{
	struct making m = { .paths = paths, .how = how };
	size_t nr = profdb_callpaths_nr_nodes(paths);
	int r = -ENOMEM;

	m.t = calloc(1, sizeof(*m.t));
	m.node = calloc(nr + 1, sizeof(*m.node));
	m.end = calloc(nr + 1, sizeof(*m.end));
	m.verdict = malloc(nr + 1);
	if (m.t) {
		m.t->leaf_of = malloc((nr + 1) * sizeof(*m.t->leaf_of));
		m.t->contradicted = calloc(nr + 1, sizeof(*m.t->contradicted));
	}
	if (m.t && m.t->leaf_of && m.t->contradicted && m.node && m.end && m.verdict) {
		memset(m.verdict, NOT_ASKED, nr + 1);
		memset(m.t->leaf_of, 0xff, (nr + 1) * sizeof(*m.t->leaf_of));
		m.t->a = a;
		r = make(&m);
	}
	frames_release(&m.frames);
	free(m.node);
	free(m.end);
	free(m.verdict);
	if (r < 0) {
		callpath_tree_free(m.t);
		return base_fail_errno(err, r, "cannot make a tree of the call paths");
	}
	*out = m.t;
	return 0;
}

static void procedures_release(struct callpath_tree *t)
{
	for (size_t i = 0; i < t->nr_procedures; i++) {
		free(t->procedures[i].name);
		free(t->procedures[i].flat);
		free(t->procedures[i].paths);
	}
	for (size_t i = 0; i < t->nr_groups; i++) {
		free(t->groups[i]->facility);
		free(t->groups[i]);
	}
	base_map_release(&t->by_key);
	base_map_release(&t->by_facility);
	free(t->procedures);
	free(t->groups);
}

void callpath_tree_free(struct callpath_tree *t)
{
	if (!t)
		return;
	procedures_release(t);
	callpath_nodes_release(&t->nodes);
	base_map_release(&t->by_leaf);
	free(t->leaves);
	free(t->leaf_of);
	free(t->contradicted);
	free(t->raw);
	free(t->count);
	free(t->ends);
	free(t->checks);
	free(t->unused);
	free(t->alone);
	free(t);
}

/* ---- sums over a tree ------------------------------------------------------------------------ */

uint64_t callpath_paths(const struct callpath_tree *t, size_t event)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < PROFDB_NR_CALLPATH_ENDS; i++)
		sum += t->ends[event * PROFDB_NR_CALLPATH_ENDS + i];
	return sum;
}

int callpath_keep(struct callpath_tree *t, const bool *wanted)
{
	struct callpath_nodes *n = &t->nodes;
	size_t nr_events = n->nr_events;
	bool *has = calloc(n->nr, sizeof(*has));

	if (!has)
		return -ENOMEM;
	for (size_t i = 1; i < n->nr; i++) {
		has[i] = has[n->v[i].parent] || wanted[n->v[i].procedure];
		if (!has[i])
			memset(n->self + i * nr_events, 0, nr_events * sizeof(*n->self));
	}
	free(has);
	nodes_total(n);
	return 0;
}
