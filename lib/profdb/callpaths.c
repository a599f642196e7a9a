/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call paths: images, events, and a calling-context tree of frames in these images. As a file they
 * have a header and footer as a profile's, and between them images with their frames, and the tree.
 * docs/format/callpaths.md
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

/* ---- the tree: nodes are found by their caller and frame, and counted ------------------------ */

/* A frame below its caller. */
struct callnode {
	uint32_t parent, image;
	uint64_t off;
};

/* The first PROFDB_NR_CALLPATH_ENDS nodes are their own parents and have no frame; each other one
 * stands behind its parent. */
struct calltree {
	struct callnode *nodes;
	uint64_t *counts; /* nr rows of stride numbers, one for each event */
	size_t nr, cap, cap_counts, stride;
	uint32_t *slots; /* node + 1, 0 where free */
	size_t nr_slots; /* a power of two, or 0 */
	uint64_t seed;
};

static inline uint64_t *calltree_counts(const struct calltree *t, size_t node)
{
	return t->counts + node * t->stride;
}

struct profdb_callpaths {
	struct profdb_profile *header; /* of kind "named"; its events, and their sums */
	struct profdb_image_table images;
	struct profdb_workloads *whose; /* its workloads alone are of use */
	struct calltree tree;
};

static size_t slot_of(const struct calltree *t, const struct callnode *n)
{
	uint64_t key[2] = { (uint64_t)n->parent << 32 | n->image, n->off };
	size_t mask = t->nr_slots - 1, at = base_hash64_seeded(t->seed, key, sizeof(key)) & mask;

	for (; t->slots[at]; at = (at + 1) & mask) {
		const struct callnode *have = &t->nodes[t->slots[at] - 1];

		if (have->parent == n->parent && have->image == n->image && have->off == n->off)
			break;
	}
	return at;
}

/* At most half full, so that probes stay short. */
static int make_hash(struct calltree *t, size_t nr)
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

static int grow(struct calltree *t, size_t nr)
{
	size_t words;
	int r;

	if (base_mul_overflow(nr, t->stride, &words))
		return -ENOMEM;
	r = base_grow(&t->nodes, &t->cap, nr, sizeof(*t->nodes));
	return r < 0 ? r : base_grow(&t->counts, &t->cap_counts, words, sizeof(*t->counts));
}

static int calltree_init(struct calltree *t)
{
	/* Frames are chosen by programs: one that knew the hash could have all of them collide. */
	*t = (struct calltree){ .stride = 1, .seed = base_hash_seed() };
	if (grow(t, PROFDB_NR_CALLPATH_ENDS) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < PROFDB_NR_CALLPATH_ENDS; i++) {
		t->nodes[i] = (struct callnode){ .parent = i };
		t->counts[i] = 0;
	}
	t->nr = PROFDB_NR_CALLPATH_ENDS;
	return 0;
}

static void calltree_release(struct calltree *t)
{
	free(t->nodes);
	free(t->counts);
	free(t->slots);
}

/* Counts of so many events. 0 or -ENOMEM. */
static int calltree_widen(struct calltree *t, size_t nr_events)
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

/* Room for @more nodes, so that as many calltree_node cannot fail. 0, -ENOMEM, -DCPI_ELIMIT.
 */
static int calltree_reserve(struct calltree *t, size_t more)
{
	int r;

	if (more > PROFDB_NR_CALLNODES - t->nr)
		return -DCPI_ELIMIT;
	r = grow(t, t->nr + more);
	return r < 0 ? r : make_hash(t, t->nr + more);
}

/* The number of a node, made without samples where missing. */
static uint32_t calltree_node(struct calltree *t, const struct callnode *n)
{
	size_t at = slot_of(t, n);

	if (t->slots[at])
		return t->slots[at] - 1;
	t->nodes[t->nr] = *n;
	memset(calltree_counts(t, t->nr), 0, t->stride * sizeof(*t->counts));
	t->slots[at] = (uint32_t)++t->nr;
	return (uint32_t)t->nr - 1;
}

/* Add a node that the tree does not have, as a file's reader does: not after calltree_node. 0,
 * -ENOMEM, -DCPI_ELIMIT. */
