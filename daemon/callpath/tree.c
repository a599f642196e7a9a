/* SPDX-License-Identifier: BSD-2-Clause */
/* The calling-context tree holds the paths that are not on disk yet, by image and offset; a flush
 * puts those of which all images are there, the others wait for the next one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"

/* A frame below its callers. Nodes 0 to PROFDB_NR_CALLPATH_ENDS - 1 are the ends of paths. */
struct callpath_node {
	uint32_t parent; /* its caller's node, or an end's; lower than its own number */
	uint32_t image; /* index in images; LIFE: it is no frame, but below it is what ran in … */
	uint64_t off;	/* … the life of this number */
};

enum { NR_ENDS = PROFDB_NR_CALLPATH_ENDS, SLOTS_MIN = 1024, LIFE = PROFDB_CALLPATH_WORKLOAD };

/* ---- images ---------------------------------------------------------------------------------- */

/* The number of an image, which gets a reference; or negative. */
static int image_index(struct callpath_tree *t, struct image *image)
{
	uintptr_t number = (uintptr_t)base_map_get(&t->numbers, &image, sizeof(image));
	int r;

	if (number)
		return (int)number - 1;
	r = base_grow(&t->images, &t->cap_images, t->nr_images + 1, sizeof(*t->images));
	if (r == 0)
		r = base_map_set(&t->numbers, &image, sizeof(image),
				 (void *)(uintptr_t)(t->nr_images + 1));
	if (r < 0)
		return r;
	t->images[t->nr_images++] = image_get(image);
	return (int)t->nr_images - 1;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static size_t slot_of(const struct callpath_tree *t, const struct callpath_node *n)
{
	const uint64_t key[2] = { (uint64_t)n->parent << 32 | n->image, n->off };

	return base_hash64_seeded(t->seed, key, sizeof(key)) & (t->nr_slots - 1);
}

static bool is_same(const struct callpath_node *a, const struct callpath_node *b)
{
	return a->parent == b->parent && a->image == b->image && a->off == b->off;
}

/* The slot of node @n, or the free one where it belongs. */
static uint32_t *find(const struct callpath_tree *t, const struct callpath_node *n)
{
	size_t i = slot_of(t, n);

	while (t->slots[i] && !is_same(&t->nodes[t->slots[i]], n))
		i = (i + 1) & (t->nr_slots - 1);
	return &t->slots[i];
}

/* The image or offset of nodes was changed. Nodes may have become equal: one of them is found from
 * now on. */
static void rehash(struct callpath_tree *t)
{
	memset(t->slots, 0, t->nr_slots * sizeof(*t->slots));
	for (size_t i = NR_ENDS; i < t->nr; i++)
		*find(t, &t->nodes[i]) = (uint32_t)i;
}

/* A third of the slots stays free. */
static int grow_slots(struct callpath_tree *t)
{
	size_t nr = t->nr_slots ? 2 * t->nr_slots : SLOTS_MIN;
	uint32_t *slots;

	if (t->nr + 1 <= t->nr_slots / 3 * 2)
		return 0;
	slots = calloc(nr, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->nr_slots = nr;
	rehash(t);
	return 0;
}

static int append(struct callpath_tree *t, const struct callpath_node *n)
{
	int r = base_grow(&t->nodes, &t->cap, t->nr + 1, sizeof(*t->nodes));

	if (r == 0)
		r = base_grow(&t->counts, &t->cap_counts, (t->nr + 1) * t->nr_events,
			      sizeof(*t->counts));
	if (r < 0)
		return r;
	memset(t->counts + t->nr * t->nr_events, 0, t->nr_events * sizeof(*t->counts));
	t->nodes[t->nr++] = *n;
	return 0;
}

static int add_ends(struct callpath_tree *t)
{
	const struct callpath_node none = { 0 };
	int r = 0;

	while (r == 0 && t->nr < NR_ENDS)
		r = append(t, &none);
	return r;
}

/* The number of a node, made where it is missing; or negative. */
static int64_t node_get(struct callpath_tree *t, const struct callpath_node *n)
{
	int r = grow_slots(t);
	uint32_t *slot;

	if (r < 0)
		return r;
	slot = find(t, n);
	if (*slot)
		return *slot;
	if (t->nr >= t->max)
		return -DCPI_ELIMIT;
	r = append(t, n);
	if (r < 0)
		return r;
	*slot = (uint32_t)(t->nr - 1);
	return *slot;
}

static int64_t frame_get(struct callpath_tree *t, int64_t parent,
			 const struct callpath_frame *frame)
{
	int image = image_index(t, frame->image);
	struct callpath_node n = { (uint32_t)parent, (uint32_t)image, frame->off };

	return image < 0 ? image : node_get(t, &n);
}

int64_t callpath_tree_top(struct callpath_tree *t, enum profdb_callpath_end end, uint32_t life)
{
	const struct callpath_node whose = { end, LIFE, life };
	int r = add_ends(t);

	return r < 0 ? r : life ? node_get(t, &whose) : (int64_t)end;
}

int64_t callpath_tree_below(struct callpath_tree *t, int64_t node,
			    const struct callpath_frame *frames, size_t nr)
{
	while (node >= 0 && nr--)
		node = frame_get(t, node, &frames[nr]);
	return node;
}

void callpath_tree_clear(struct callpath_tree *t)
{
	for (size_t i = 0; i < t->nr_images; i++)
		image_put(t->images[i]);
	free(t->images);
	free(t->nodes);
	free(t->counts);
	free(t->slots);
	base_map_release(&t->numbers);
	*t = (struct callpath_tree){ .nr_events = t->nr_events, .max = t->max, .seed = t->seed };
}

/* ---- images that changed --------------------------------------------------------------------- */

static void move_frame(struct callpath_frame *f, const struct image *from,
		       const struct wire_replaces *map, struct image *to)
{
	if (f->image != from)
		return;
	f->off = map ? wire_moved_off(map, f->off) : 0;
	image_put(f->image);
	f->image = image_get(to);
}

static void move_nodes(struct callpath_tree *t, uint32_t from, const struct wire_replaces *map,
		       uint32_t to)
{
	for (size_t i = NR_ENDS; i < t->nr; i++) {
		struct callpath_node *n = &t->nodes[i];

		if (n->image != from)
			continue;
		n->off = map ? wire_moved_off(map, n->off) : 0;
		n->image = to;
	}
}

/* All frames in @from are in @to from now on; @map NULL: at offset 0. Where there is no memory for
 * that, they stay. */
static int move_all(struct callpaths *t, const struct image *from, const struct wire_replaces *map,
		    struct image *to)
{
	uintptr_t number = (uintptr_t)base_map_get(&t->tree.numbers, &from, sizeof(from));
	int index = number ? image_index(&t->tree, to) : 0;

	if (index < 0)
		return index;
	t->tree_version++;
	if (number) {
		move_nodes(&t->tree, (uint32_t)number - 1, map, (uint32_t)index);
		rehash(&t->tree);
	}
	for (size_t i = 0; i < t->nr_waiting; i++)
		for (size_t j = 0; t->waiting[i]->frames && j < t->waiting[i]->c.nr; j++)
			move_frame(&t->waiting[i]->frames[j], from, map, to);
	return 0;
}

void callpath_moved(struct callpaths *t, const struct image *from, const struct wire_replaces *map,
		    struct image *to)
{
	/* The build-id of @from leads to @to all the same. */
	(void)move_all(t, from, map, to);
}

int callpath_give_up(struct callpaths *t, bool all)
{
	struct image *to = images_bucket(t->config.attribute->images, ACCOUNT_BUCKET_REFUSED);
	int nr = 0;

	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < t->tree.nr_images; i++) {
		struct image *img = t->tree.images[i];

		if (!img->refused && !(all && image_must_wait(img)))
			continue;
		if (move_all(t, img, NULL, to) < 0)
			return -ENOMEM;
		nr++;
	}
	return nr;
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* The end of the path whose outermost frame stands below @node, and its life. */
static enum profdb_callpath_end end_of(const struct callpath_tree *t, size_t node, uint32_t *life)
{
	bool whose = node >= NR_ENDS && t->nodes[node].image == LIFE;

	*life = whose ? (uint32_t)t->nodes[node].off : 0;
	return (enum profdb_callpath_end)(whose ? t->nodes[node].parent : node);
}

static bool is_frame(const struct callpath_tree *t, size_t node)
{
	return node >= NR_ENDS && t->nodes[node].image != LIFE;
}

/* The frames of node @node, itself first, to @frames (DRIVER_NR_FRAMES); how many. */
static size_t path_of(const struct callpath_tree *t, size_t node, struct callpath_frame *frames,
		      enum profdb_callpath_end *end, uint32_t *life)
{
	size_t nr = 0;

	for (; is_frame(t, node) && nr < DRIVER_NR_FRAMES; node = t->nodes[node].parent)
		frames[nr++] = (struct callpath_frame){ t->images[t->nodes[node].image],
							t->nodes[node].off };
	*end = end_of(t, node, life);
	return nr;
}

/* Counts at this very node, of the events from @first up to @end. */
static uint64_t count_of(const struct callpath_tree *t, size_t node, size_t first, size_t end)
{
	uint64_t sum = 0;

	for (size_t e = first; e < end; e++)
		sum += t->counts[node * t->nr_events + e];
	return sum;
}

/* ---- putting --------------------------------------------------------------------------------- */

/* The tree on its way into the database. */
struct putting {
	const struct callpath_tree *tree;
	const bool *waits; /* nodes: some image of their paths is not on disk */
	struct profdb_callpaths *to;
	int *images; /* numbers in @to of the tree's images; negative: not there yet */
	struct workloads *workloads;
	struct base_map lives; /* their numbers in @to, + 1 */
	size_t nr_sampled;     /* events; the others count nanoseconds */
	uint64_t nr, ns;       /* samples and nanoseconds that were put */
};

/* Each node stands behind its parent. */
static bool *find_waiting(const struct callpath_tree *t)
{
	bool *waits = calloc(t->nr, sizeof(*waits));

	for (size_t i = NR_ENDS; waits && i < t->nr; i++)
		waits[i] = waits[t->nodes[i].parent] ||
			   (is_frame(t, i) && image_must_wait(t->images[t->nodes[i].image]));
	return waits;
}

static int put_image(struct putting *p, uint32_t index)
{
	struct image *img = p->tree->images[index];
	const struct profdb_image_ref i = {
		.kind = img->kind,
		.id = img->id,
		.path = img->path,
		.stem = img->kind == PROFDB_DYNAMIC ? img->stem : NULL,
	};

	if (p->images[index] < 0) {
		p->images[index] = profdb_callpaths_image_add(p->to, &i);
		img->put = true;
	}
	return p->images[index];
}

/* The number of a life's workload; or negative. */
static int put_life(struct putting *p, uint32_t life)
{
	uintptr_t number = (uintptr_t)base_map_get(&p->lives, &life, sizeof(life));
	struct profdb_workload k;
	int r;

	if (number)
		return (int)number - 1;
	k = workload_owner(p->workloads, life);
	r = profdb_callpaths_workload_add(p->to, &k);
	if (r < 0)
		return r;
	number = (uintptr_t)r + 1;
	return base_map_set(&p->lives, &life, sizeof(life), (void *)number) < 0 ? -ENOMEM : r;
}

static int put_node(struct putting *p, size_t node)
{
	struct profdb_frame frames[DRIVER_NR_FRAMES];
	size_t nr = 0, at = node, nr_events = p->tree->nr_events;
	enum profdb_callpath_end end;
	uint32_t life, workload;
	int r = 0;

	for (; is_frame(p->tree, at) && nr < DRIVER_NR_FRAMES; at = p->tree->nodes[at].parent) {
		const struct callpath_node *n = &p->tree->nodes[at];
		int image = put_image(p, n->image);

		if (image < 0)
			return image;
		frames[nr++] = (struct profdb_frame){ (uint32_t)image, n->off };
	}
	end = end_of(p->tree, at, &life);
	if (life)
		r = put_life(p, life);
	workload = life ? (uint32_t)r : PROFDB_CALLPATH_NOBODY;
	for (size_t e = 0; r >= 0 && e < nr_events; e++) {
		uint64_t n = p->tree->counts[node * nr_events + e];

		if (n)
			r = profdb_callpaths_add_of(p->to, workload, e, end, frames, nr, n);
	}
	return r < 0 ? r : 0;
}

static int put_nodes(struct putting *p)
{
	int r = 0;

	for (size_t i = NR_ENDS; r >= 0 && i < p->tree->nr; i++) {
		uint64_t n = count_of(p->tree, i, 0, p->nr_sampled);
		uint64_t ns = count_of(p->tree, i, p->nr_sampled, p->tree->nr_events);

		if (!(n | ns) || p->waits[i])
			continue;
		r = put_node(p, i);
		p->nr += n;
		p->ns += ns;
	}
	return r;
}

static int put_events(const struct callpaths *t, const struct driver_event *events,
		      struct profdb_callpaths *to)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < t->config.nr_events; i++)
		r = profdb_callpaths_event_add(to, events[i].name, events[i].period);
	return r;
}

