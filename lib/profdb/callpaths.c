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
	c->whose = profdb_workloads_new();
	if (!c->header || !c->whose || profdb_calltree_init(&c->tree) < 0) {
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
	profdb_workloads_free(c->whose);
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

/* ---- workloads ------------------------------------------------------------------------------- */

int profdb_callpaths_workload_add(struct profdb_callpaths *c, const struct profdb_workload *k)
{
	struct profdb_workload kept = *k;

	kept.pid = 0;
	kept.thread = "";
	kept.processes = 0;
	return profdb_workloads_take(c->whose, &kept);
}

size_t profdb_callpaths_nr_workloads(const struct profdb_callpaths *c)
{
	return profdb_workloads_nr(c->whose);
}

const struct profdb_workload *profdb_callpaths_workload(const struct profdb_callpaths *c,
							size_t index)
{
	return profdb_workloads_workload(c->whose, index);
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

static uint32_t workload_node(struct profdb_callpaths *c, uint32_t end, uint32_t workload)
{
	const struct profdb_callnode want = { end, PROFDB_CALLPATH_WORKLOAD, workload };

	return workload == PROFDB_CALLPATH_NOBODY ? end : profdb_calltree_node(&c->tree, &want);
}

int profdb_callpaths_add_of(struct profdb_callpaths *c, uint32_t workload, size_t event,
			    enum profdb_callpath_end end, const struct profdb_frame *frames,
			    size_t nr, uint64_t n)
{
	uint32_t node;
	uint64_t sum;
	int r;

	if (event >= c->header->nr_events || (unsigned int)end >= PROFDB_NR_CALLPATH_ENDS ||
	    !frames_ok(c, frames, nr) ||
	    (workload != PROFDB_CALLPATH_NOBODY && workload >= c->whose->nr))
		return -EINVAL;
	/* No count exceeds the sum, so the sum alone tells of an overflow. */
	if (base_add_overflow(c->header->events[event].sum, n, &sum))
		return -DCPI_EOVERFLOW;
	r = n ? profdb_calltree_reserve(&c->tree, nr + 1) : 0;
	if (r < 0 || !n)
		return r;
	node = workload_node(c, end, workload);
	for (size_t i = nr; i-- > 0;) {
		const struct profdb_callnode want = { node, frames[i].image, frames[i].off };

		node = profdb_calltree_node(&c->tree, &want);
	}
	profdb_calltree_counts(&c->tree, node)[event] += n;
	c->header->events[event].sum = sum;
	return 0;
}

int profdb_callpaths_add(struct profdb_callpaths *c, size_t event, enum profdb_callpath_end end,
			 const struct profdb_frame *frames, size_t nr, uint64_t n)
{
	return profdb_callpaths_add_of(c, PROFDB_CALLPATH_NOBODY, event, end, frames, nr, n);
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

struct profdb_callpath_node profdb_callpaths_frame(const struct profdb_callpaths *c, size_t index)
{
	struct profdb_callpath_node n = profdb_callpaths_node(c, index);

	if (c->tree.nodes[n.parent].image == PROFDB_CALLPATH_WORKLOAD)
		n.parent = c->tree.nodes[n.parent].parent;
	return n;
}

uint32_t profdb_callpaths_owner(const struct profdb_callpaths *c, size_t index)
{
	const struct profdb_callnode *n = &c->tree.nodes[index];

	while (n->parent >= PROFDB_NR_CALLPATH_ENDS)
		n = &c->tree.nodes[n->parent];
	return n->image == PROFDB_CALLPATH_WORKLOAD ? n->off : PROFDB_CALLPATH_NOBODY;
}

/* ---- merging --------------------------------------------------------------------------------- */

/* The numbers in @to of what is in @from; nodes that stay behind have LEFT_OUT. */
struct map {
	uint32_t *images, *nodes, *workloads;
	size_t events[PROFDB_NR_EVENTS];
	bool bare;	    /* @to is not to know whose paths are */
	const bool *wanted; /* workloads of @from whose paths are chosen; NULL: all paths are */
};

enum { LEFT_OUT = UINT32_MAX };

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

static int map_workloads(struct profdb_callpaths *to, const struct profdb_callpaths *from,
			 struct map *map)
{
	map->workloads = calloc(from->whose->nr + 1, sizeof(*map->workloads));
	if (!map->workloads)
		return -ENOMEM;
	for (size_t i = 0; i < from->whose->nr && !map->bare; i++) {
		int r = profdb_callpaths_workload_add(to, &from->whose->v[i]);

		if (r < 0)
			return r;
		map->workloads[i] = (uint32_t)r;
	}
	return 0;
}

/* The number of a node in @to, made where missing. */
static uint32_t merge_node(struct profdb_callpaths *to, const struct profdb_callnode *n,
			   const struct map *map)
{
	struct profdb_callnode want = { map->nodes[n->parent], n->image, n->off };
	bool workload = n->image == PROFDB_CALLPATH_WORKLOAD;

	if (want.parent == LEFT_OUT)
		return LEFT_OUT;
	if (map->wanted && n->parent < PROFDB_NR_CALLPATH_ENDS &&
	    !(workload && map->wanted[n->off]))
		return LEFT_OUT;
	if (workload && map->bare)
		return want.parent;
	if (workload)
		want.off = map->workloads[n->off];
	else
		want.image = map->images[n->image];
	return profdb_calltree_node(&to->tree, &want);
}

/* There is room for all nodes, and their samples are in the sums of @to already. */
static void merge_nodes(struct profdb_callpaths *to, const struct profdb_callpaths *from,
			const struct map *map)
{
	for (size_t i = 0; i < from->tree.nr; i++) {
		const uint64_t *count = profdb_calltree_counts(&from->tree, i);
		uint32_t node = (uint32_t)i;

		if (i >= PROFDB_NR_CALLPATH_ENDS)
			node = merge_node(to, &from->tree.nodes[i], map);
		map->nodes[i] = node;
		for (size_t j = 0; j < from->header->nr_events; j++) {
			if (node == LEFT_OUT)
				to->header->events[map->events[j]].sum -= count[j];
			else
				profdb_calltree_counts(&to->tree, node)[map->events[j]] += count[j];
		}
	}
}

static int merge(struct profdb_callpaths *to, const struct profdb_callpaths *from, struct map *map)
{
	int r = profdb_profile_merge_check(to->header, from->header);

	if (r >= 0)
		r = map_events(to, from, map);
	if (r >= 0)
		r = map_images(to, from, map);
	if (r >= 0)
		r = map_workloads(to, from, map);
	if (r >= 0)
		r = profdb_calltree_reserve(&to->tree, from->tree.nr);
	if (r >= 0)
		r = profdb_profile_merge(to->header, from->header);
	if (r >= 0)
		merge_nodes(to, from, map);
	free(map->images);
	free(map->nodes);
	free(map->workloads);
	return r < 0 ? r : 0;
}

int profdb_callpaths_merge(struct profdb_callpaths *to, const struct profdb_callpaths *from)
{
	struct map map = { 0 };

	return merge(to, from, &map);
}

int profdb_callpaths_select(struct profdb_callpaths *to, const struct profdb_callpaths *from,
			    const bool *wanted, bool owners)
{
	struct map map = { .bare = !owners, .wanted = wanted };

	return merge(to, from, &map);
}
