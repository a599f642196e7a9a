/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths in memory: images, events, and a calling-context tree of frames in these images. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

/* The nodes of a calling-context tree are found by their caller and frame here, and counted. */

static size_t slot_of(const struct profdb_calltree *t, const struct profdb_callnode *n)
{
	uint64_t key[2] = { (uint64_t)n->parent << 32 | n->image, n->off };
	size_t mask = t->nr_slots - 1, at = base_hash64_seeded(t->seed, key, sizeof(key)) & mask;

	for (; t->slots[at]; at = (at + 1) & mask) {
		const struct profdb_callnode *have = &t->nodes[t->slots[at] - 1];

		if (have->parent == n->parent && have->image == n->image && have->off == n->off)
			break;
	}
	return at;
}

/* At most half full, so that probes stay short. */
static int make_hash(struct profdb_calltree *t, size_t nr)
{
	size_t want = t->nr_slots ? t->nr_slots : 64;
	uint32_t *slots;

	while (want < 2 * nr)
		want *= 2;
	if (want == t->nr_slots)
		return 0;
	slots = calloc(want, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->nr_slots = want;
	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < t->nr; i++)
		t->slots[slot_of(t, &t->nodes[i])] = (uint32_t)i + 1;
	return 0;
}

static int grow(struct profdb_calltree *t, size_t nr)
{
	size_t words;
	int r;

	if (base_mul_overflow(nr, t->stride, &words))
		return -ENOMEM;
	r = base_grow(&t->nodes, &t->cap, nr, sizeof(*t->nodes));
	return r < 0 ? r : base_grow(&t->counts, &t->cap_counts, words, sizeof(*t->counts));
}

static int profdb_calltree_init(struct profdb_calltree *t)
{
	/* Frames are chosen by programs: one that knew the hash could have all of them collide. */
	*t = (struct profdb_calltree){ .stride = 1, .seed = base_hash_seed() };
	if (grow(t, PROFDB_NR_CALLPATH_ENDS) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < PROFDB_NR_CALLPATH_ENDS; i++) {
		t->nodes[i] = (struct profdb_callnode){ .parent = i };
		t->counts[i] = 0;
	}
	t->nr = PROFDB_NR_CALLPATH_ENDS;
	return 0;
}

static void profdb_calltree_release(struct profdb_calltree *t)
{
	free(t->nodes);
	free(t->counts);
	free(t->slots);
}

int profdb_calltree_widen(struct profdb_calltree *t, size_t nr_events)
{
	size_t stride = t->stride, old = t->stride, words;
	int r;

	while (stride < nr_events)
		stride *= 2;
	if (stride == old)
		return 0;
	if (base_mul_overflow(t->nr, stride, &words))
		return -ENOMEM;
	r = base_grow(&t->counts, &t->cap_counts, words, sizeof(*t->counts));
	if (r < 0)
		return r;
	/* From the last row down: rows move up, over rows that have moved already. */
	for (size_t i = t->nr; i-- > 0;) {
		memmove(t->counts + i * stride, t->counts + i * old, old * sizeof(*t->counts));
		memset(t->counts + i * stride + old, 0, (stride - old) * sizeof(*t->counts));
	}
	t->stride = stride;
	return 0;
}

/* Room for @more nodes, so that as many profdb_calltree_node cannot fail. 0, -ENOMEM, -DCPI_ELIMIT.
 */
static int profdb_calltree_reserve(struct profdb_calltree *t, size_t more)
{
	int r;

	if (more > PROFDB_NR_CALLNODES - t->nr)
		return -DCPI_ELIMIT;
	r = grow(t, t->nr + more);
	return r < 0 ? r : make_hash(t, t->nr + more);
}

/* The number of a node, made without samples where missing. */
static uint32_t profdb_calltree_node(struct profdb_calltree *t, const struct profdb_callnode *n)
{
	size_t at = slot_of(t, n);

	if (t->slots[at])
		return t->slots[at] - 1;
	t->nodes[t->nr] = *n;
	memset(profdb_calltree_counts(t, t->nr), 0, t->stride * sizeof(*t->counts));
	t->slots[at] = (uint32_t)++t->nr;
	return (uint32_t)t->nr - 1;
}

int profdb_calltree_append(struct profdb_calltree *t, const struct profdb_callnode *n,
			   const uint64_t *count, size_t nr_events)
{
	int r = t->nr >= PROFDB_NR_CALLNODES ? -DCPI_ELIMIT : grow(t, t->nr + 1);

	if (r < 0)
		return r;
	t->nodes[t->nr] = *n;
	memset(profdb_calltree_counts(t, t->nr), 0, t->stride * sizeof(*t->counts));
	memcpy(profdb_calltree_counts(t, t->nr), count, nr_events * sizeof(*count));
	t->nr++;
	return 0;
}

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