static int begin(struct callpaths *t, const struct driver_event *events, struct putting *p)
{
	const struct callpath_tree *tree = &t->tree;

	t->waits = find_waiting(tree);
	p->tree = tree;
	p->nr_sampled = t->config.nr_events - t->config.nr_timed;
	p->waits = t->waits;
	p->to = profdb_callpaths_new();
	p->images = malloc(tree->nr_images * sizeof(*p->images));
	if (!p->to || !p->images || !p->waits)
		return -ENOMEM;
	for (size_t i = 0; i < tree->nr_images; i++)
		p->images[i] = -1;
	return put_events(t, events, p->to);
}

/* Paths that do not fit are lost: the profiles beside them are not to wait for that. */
static void lose_unfit(struct callpaths *t, const struct putting *p, struct base_err *err)
{
	base_log(BASE_LOG_ERROR, "call paths of %llu samples are lost: %s",
		 (unsigned long long)p->nr, err->text);
	t->nr_unfit = p->nr;
	t->ns_unfit = p->ns;
}

/* The last callpath_put is undone, or on disk. */
static void forget_put(struct callpaths *t)
{
	free(t->waits);
	t->waits = NULL;
	t->nr_unfit = t->ns_unfit = 0;
}

static int put_all(struct callpaths *t, struct putting *p, struct profdb *db, struct base_err *err)
{
	int r = put_nodes(p);

	if (r >= 0 && (p->nr | p->ns))
		r = profdb_flush_put_callpaths(db, p->to, err);
	if (r > 0)
		base_log(BASE_LOG_WARN, "%s", err->text);
	if (r != -DCPI_EOVERFLOW && r != -DCPI_ELIMIT)
		return r;
	if (!err->code)
		base_fail_errno(err, r, "cannot write call paths");
	lose_unfit(t, p, err);
	return 0;
}

