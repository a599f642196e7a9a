/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the tree of procedures of the database's tree of frames, and sums over it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"

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
		struct profdb_callpath_node n = profdb_callpaths_node(m->paths, i);

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
	int r = procedures_begin(m->t);

	for (size_t e = 0; e < profdb_callpaths_nr_events(m->paths); e++)
		m->event[e] = analysis_event_find(m->t->a,
						  profdb_callpaths_event(m->paths, e)->name, NULL);
	if (r >= 0)
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
