/* SPDX-License-Identifier: BSD-2-Clause */
/* The calling-context tree holds the paths that are not on disk yet, by image and offset. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"

enum { NR_ENDS = PROFDB_NR_CALLPATH_ENDS, SLOTS_MIN = 1024 };

/* ---- images ---------------------------------------------------------------------------------- */

int callpath_tree_image(struct callpath_tree *t, struct image *image)
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

/* Nodes may have become equal: one of them is found from now on. */
void callpath_tree_rehash(struct callpath_tree *t)
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
	callpath_tree_rehash(t);
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

/* The number of the node of @frame below @parent, made where it is missing; or negative. */
static int64_t node_get(struct callpath_tree *t, uint32_t parent,
			const struct callpath_frame *frame)
{
	int image = callpath_tree_image(t, frame->image), r;
	struct callpath_node n = { .parent = parent, .image = (uint32_t)image, .off = frame->off };
	uint32_t *slot;

	if (image < 0)
		return image;
	r = grow_slots(t);
	if (r < 0)
		return r;
	slot = find(t, &n);
	if (*slot)
		return *slot;
	if (t->nr >= t->max)
		return -DCPI_ELIMIT;
	r = append(t, &n);
	if (r < 0)
		return r;
	*slot = (uint32_t)(t->nr - 1);
	return *slot;
}

int callpath_tree_add(struct callpath_tree *t, enum profdb_callpath_end end,
		      const struct callpath_frame *frames, size_t nr, size_t event, uint64_t n)
{
	int64_t node = end;
	int r = add_ends(t);

	if (r < 0)
		return r;
	for (size_t i = nr; node >= 0 && i--;)
		node = node_get(t, (uint32_t)node, &frames[i]);
	if (node < 0)
		return (int)node;
	t->counts[(size_t)node * t->nr_events + event] += n;
	return 0;
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
