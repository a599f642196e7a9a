/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths in memory: images, events, and a calling-context tree of frames in these images. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

static const struct {
	const char *text, *word;
} ends[PROFDB_NR_CALLPATH_ENDS] = {
	[PROFDB_CALLPATH_COMPLETE] = { "complete", "complete" },
	[PROFDB_CALLPATH_CUT] = { "cut", "cut" },
	[PROFDB_CALLPATH_UNREADABLE] = { "stack unreadable", "unreadable" },
	[PROFDB_CALLPATH_NO_ROWS] = { "no unwind rows", "no_rows" },
	[PROFDB_CALLPATH_CONTRADICTED] = { "contradicted", "contradicted" },
};

const char *profdb_callpath_end_text(enum profdb_callpath_end end)
{
	return ends[end].text;
}

const char *profdb_callpath_end_word(enum profdb_callpath_end end)
{
	return ends[end].word;
}

struct profdb_callpaths *profdb_callpaths_new(void)
{
	struct profdb_callpaths *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->header = profdb_profile_new(PROFDB_NAMED, NULL, PROFDB_CALLPATHS);
	if (!c->header || profdb_calltree_init(&c->tree) < 0) {
		profdb_callpaths_free(c);
		return NULL;
	}
	return c;
}

void profdb_callpaths_free(struct profdb_callpaths *c)
{
	if (!c)
		return;
	profdb_image_table_release(&c->images);
	profdb_calltree_release(&c->tree);
	profdb_profile_free(c->header);
	free(c);
}

/* ---- images ---------------------------------------------------------------------------------- */

int profdb_callpaths_image_add(struct profdb_callpaths *c, const struct profdb_image_ref *i)
{
	return profdb_image_table_add(&c->images, i);
}

size_t profdb_callpaths_nr_images(const struct profdb_callpaths *c)
{
	return c->images.nr;
}

const struct profdb_image_ref *profdb_callpaths_image(const struct profdb_callpaths *c,
						      size_t index)
{
	return index < c->images.nr ? &c->images.v[index] : NULL;
}

/* ---- events ---------------------------------------------------------------------------------- */

int profdb_callpaths_event_add(struct profdb_callpaths *c, const char *name, uint64_t period)
{
	int r = profdb_profile_event_find(c->header, name);

	if (r >= 0)
		return r;
	r = profdb_calltree_widen(&c->tree, c->header->nr_events + 1);
	return r < 0 ? r : profdb_profile_event_add(c->header, name, period);
}

size_t profdb_callpaths_nr_events(const struct profdb_callpaths *c)
{
	return c->header->nr_events;
}

const struct profdb_event *profdb_callpaths_event(const struct profdb_callpaths *c, size_t index)
{
	return profdb_profile_event(c->header, index);
}

const struct profdb_profile *profdb_callpaths_header(const struct profdb_callpaths *c)
{
	return c->header;
}

/* ---- samples --------------------------------------------------------------------------------- */

static bool frames_ok(const struct profdb_callpaths *c, const struct profdb_frame *frames,
		      size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (frames[i].image >= c->images.nr)
			return false;
	return nr > 0;
}

int profdb_callpaths_add(struct profdb_callpaths *c, size_t event, enum profdb_callpath_end end,
			 const struct profdb_frame *frames, size_t nr, uint64_t n)
{
	uint32_t node = end;
	uint64_t sum;
	int r;

	if (event >= c->header->nr_events || (unsigned int)end >= PROFDB_NR_CALLPATH_ENDS ||
	    !frames_ok(c, frames, nr))
		return -EINVAL;
	/* No count exceeds the sum, so the sum alone tells of an overflow. */
	if (base_add_overflow(c->header->events[event].sum, n, &sum))
		return -DCPI_EOVERFLOW;
	r = n ? profdb_calltree_reserve(&c->tree, nr) : 0;
	if (r < 0 || !n)
		return r;
	for (size_t i = nr; i-- > 0;) {
		const struct profdb_callnode want = { node, frames[i].image, frames[i].off };

		node = profdb_calltree_node(&c->tree, &want);
	}
	profdb_calltree_counts(&c->tree, node)[event] += n;
	c->header->events[event].sum = sum;
	return 0;
}

size_t profdb_callpaths_nr_nodes(const struct profdb_callpaths *c)
{
	return c->tree.nr;
}

struct profdb_callpath_node profdb_callpaths_node(const struct profdb_callpaths *c, size_t index)
{
	const struct profdb_callnode *n = &c->tree.nodes[index];

	return (struct profdb_callpath_node){
		.parent = n->parent,
		.frame = { n->image, n->off },
		.count = profdb_calltree_counts(&c->tree, index),
	};
}

/* ---- merging --------------------------------------------------------------------------------- */

/* The numbers in @to of what is in @from. */
struct map {
	uint32_t *images, *nodes;
	size_t events[PROFDB_NR_EVENTS];
};

static int map_events(struct profdb_callpaths *to, const struct profdb_callpaths *from,
		      struct map *map)
{
	for (size_t i = 0; i < from->header->nr_events; i++) {
		const struct profdb_event *e = &from->header->events[i];
		int r = profdb_callpaths_event_add(to, e->name, e->period);

		if (r < 0)
			return r;
		map->events[i] = (size_t)r;
	}
	return 0;
}

static int map_images(struct profdb_callpaths *to, const struct profdb_callpaths *from,
		      struct map *map)
{
	map->nodes = calloc(from->tree.nr, sizeof(*map->nodes));
	return map->nodes ? profdb_image_table_merge(&to->images, &from->images, &map->images)
			  : -ENOMEM;
}

/* There is room for all nodes. */
static void merge_nodes(struct profdb_callpaths *to, const struct profdb_callpaths *from,
			const struct map *map)
{
	for (size_t i = 0; i < from->tree.nr; i++) {
		const struct profdb_callnode *n = &from->tree.nodes[i];
		const uint64_t *count = profdb_calltree_counts(&from->tree, i);
		uint64_t *sum;

		map->nodes[i] = (uint32_t)i;
		if (i >= PROFDB_NR_CALLPATH_ENDS) {
			const struct profdb_callnode want = { map->nodes[n->parent],
							      map->images[n->image], n->off };

			map->nodes[i] = profdb_calltree_node(&to->tree, &want);
		}
		sum = profdb_calltree_counts(&to->tree, map->nodes[i]);
		for (size_t j = 0; j < from->header->nr_events; j++)
			sum[map->events[j]] += count[j];
	}
}

int profdb_callpaths_merge(struct profdb_callpaths *to, const struct profdb_callpaths *from)
{
	struct map map = { 0 };
	int r = profdb_profile_merge_check(to->header, from->header);

	if (r >= 0)
		r = map_events(to, from, &map);
	if (r >= 0)
		r = map_images(to, from, &map);
	if (r >= 0)
		r = profdb_calltree_reserve(&to->tree, from->tree.nr);
	if (r >= 0)
		r = profdb_profile_merge(to->header, from->header);
	if (r >= 0)
		merge_nodes(to, from, &map);
	free(map.images);
	free(map.nodes);
	return r < 0 ? r : 0;
}
