/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of an image wait for the next flush, with the user who may read them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "images.h"

/* ---- whose they are -------------------------------------------------------------------------- */

static void take_uid(struct image_values *i, uint32_t uid)
{
	i->uid = i->owned && i->uid != uid ? IMAGE_VALUES_NOBODY : uid;
	i->owned = true;
}

/* Lives that are over need not be kept. */
static void settle(struct image_values *i)
{
	size_t kept = 0;

	for (size_t n = 0; n < i->nr_owners; n++) {
		struct values_owner *o = i->owners[n];

		if (!o->certain) {
			i->owners[kept++] = o;
			continue;
		}
		take_uid(i, o->uid);
		values_owner_put(o);
	}
	i->nr_owners = kept;
}

static void add_owner(struct image_values *i, struct values_owner *o)
{
	for (size_t n = 0; n < i->nr_owners; n++)
		if (i->owners[n] == o)
			return;
	settle(i);
	if (o && !o->certain &&
	    base_grow(&i->owners, &i->cap_owners, i->nr_owners + 1, sizeof(*i->owners)) == 0) {
		o->refs++;
		i->owners[i->nr_owners++] = o;
		return;
	}
	take_uid(i, o && o->certain ? o->uid : IMAGE_VALUES_NOBODY);
}

static uint32_t uid_at(const struct image_values *i, uint64_t now_ns)
{
	struct image_values all = { .owned = i->owned, .uid = i->uid };

	for (size_t n = 0; n < i->nr_owners; n++) {
		const struct values_owner *o = i->owners[n];

		take_uid(&all, o->certain || now_ns >= o->asked_ns ? o->uid : IMAGE_VALUES_NOBODY);
	}
	return all.owned ? all.uid : IMAGE_VALUES_NOBODY;
}

/* ---- of an image ----------------------------------------------------------------------------- */

static struct image_values *find(const struct image *img, const char *profiler)
{
	for (struct image_values *i = img->values; i; i = i->next)
		if (strcmp(profdb_values_profiler(i->values), profiler) == 0)
			return i;
	return NULL;
}

static struct image_values *get(struct image *img, const char *profiler)
{
	struct image_values *i = find(img, profiler);

	if (i)
		return i;
	i = calloc(1, sizeof(*i));
	if (i)
		i->values = profdb_values_new(img->kind, &img->id, img->path, profiler);
	if (!i || !i->values) {
		free(i);
		return NULL;
	}
	i->next = img->values;
	img->values = i;
	return i;
}

struct profdb_values *image_values_get(struct image *img, const char *profiler,
				       struct values_owner *o)
{
	struct image_values *i = get(img, profiler);

	if (i)
		add_owner(i, o);
	return i ? i->values : NULL;
}

static uint64_t moved(void *ctx, uint64_t off)
{
	return wire_moved_off(ctx, off);
}

static int move(struct image_values *from, const struct wire_replaces *map, struct image *to)
{
	struct image_values *i = get(to, profdb_values_profiler(from->values));

	if (!i)
		return -ENOMEM;
	if (from->owned)
		take_uid(i, from->uid);
	for (size_t n = 0; n < from->nr_owners; n++)
		add_owner(i, from->owners[n]);
	return profdb_values_move(i->values, from->values, moved, (void *)(uintptr_t)map);
}

int image_values_move(struct image *from, const struct wire_replaces *map, struct image *to)
{
	int r = 0;

	for (struct image_values *i = from->values; i; i = i->next) {
		int own = move(i, map, to);

		r = r < 0 ? r : own;
	}
	image_values_clear(from);
	return r < 0 ? r : 0;
}

int image_values_put(struct profdb *db, const struct image *img, uint64_t now_ns,
		     struct base_err *err)
{
	int r = 0;

	for (struct image_values *i = img->values; r >= 0 && i; i = i->next) {
		/* A pseudo-image has its identity since it was written. */
		profdb_values_set_image(i->values, &img->id);
		r = profdb_flush_put_values(db, img->stem, i->values, uid_at(i, now_ns), err);
		if (r <= 0)
			continue;
		base_log(BASE_LOG_WARN, "%s", err->text);
		*err = (struct base_err){ 0 };
	}
	return r < 0 ? r : 0;
}

uint64_t image_values_total(const struct image *img)
{
	uint64_t sum = 0;

	for (const struct image_values *i = img->values; i; i = i->next) {
		sum += profdb_values_lost(i->values);
		for (size_t n = 0; n < profdb_values_nr(i->values); n++)
			sum += profdb_values_at(i->values, n)->vtot;
	}
	return sum;
}

void image_values_clear(struct image *img)
{
	for (struct image_values *i = img->values, *next; i; i = next) {
		next = i->next;
		profdb_values_free(i->values);
		for (size_t n = 0; n < i->nr_owners; n++)
			values_owner_put(i->owners[n]);
		free(i->owners);
		free(i);
	}
	img->values = NULL;
}