static int calltree_append(struct calltree *t, const struct callnode *n, const uint64_t *count,
			   size_t nr_events)
{
	int r = t->nr >= PROFDB_NR_CALLNODES ? -DCPI_ELIMIT : grow(t, t->nr + 1);

	if (r < 0)
		return r;
	t->nodes[t->nr] = *n;
	memset(calltree_counts(t, t->nr), 0, t->stride * sizeof(*t->counts));
	memcpy(calltree_counts(t, t->nr), count, nr_events * sizeof(*count));
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
	if (!c->header || !c->whose || calltree_init(&c->tree) < 0) {
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
	calltree_release(&c->tree);
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
	r = calltree_widen(&c->tree, c->header->nr_events + 1);
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
	const struct callnode want = { end, PROFDB_CALLPATH_WORKLOAD, workload };

	return workload == PROFDB_CALLPATH_NOBODY ? end : calltree_node(&c->tree, &want);
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
	r = n ? calltree_reserve(&c->tree, nr + 1) : 0;
	if (r < 0 || !n)
		return r;
	node = workload_node(c, end, workload);
	for (size_t i = nr; i-- > 0;) {
		const struct callnode want = { node, frames[i].image, frames[i].off };

		node = calltree_node(&c->tree, &want);
	}
	calltree_counts(&c->tree, node)[event] += n;
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
	const struct callnode *n = &c->tree.nodes[index];

	return (struct profdb_callpath_node){
		.parent = n->parent,
		.frame = { n->image, n->off },
		.count = calltree_counts(&c->tree, index),
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
	const struct callnode *n = &c->tree.nodes[index];

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
static uint32_t merge_node(struct profdb_callpaths *to, const struct callnode *n,
			   const struct map *map)
{
	struct callnode want = { map->nodes[n->parent], n->image, n->off };
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
	return calltree_node(&to->tree, &want);
}

/* There is room for all nodes, and their samples are in the sums of @to already. */
static void merge_nodes(struct profdb_callpaths *to, const struct profdb_callpaths *from,
			const struct map *map)
{
	for (size_t i = 0; i < from->tree.nr; i++) {
		const uint64_t *count = calltree_counts(&from->tree, i);
		uint32_t node = (uint32_t)i;

		if (i >= PROFDB_NR_CALLPATH_ENDS)
			node = merge_node(to, &from->tree.nodes[i], map);
		map->nodes[i] = node;
		for (size_t j = 0; j < from->header->nr_events; j++) {
			if (node == LEFT_OUT)
				to->header->events[map->events[j]].sum -= count[j];
			else
				calltree_counts(&to->tree, node)[map->events[j]] += count[j];
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
		r = calltree_reserve(&to->tree, from->tree.nr);
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

static const char images_tag[] = "IMGS", tree_tag[] = "TREE";

/* Frames of a file, ascending by image and offset; nodes name them by their index. */
struct frames {
	struct profdb_frame *v;
	size_t nr, cap;
};

struct reader {
	struct profdb_callpaths *c;
	struct frames frames;
	bool has_images, has_workloads, has_tree;
	struct base_err *err;
};

/* ---- reading images and frames --------------------------------------------------------------- */

static int add_frame(struct frames *f, uint32_t image, uint64_t off)
{
	if (base_grow(&f->v, &f->cap, f->nr + 1, sizeof(*f->v)) < 0)
		return -ENOMEM;
	f->v[f->nr++] = (struct profdb_frame){ image, off };
	return 0;
}

/* How many, then of each the gap to the one before. */
static int get_frames(struct reader *r, const struct profdb_payload *s, size_t *pos)
{
	uint64_t nr, gap, off = 0;
	int e = profdb_varint_get(s, pos, &nr);

	for (uint64_t i = 0; e >= 0 && i < nr; i++) {
		e = profdb_varint_get(s, pos, &gap);
		if (e < 0 || (i && !gap) || base_add_overflow(off, gap, &off))
			return -DCPI_EFORMAT;
		e = add_frame(&r->frames, (uint32_t)r->c->images.nr - 1, off);
	}
	return e;
}

static int take_images(struct reader *r, const struct profdb_payload *s)
{
	size_t pos = 0, at = 0;
	int e = r->has_images ? -DCPI_EFORMAT : 0;

	r->has_images = true;
	while (e >= 0 && pos < s->len) {
		at = pos;
		e = profdb_image_table_get(&r->c->images, s, &pos);
		if (e >= 0)
			e = get_frames(r, s, &pos);
	}
	return e < 0 ? base_fail_errno(r->err, e, "images of call paths, byte %zu", at) : 0;
}

/* Paths are kept by program and user: two that differ in the rest alone would be one workload. */
static bool are_whole(const struct profdb_workloads *w)
{
	for (size_t i = 0; i < w->nr; i++)
		if (w->v[i].pid || *w->v[i].thread || w->v[i].processes)
			return false;
	return true;
}

static int take_workloads(struct reader *r, const struct profdb_payload *s)
{
	bool first = !r->has_workloads && !r->has_tree;
	size_t at = 0;
	int e = first ? profdb_workloads_get(r->c->whose, s, &at) : -DCPI_EFORMAT;

	r->has_workloads = true;
	e = e < 0 || are_whole(r->c->whose) ? e : -DCPI_EFORMAT;
	return e < 0 ? base_fail_errno(r->err, e, "workloads of call paths, byte %zu", at) : 0;
}

/* ---- reading the tree ------------------------------------------------------------------------ */

/* Where the next node stands. */
struct place {
	uint32_t parent; /* node below which it does */
	bool has_before; /* it has a sibling before it, of frame number: */
	uint64_t before;
};

/* The node before is the parent (@up 0), its sibling (1), or one of so many levels higher. */
static int climb(const struct calltree *t, const uint32_t *numbers, uint32_t last, uint64_t up,
		 struct place *out)
{
	*out = (struct place){ .parent = last };
	for (; up; up--) {
		if (out->parent < PROFDB_NR_CALLPATH_ENDS)
			return -DCPI_EFORMAT;
		out->has_before = true;
		out->before = numbers[out->parent];
		out->parent = t->nodes[out->parent].parent;
	}
	return 0;
}

static int get_counts(struct reader *r, const struct profdb_payload *s, size_t *pos,
		      uint64_t *count)
{
	struct profdb_profile *h = r->c->header;
	bool any = false;

	for (size_t i = 0; i < h->nr_events; i++) {
		int e = profdb_varint_get(s, pos, &count[i]);

		if (e < 0 || base_add_overflow(h->events[i].sum, count[i], &h->events[i].sum))
			return -DCPI_EFORMAT;
		any = any || count[i];
	}
	return any ? 0 : -DCPI_EFORMAT;
}

/* The node of number @frame; workloads are numbered behind the frames, and stand below ends. */
static int get_frame(const struct reader *r, uint64_t frame, uint32_t parent, bool counted,
		     struct callnode *out)
{
	uint64_t workload = frame - r->frames.nr;

	if (frame < r->frames.nr) {
		*out = (struct callnode){ parent, r->frames.v[frame].image,
					  r->frames.v[frame].off };
		return 0;
	}
	*out = (struct callnode){ parent, PROFDB_CALLPATH_WORKLOAD, workload };
	return workload < r->c->whose->nr && parent < PROFDB_NR_CALLPATH_ENDS && !counted
		       ? 0
		       : -DCPI_EFORMAT;
}

/* How far up, and whether it has counts; its frame, or the gap to that of the sibling before. */
static int get_node(struct reader *r, const struct profdb_payload *s, size_t *pos, uint32_t last,
		    uint32_t **numbers, size_t *cap)
{
	struct calltree *t = &r->c->tree;
	uint64_t head, frame, count[PROFDB_NR_EVENTS] = { 0 };
	struct callnode node;
	struct place p;
	int e = profdb_varint_get(s, pos, &head);

	if (e >= 0)
		e = profdb_varint_get(s, pos, &frame);
	if (e >= 0)
		e = climb(t, *numbers, last, head >> 1, &p);
	if (e < 0 || (p.has_before && !frame) || base_add_overflow(frame, p.before, &frame) ||
	    get_frame(r, frame, p.parent, head & 1, &node) < 0)
		return -DCPI_EFORMAT;
	if (head & 1)
		e = get_counts(r, s, pos, count);
	if (e >= 0)
		e = base_grow(numbers, cap, t->nr + 1, sizeof(**numbers));
	if (e < 0)
		return e;
	(*numbers)[t->nr] = (uint32_t)frame;
	return calltree_append(t, &node, count, r->c->header->nr_events);
}

/* The nodes below each end: how many, then they, each behind its parent. */
static int get_nodes(struct reader *r, const struct profdb_payload *s, size_t *pos)
{
	uint32_t *numbers = NULL;
	size_t cap = 0;
	uint64_t nr;
	int e = 0;

	for (uint32_t end = 0; e >= 0 && end < PROFDB_NR_CALLPATH_ENDS; end++) {
		uint32_t last = end;

		e = profdb_varint_get(s, pos, &nr);
		for (; e >= 0 && nr; nr--) {
			e = get_node(r, s, pos, last, &numbers, &cap);
			last = (uint32_t)r->c->tree.nr - 1;
		}
	}
	free(numbers);
	return e < 0 ? e : *pos == s->len ? 0 : -DCPI_EFORMAT;
}

static int take_tree(struct reader *r, const struct profdb_payload *s)
{
	struct profdb_profile *h = r->c->header;
	size_t pos = 0;
	int e = r->has_tree || !r->has_images ? -DCPI_EFORMAT : 0;

	r->has_tree = true;
	if (e >= 0)
		e = calltree_widen(&r->c->tree, h->nr_events);
	if (e >= 0)
		e = get_nodes(r, s, &pos);
	return e < 0 ? base_fail_errno(r->err, e, "tree of call paths, byte %zu", pos) : 0;
}

/* ---- reading a file -------------------------------------------------------------------------- */

static int take_section(struct reader *r, const struct profdb_payload *s)
{
	if (profdb_section_is(s, images_tag))
		return take_images(r, s);
	if (profdb_section_is(s, PROFDB_WORKLOADS_TAG))
		return take_workloads(r, s);
	if (profdb_section_is(s, tree_tag))
		return take_tree(r, s);
	return profdb_section_keep(r->c->header, s, r->err);
}

static int check_totals(const struct reader *r, const struct profdb_payload *foot)
{
	const struct profdb_profile *h = r->c->header;

	if (!r->has_tree)
		return base_fail(r->err, -DCPI_EFORMAT, "no section '%s': it holds no call paths",
				 tree_tag);
	if (profdb_get64(foot->data) != r->c->tree.nr)
		return base_fail(r->err, -DCPI_EFORMAT, "footer tells of %llu nodes, not %zu",
				 (unsigned long long)profdb_get64(foot->data), r->c->tree.nr);
	for (size_t i = 0; i < h->nr_events; i++)
		if (profdb_get64(foot->data + 8 + 8 * i) != h->events[i].sum)
			return base_fail(r->err, -DCPI_EFORMAT, "counts of '%s' do not sum",
					 h->events[i].name);
	return 0;
}

static int take_sections(struct reader *r, const uint8_t *file, size_t len, size_t pos)
{
	struct profdb_payload foot, s;
	int e = profdb_format1_footer(file, len, pos, r->c->header->nr_events, &foot, r->err);

	while (e >= 0 && (e = profdb_section_next(file, len, &pos, &s, r->err)) >= 0 &&
	       !profdb_section_is(&s, "FOOT"))
		e = take_section(r, &s);
	return e < 0 ? e : check_totals(r, &foot);
}

static int take_file(struct reader *r, const void *data, size_t len)
{
	size_t binary;
	int e = profdb_whole_header(&profdb_whole_callpaths, data, len, &r->c->header, &binary,
				    r->err);

	return e < 0 ? e : take_sections(r, data, len, binary);
}

int profdb_callpaths_parse(const void *data, size_t len, struct profdb_callpaths **out,
			   struct base_err *err)
{
	struct reader r = { .c = profdb_callpaths_new(), .err = err };
	int e;

	*out = NULL;
	if (!r.c)
		return base_fail_errno(err, -ENOMEM, "cannot read call paths");
	e = take_file(&r, data, len);
	free(r.frames.v);
	if (e < 0) {
		profdb_callpaths_free(r.c);
		return e;
	}
	*out = r.c;
	return 0;
}

/* ---- writing a file -------------------------------------------------------------------------- */

/* Arrays have for each node: the number of its frame, its first child and the next one of its
 * parent (0: none), children ascending by frame. */
struct order {
	uint32_t *frame, *child, *next;
	struct frames frames;
};

static void order_release(struct order *o)
{
	free(o->frame);
	free(o->child);
	free(o->next);
	free(o->frames.v);
}

/* Nodes by image and offset, workloads last: @v and @space are of @t->nr. */
static struct base_sort_item *by_frame(const struct calltree *t, struct base_sort_item *v,
				       struct base_sort_item *space)
{
	size_t nr = t->nr - PROFDB_NR_CALLPATH_ENDS;
	struct base_sort_item *sorted;

	for (size_t i = 0; i < nr; i++) {
		const struct callnode *n = &t->nodes[i + PROFDB_NR_CALLPATH_ENDS];

		v[i] = (struct base_sort_item){ n->off, n };
	}
	sorted = base_sort(v, space, nr);
	for (size_t i = 0; i < nr; i++)
		sorted[i].key = ((const struct callnode *)sorted[i].of)->image;
	return base_sort(sorted, sorted == v ? space : v, nr);
}

static int number_frames(const struct calltree *t, const struct base_sort_item *sorted,
			 struct order *o)
{
	for (size_t i = 0; i < t->nr - PROFDB_NR_CALLPATH_ENDS; i++) {
		const struct callnode *n = sorted[i].of, *last = i ? sorted[i - 1].of : NULL;

		if (n->image == PROFDB_CALLPATH_WORKLOAD) {
			o->frame[n - t->nodes] = (uint32_t)(o->frames.nr + n->off);
			continue;
		}
		if (!last || last->image != n->image || last->off != n->off)
			if (add_frame(&o->frames, n->image, n->off) < 0)
				return -ENOMEM;
		o->frame[n - t->nodes] = (uint32_t)o->frames.nr - 1;
	}
	return 0;
}

/* From the last frame down, each in front of its siblings. */
static void link_children(const struct calltree *t, const struct base_sort_item *sorted,
			  struct order *o)
{
	for (size_t i = t->nr - PROFDB_NR_CALLPATH_ENDS; i-- > 0;) {
		const struct callnode *n = sorted[i].of;
		uint32_t node = (uint32_t)(n - t->nodes);

		o->next[node] = o->child[n->parent];
		o->child[n->parent] = node;
	}
}

static int make_order(const struct calltree *t, struct order *o)
{
	struct base_sort_item *items = calloc(2 * t->nr, sizeof(*items)), *sorted;
	int r = -ENOMEM;

	*o = (struct order){
		.frame = calloc(t->nr, sizeof(*o->frame)),
		.child = calloc(t->nr, sizeof(*o->child)),
		.next = calloc(t->nr, sizeof(*o->next)),
	};
	if (items && o->frame && o->child && o->next) {
		sorted = by_frame(t, items, items + t->nr);
		r = number_frames(t, sorted, o);
		if (r >= 0)
			link_children(t, sorted, o);
	}
	free(items);
	return r;
}

/* Frames of one image are written, from *@at on. */
static int put_frames(const struct frames *f, uint32_t image, size_t *at, struct base_buf *out)
{
	size_t end = *at;
	uint64_t before = 0;
	int r;

	while (end < f->nr && f->v[end].image == image)
		end++;
	r = base_buf_append_leb128(out, end - *at);
	for (; r >= 0 && *at < end; ++*at) {
		r = base_buf_append_leb128(out, f->v[*at].off - before);
		before = f->v[*at].off;
	}
	return r;
}

static int put_images(const struct profdb_callpaths *c, const struct order *o, struct base_buf *out)
{
	size_t at, frame = 0;
	int r = profdb_section_begin(out, images_tag, &at);

	for (uint32_t i = 0; r >= 0 && i < c->images.nr; i++) {
		r = profdb_image_put(&c->images.v[i], out);
		if (r >= 0)
			r = put_frames(&o->frames, i, &frame, out);
	}
	return r < 0 ? r : profdb_section_end(out, at);
}

/* @before: frame of the sibling before, or 0. */
static int put_node(const struct profdb_callpaths *c, const struct order *o, uint32_t node,
		    uint64_t up, uint32_t before, struct base_buf *out)
{
	uint8_t bytes[(2 + PROFDB_NR_EVENTS) * PROFDB_VARINT_MAX];
	const uint64_t *count = calltree_counts(&c->tree, node);
	bool any = false;
	size_t n;

	for (size_t i = 0; i < c->header->nr_events; i++)
		any = any || count[i];
	n = profdb_varint_put(bytes, up << 1 | any);
	n += profdb_varint_put(bytes + n, o->frame[node] - before);
	for (size_t i = 0; any && i < c->header->nr_events; i++)
		n += profdb_varint_put(bytes + n, count[i]);
	return base_buf_append(out, bytes, n);
}

/* The node behind @node in preorder below @end, how far up it is, and the sibling before it; 0:
 * there is none. */
static uint32_t next_node(const struct calltree *t, const struct order *o, uint32_t node,
			  uint64_t *up, uint32_t *sibling)
{
	*up = 0;
	*sibling = 0;
	if (o->child[node])
		return o->child[node];
	for (*up = 1; node >= PROFDB_NR_CALLPATH_ENDS && !o->next[node]; ++*up)
		node = t->nodes[node].parent;
	*sibling = node;
	return node < PROFDB_NR_CALLPATH_ENDS ? 0 : o->next[node];
}

static int put_below(const struct profdb_callpaths *c, const struct order *o, uint32_t end,
		     struct base_buf *out, uint64_t *nr)
{
	uint32_t sibling, node = end;
	uint64_t up;
	int r = 0;

	*nr = 0;
	while (r >= 0 && (node = next_node(&c->tree, o, node, &up, &sibling))) {
		r = put_node(c, o, node, up, sibling ? o->frame[sibling] : 0, out);
		++*nr;
	}
	return r;
}

static int put_tree(const struct profdb_callpaths *c, const struct order *o, struct base_buf *out)
{
	struct base_buf nodes = { 0 };
	size_t at;
	uint64_t nr;
	int r = profdb_section_begin(out, tree_tag, &at);

	for (uint32_t end = 0; r >= 0 && end < PROFDB_NR_CALLPATH_ENDS; end++) {
		base_buf_clear(&nodes);
		r = put_below(c, o, end, &nodes, &nr);
		if (r >= 0)
			r = base_buf_append_leb128(out, nr);
		if (r >= 0)
			r = base_buf_append(out, nodes.data, nodes.len);
	}
	base_buf_release(&nodes);
	return r < 0 ? r : profdb_section_end(out, at);
}

int profdb_callpaths_format(const struct profdb_callpaths *c, struct base_buf *out,
			    struct base_err *err)
{
	size_t start = out->len;
	struct order o;
	int r = make_order(&c->tree, &o);

	if (r >= 0)
		r = profdb_header_print(c->header, PROFDB_FORMAT_1, 0, out, err);
	if (r >= 0)
		r = put_images(c, &o, out);
	if (r >= 0 && c->whose->nr)
		r = profdb_workloads_put(c->whose, out);
	if (r >= 0)
		r = put_tree(c, &o, out);
	if (r >= 0)
		r = profdb_format1_end(c->header, c->tree.nr, out, start);
	order_release(&o);
	return r < 0 ? base_fail_errno(err, r, "cannot write call paths") : 0;
}

/* ---- as a file about all images -------------------------------------------------------------- */

static void *callpaths_make(void)
{
	return profdb_callpaths_new();
}

static void callpaths_release(void *of)
{
	profdb_callpaths_free(of);
}

static int callpaths_parse(const struct base_buf *data, const char *shown, void **out,
			   struct base_err *err)
{
	struct profdb_callpaths *c;
	struct base_err why = { 0 };
	int r = profdb_callpaths_parse(data->data, data->len, &c, &why);

	*out = c;
	if (r < 0)
		base_fail(err, r, "cannot read call paths '%s': %s", shown, why.text);
	if (r < 0 && why.hint[0])
		base_hint(err, "%s", why.hint);
	return r;
}

static int callpaths_merge(void *to, const void *from)
{
	return profdb_callpaths_merge(to, from);
}

static int callpaths_format(const void *of, struct base_buf *out, struct base_err *err)
{
	return profdb_callpaths_format(of, out, err);
}

static struct profdb_profile *callpaths_header(const void *of)
{
	return ((const struct profdb_callpaths *)of)->header;
}

const struct profdb_whole profdb_whole_callpaths = {
	.name = PROFDB_CALLPATHS,
	.what = "call paths",
	.make = callpaths_make,
	.release = callpaths_release,
	.parse = callpaths_parse,
	.parse_stored = callpaths_parse,
	.merge = callpaths_merge,
	.format = callpaths_format,
	.header = callpaths_header,
};
