/* SPDX-License-Identifier: BSD-2-Clause */
/* Restricts profiles to the samples that were called from a procedure. */
#include <errno.h>
#include <stdlib.h>

#include "callpath_internal.h"

/* The paths of one leaf and event that were met so far, and the samples that they have got. */
struct given {
	uint64_t paths, samples;
};

struct only {
	struct analysis *a;
	const struct profdb_callpaths *paths;
	const struct callpath_tree *t;
	bool *called;		     /* by node: one of the procedures is above it */
	int event[PROFDB_NR_EVENTS]; /* indexed by event of the paths; negative: not chosen */
	struct given *given;	     /* [leaf * nr_events + event] */
};

static void mark(struct only *x, const bool *callers)
{
	const struct callpath_nodes *n = &x->t->nodes;

	for (size_t i = 1; i < n->nr; i++)
		x->called[i] = x->called[n->v[i].parent] || callers[n->v[n->v[i].parent].procedure];
}

/* Index of the event in the image's profile, which may lack it: another image's samples of the same
 * routine are divided among the paths of all. */
static int event_of(struct only *x, struct analysis_image *ai, size_t event)
{
	const struct analysis_event *e = &x->a->events[event];

	return profdb_profile_event_add(ai->profile, e->name, e->period);
}

static int put(struct only *x, const struct profdb_frame *frame, size_t event, uint64_t n)
{
	const struct profdb_image_ref *i = profdb_callpaths_image(x->paths, frame->image);
	struct analysis_image *ai;
	int r;

	if (!n)
		return 0;
	r = analysis_image_of(x->a, i->kind, &i->id, i->stem ? i->stem : i->path, &ai);
	if (r >= 0)
		r = event_of(x, ai, event);
	return r < 0 ? r : profdb_profile_add(ai->profile, frame->off, (size_t)r, n);
}

/* The samples of a leaf are divided among its instructions as those of a procedure among leaves. */
static uint64_t give(struct only *x, uint32_t leaf, size_t event, uint64_t paths)
{
	size_t at = leaf * x->a->nr_events + event;
	struct given *g = &x->given[at];
	uint64_t before = g->samples;

	if (!paths)
		return 0;
	g->paths += paths;
	g->samples = (uint64_t)((unsigned __int128)x->t->count[at] * g->paths / x->t->raw[at]);
	return g->samples - before;
}

static int put_node(struct only *x, size_t node, uint64_t *nr_paths)
{
	struct profdb_callpath_node n = profdb_callpaths_node(x->paths, node);
	uint32_t leaf = x->t->leaf_of[node];
	int r = 0;

	if (leaf == UINT32_MAX || !x->called[x->t->leaves[leaf].node])
		return 0;
	for (size_t e = 0; e < profdb_callpaths_nr_events(x->paths) && r >= 0; e++) {
		size_t event = (size_t)x->event[e];

		if (x->event[e] < 0)
			continue;
		nr_paths[event] += n.count[e];
		r = put(x, &n.frame, event, give(x, leaf, event, n.count[e]));
	}
	return r;
}

static int restrict_all(struct only *x, uint64_t *nr_paths)
{
	int r = 0;

	for (size_t e = 0; e < x->a->nr_events; e++)
		nr_paths[e] = 0;
	for (size_t e = 0; e < profdb_callpaths_nr_events(x->paths); e++)
		x->event[e] =
			analysis_event_find(x->a, profdb_callpaths_event(x->paths, e)->name, NULL);
	for (size_t i = 0; i < x->a->nr_images; i++)
		profdb_profile_clear(x->a->images[i]->profile);
	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(x->paths) && r >= 0;
	     i++)
		r = put_node(x, i, nr_paths);
	return r < 0 ? r : analysis_sum(x->a);
}

int callpath_only(const struct callpath_tree *t, const struct profdb_callpaths *paths,
		  const bool *callers, uint64_t *nr_paths)
{
	struct only x = { .a = t->a, .paths = paths, .t = t };
	int r = -ENOMEM;

	x.called = calloc(t->nodes.nr, sizeof(*x.called));
	x.given = calloc(t->nr_leaves * t->a->nr_events + 1, sizeof(*x.given));
	if (x.called && x.given) {
		mark(&x, callers);
		r = restrict_all(&x, nr_paths);
	}
	free(x.called);
	free(x.given);
	return r;
}
