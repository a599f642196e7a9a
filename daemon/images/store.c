/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples and the edges of traces become counts in the profiles of images, and are accounted for.
 */
#include <errno.h>

#include "images.h"

/* All profiles have all events, in the driver's order: an event's index is the same everywhere. */
static int add_events(const struct store *s, struct profdb_profile *p)
{
	for (size_t i = profdb_profile_nr_events(p); i < s->nr_events; i++) {
		int r = profdb_profile_event_add(p, s->events[i].name, s->events[i].period);

		if (r < 0)
			return r;
	}
	return 0;
}

static int add(struct store *s, struct image *img, uint64_t off, uint32_t event, uint64_t n)
{
	int r;

	if (img && img->excluded) {
		s->account.lost[ACCOUNT_LOST_EXCLUDED] += n;
		return 0;
	}
	if (!img)
		r = -ENOMEM;
	else if (event >= s->nr_events)
		r = -EINVAL;
	else
		r = add_events(s, img->counts);
	if (r >= 0)
		r = profdb_profile_add(img->counts, off, event, n);
	if (r >= 0) {
		img->dirty = true;
		s->account.stored += n;
	} else if (r == -DCPI_EOVERFLOW) {
		s->account.lost[ACCOUNT_LOST_OVERFLOW] += n;
	} else if (r == -EINVAL) {
		s->account.lost[ACCOUNT_LOST_BAD] += n;
	} else {
		s->account.lost[ACCOUNT_LOST_MEMORY] += n;
	}
	return r;
}

void store_add(struct store *s, struct image *img, uint64_t off, uint32_t event, uint64_t n)
{
	add(s, img, off, event, n);
}

/* ---- counts of a drain ----------------------------------------------------------------------- */

static void store_first(struct store *s)
{
	const struct store_place *p = &s->ahead[s->first++ % STORE_AHEAD];

	s->account.pending -= p->count;
	add(s, p->image, p->off, p->event, p->count);
}

static void expect(const struct store_place *p, unsigned int step)
{
	profdb_profile_expect(p->image->counts, p->off, step);
}

void store_soon(struct store *s, struct image *img, uint64_t off, uint32_t event, uint64_t n)
{
	struct store_place *p;

	if (!img || img->excluded) {
		add(s, img, off, event, n);
		return;
	}
	if (s->end - s->first == STORE_AHEAD)
		store_first(s);
	p = &s->ahead[s->end++ % STORE_AHEAD];
	*p = (struct store_place){ img, off, n, event };
	s->account.pending += n;
	expect(p, 0);
	if (s->end - s->first > STORE_AHEAD / 2)
		expect(&s->ahead[(s->end - 1 - STORE_AHEAD / 2) % STORE_AHEAD], 1);
}

void store_all(struct store *s)
{
	while (s->first != s->end)
		store_first(s);
}

void store_bucket(struct store *s, enum account_bucket bucket, const struct images_owner *owner,
		  uint32_t event, uint64_t n)
{
	struct image *img = images_bucket(s->images, bucket);

	if (img)
		img = images_of(s->images, img, owner);
	if (add(s, img, 0, event, n) >= 0)
		s->account.bucket[bucket] += n;
}

void store_label(struct image *img, const char *label)
{
	if (label && !img->label && image_set_label(img, label) < 0)
		base_log(BASE_LOG_ERROR, "no memory for the label of '%s'", img->stem);
}

/* ---- edges of traces ------------------------------------------------------------------------- */

int store_edges(struct store *s, struct image *img, const char *label, const struct profdb_edge *m,
		size_t nr, size_t *nr_stored)
{
	int r;

	*nr_stored = 0;
	if (img->excluded)
		return 0;
	if (img->kind == PROFDB_DYNAMIC)
		store_label(img, label);
	r = add_events(s, img->counts);
	if (r < 0)
		return r;
	profdb_profile_edges_fetch(img->counts, m, nr);
	for (size_t i = 0; i < nr; i++) {
		int added = profdb_profile_edge_add(img->counts, &m[i]);

		r = r < 0 ? r : added;
		*nr_stored += added >= 0;
	}
	img->dirty |= *nr_stored > 0;
	return r < 0 ? r : 0;
}
