/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Divides the samples of instructions among call paths. The tree of paths says how many samples of
 * a procedure each of its paths has (as dcpicalltree shows it), the flat profile how many each of
 * its instructions has; both sums are kept exactly. A path first takes samples of the very
 * instruction at which it was recorded. What is left, since few samples have a path, is paired in
 * the order of the procedure's instructions and of its paths.
 */
#include <errno.h>
#include <stdlib.h>

#include "export_internal.h"

int export_add(struct export *x, uint32_t place, uint32_t caller, size_t event, uint64_t n)
{
	const uint32_t key[] = { place, caller };
	uintptr_t at = (uintptr_t)base_map_get(&x->by_stack, key, sizeof(key));
	size_t nr_events = x->a->nr_events;
	int r = 0;

	if (!n)
		return 0;
	if (!at) {
		r = base_grow(&x->stacks, &x->cap_stacks, x->nr_stacks + 1, sizeof(*x->stacks));
		if (r >= 0)
			r = base_grow(&x->counts, &x->cap_counts, (x->nr_stacks + 1) * nr_events,
				      sizeof(*x->counts));
		if (r < 0 || x->nr_stacks >= EXPORT_NONE)
			return -ENOMEM;
		for (size_t e = 0; e < nr_events; e++)
			x->counts[x->nr_stacks * nr_events + e] = 0;
		x->stacks[x->nr_stacks++] = (struct export_stack){ place, caller };
		at = x->nr_stacks;
		r = base_map_set(&x->by_stack, key, sizeof(key), (void *)at);
	}
	x->counts[(at - 1) * nr_events + event] += n;
	return r;
}

/* ---- the samples of each path ---------------------------------------------------------------- */

/* The paths of one leaf and event that were met so far, and the samples that they have got. */
struct given {
	uint64_t paths, samples;
};

static uint64_t give(const struct callpath_tree *t, size_t at, uint64_t paths, struct given *g)
{
	uint64_t before = g->samples;

	if (!paths || !t->raw[at])
		return 0;
	g->paths += paths;
	g->samples = (uint64_t)((unsigned __int128)t->count[at] * g->paths / t->raw[at]);
	return g->samples - before;
}

static void give_event(struct divide *d, size_t of, size_t event, struct given *given)
{
	size_t nr_events = d->t->a->nr_events;

	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(d->paths); i++) {
		uint32_t leaf = d->t->leaf_of[i];
		size_t at = leaf * nr_events + event;

		if (leaf == UINT32_MAX)
			continue;
		d->due[i * nr_events + event] =
			give(d->t, at, profdb_callpaths_node(d->paths, i).count[of], &given[at]);
	}
}

int divide_due(struct divide *d)
{
	struct given *given = calloc(d->t->nr_leaves * d->t->a->nr_events + 1, sizeof(*given));

	if (!given)
		return -ENOMEM;
	for (size_t e = 0; e < profdb_callpaths_nr_events(d->paths); e++) {
		int event = analysis_event_find(d->t->a, profdb_callpaths_event(d->paths, e)->name,
						NULL);

		if (event >= 0)
			give_event(d, e, (size_t)event, given);
	}
	free(given);
	return 0;
}

/* ---- the instructions of each path ----------------------------------------------------------- */

/* The caller of a node's frame is its parent, which export.c has under the same number. */
static int move(struct divide *d, uint32_t node, uint32_t place, size_t event)
{
	size_t nr_events = d->t->a->nr_events;
	uint64_t *due = &d->due[node * nr_events + event];
	uint64_t *left = &d->left[place * nr_events + event];
	uint64_t n = *due < *left ? *due : *left;

	*due -= n;
	*left -= n;
	return export_add(d->x, place, d->x->callers[node].caller, event, n);
}

/* Something in a procedure: a node of the paths, or a place. */
struct part {
	uint32_t procedure, number;
};

static int compare(const void *pa, const void *pb)
{
	const struct part *a = pa, *b = pb;

	if (a->procedure != b->procedure)
		return a->procedure > b->procedure ? 1 : -1;
	return (a->number > b->number) - (a->number < b->number);
}

static bool has_any(const uint64_t *counts, size_t nr)
{
	while (nr && !counts[nr - 1])
		nr--;
	return nr;
}

static size_t list_nodes(const struct divide *d, struct part *out)
{
	size_t nr = 0, nr_events = d->t->a->nr_events;

	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(d->paths); i++)
		if (has_any(d->due + i * nr_events, nr_events))
			out[nr++] = (struct part){ d->t->leaves[d->t->leaf_of[i]].procedure,
						   (uint32_t)i };
	if (nr)
		qsort(out, nr, sizeof(*out), compare);
	return nr;
}

static size_t list_places(const struct divide *d, struct part *out)
{
	size_t nr = 0, nr_events = d->t->a->nr_events;

	for (size_t i = 0; i < d->x->nr_places; i++)
		if (has_any(d->left + i * nr_events, nr_events))
			out[nr++] = (struct part){ d->procedure[i], (uint32_t)i };
	if (nr)
		qsort(out, nr, sizeof(*out), compare);
	return nr;
}

static int pair(struct divide *d, const struct part *node, size_t nr, const struct part *place,
		size_t nr_places, size_t event)
{
	size_t nr_events = d->t->a->nr_events, k = 0;
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		while (k < nr_places && place[k].procedure < node[i].procedure)
			k++;
		while (r >= 0 && k < nr_places && place[k].procedure == node[i].procedure &&
		       d->due[node[i].number * nr_events + event]) {
			r = move(d, node[i].number, place[k].number, event);
			if (!d->left[place[k].number * nr_events + event])
				k++;
		}
	}
	return r;
}

int divide_make(struct divide *d)
{
	size_t nr = profdb_callpaths_nr_nodes(d->paths), nr_places, nr_events = d->t->a->nr_events;
	struct part *nodes = calloc(nr + 1, sizeof(*nodes));
	struct part *places = calloc(d->x->nr_places + 1, sizeof(*places));
	int r = nodes && places ? 0 : -ENOMEM;

	for (uint32_t i = PROFDB_NR_CALLPATH_ENDS; i < nr && r >= 0; i++)
		for (size_t e = 0; e < nr_events && r >= 0; e++)
			if (d->due[i * nr_events + e])
				r = move(d, i, d->place[i], e);
	if (r >= 0) {
		nr = list_nodes(d, nodes);
		nr_places = list_places(d, places);
		for (size_t e = 0; e < nr_events && r >= 0; e++)
			r = pair(d, nodes, nr, places, nr_places, e);
	}
	free(nodes);
	free(places);
	return r;
}