int callpath_put(struct callpaths *t, struct profdb *db, const struct driver_event *events,
		 struct base_err *err)
{
	struct putting p = { .workloads = t->config.workloads };
	struct base_err own = { 0 };
	int r;

	forget_put(t);
	if (t->tree.nr <= NR_ENDS)
		return 0;
	r = begin(t, events, &p);
	if (r >= 0)
		r = put_all(t, &p, db, &own);
	profdb_callpaths_free(p.to);
	base_map_release(&p.lives);
	free(p.images);
	if (r >= 0)
		return 0;
	if (!own.code)
		base_fail_errno(&own, r, "cannot write call paths");
	*err = own;
	return r;
}

/* ---- afterwards ------------------------------------------------------------------------------ */

/* Paths for which there is no memory now are lost. */
static void keep_node(struct callpaths *t, const struct callpath_tree *from, size_t node)
{
	enum profdb_callpath_end end;
	uint32_t life;
	size_t nr = path_of(from, node, t->frames, &end, &life);
	int64_t to = callpath_tree_top(&t->tree, end, life);

	to = callpath_tree_below(&t->tree, to, t->frames, nr);
	for (size_t e = 0; e < from->nr_events; e++) {
		uint64_t n = from->counts[node * from->nr_events + e];

		if (to >= 0)
			callpath_tree_count(&t->tree, to, e, n);
		if (to >= 0 || !n)
			continue;
		callpath_account(t, e)->stored -= n;
		callpath_account(t, e)->lost[CALLPATH_LOST_MEMORY] += n;
	}
}

void callpath_written(struct callpaths *t)
{
	struct callpath_tree from = t->tree;

	if (!t->waits)
		return;
	t->stats.stored -= t->nr_unfit;
	t->stats.lost[CALLPATH_LOST_UNFIT] += t->nr_unfit;
	t->times.stored -= t->ns_unfit;
	t->times.lost[CALLPATH_LOST_UNFIT] += t->ns_unfit;
	t->tree_version++;
	t->tree = (struct callpath_tree){ .nr_events = from.nr_events,
					  .max = from.max,
					  .seed = from.seed };
	for (size_t i = NR_ENDS; i < from.nr; i++)
		if (t->waits[i])
			keep_node(t, &from, i);
	callpath_tree_clear(&from);
	forget_put(t);
}

void callpath_mark_lives(const struct callpaths *t)
{
	for (size_t i = NR_ENDS; i < t->tree.nr; i++)
		if (!is_frame(&t->tree, i))
			workload_mark(t->config.workloads, (uint32_t)t->tree.nodes[i].off);
	for (size_t i = 0; i < t->nr_waiting; i++)
		workload_mark(t->config.workloads, t->waiting[i]->life);
}
