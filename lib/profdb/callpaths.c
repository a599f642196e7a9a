/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths in memory: images, events, and a calling-context tree of frames in these images. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

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

static void image_release(struct profdb_image_ref *i)
{
	free((char *)i->path);
	free((char *)i->stem);
}

void profdb_callpaths_free(struct profdb_callpaths *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nr_images; i++)
		image_release(&c->images[i]);
	free(c->images);
	base_map_release(&c->by_key);
	profdb_calltree_release(&c->tree);
	profdb_profile_free(c->header);
	free(c);
}

/* ---- images ---------------------------------------------------------------------------------- */

static bool image_ok(const struct profdb_image_ref *i)
{
	return i->kind == PROFDB_DYNAMIC ? i->stem && *i->stem : !i->stem;
}

/* Equal images have one key: kind, then the stem, or identity and path. */
static int image_key(const struct profdb_image_ref *i, struct base_buf *key)
{
	uint8_t kind = (uint8_t)i->kind;
	int r = base_buf_append(key, &kind, 1);

	if (i->kind == PROFDB_DYNAMIC)
		return r < 0 ? r : base_buf_append(key, i->stem, strlen(i->stem));
	if (r >= 0)
		r = base_buf_append(key, &i->id.len, 1);
	if (r >= 0)
		r = base_buf_append(key, i->id.bytes, i->id.len);
	return r < 0 ? r : base_buf_append(key, i->path, strnlen(i->path, PROFDB_PATH_MAX));
}

static int append_image(struct profdb_callpaths *c, const struct profdb_image_ref *i)
{
	struct profdb_image_ref copy = *i;

	if (c->nr_images == PROFDB_NR_CALLPATH_IMAGES)
		return -DCPI_ELIMIT;
	if (base_grow(&c->images, &c->cap_images, c->nr_images + 1, sizeof(*c->images)) < 0)
		return -ENOMEM;
	copy.path = strndup(i->path, PROFDB_PATH_MAX);
	copy.stem = i->stem ? strdup(i->stem) : NULL;
	if (!copy.path || (i->stem && !copy.stem)) {
		image_release(&copy);
		return -ENOMEM;
	}
	c->images[c->nr_images] = copy;
	return 0;
}

static int add_image(struct profdb_callpaths *c, const struct profdb_image_ref *i,
		     const struct base_buf *key)
{
	uintptr_t number = (uintptr_t)base_map_get(&c->by_key, key->data, key->len);
	int r;

	if (number) {
		/* A pseudo-image gets another identity as it grows. */
		c->images[number - 1].id = i->id;
		return (int)number - 1;
	}
	r = append_image(c, i);
	if (r < 0)
		return r;
	r = base_map_set(&c->by_key, key->data, key->len, (void *)(uintptr_t)(c->nr_images + 1));
	if (r < 0) {
		image_release(&c->images[c->nr_images]);
		return r;
	}
	return (int)c->nr_images++;
}

int profdb_callpaths_image_add(struct profdb_callpaths *c, const struct profdb_image_ref *i)
{
	struct profdb_image_ref image = *i;
	struct base_buf key = { 0 };
	int r;

	image.path = i->path ? i->path : "";
	if (!image_ok(i))
		return -EINVAL;
	r = image_key(&image, &key);
	if (r >= 0)
		r = add_image(c, &image, &key);
	base_buf_release(&key);
	return r;
}

size_t profdb_callpaths_nr_images(const struct profdb_callpaths *c)
{
	return c->nr_images;
}

const struct profdb_image_ref *profdb_callpaths_image(const struct profdb_callpaths *c,
						      size_t index)
{
	return index < c->nr_images ? &c->images[index] : NULL;
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
		if (frames[i].image >= c->nr_images)
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
	map->images = calloc(from->nr_images + 1, sizeof(*map->images));
	map->nodes = calloc(from->tree.nr, sizeof(*map->nodes));
	if (!map->images || !map->nodes)
		return -ENOMEM;
	for (size_t i = 0; i < from->nr_images; i++) {
		int r = profdb_callpaths_image_add(to, &from->images[i]);

		if (r < 0)
			return r;
		map->images[i] = (uint32_t)r;
	}
	return 0;
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
