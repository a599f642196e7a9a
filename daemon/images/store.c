/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples and the edges of traces become counts in the profiles of images, and are accounted for.
 */
#include <errno.h>

#include "images.h"
#include "watch.h"

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

/* There is room for it. */
static void add_insn(struct profdb_profile *p, const struct store_count *c)
{
	struct profdb_insn m = { .off = c->off,
				 .event = c->event,
				 .known = c->insn->known,
				 .bits = c->insn->bits,
				 .count = c->n };

	for (int i = 0; i < ISAMPLE_NR_COUNTERS; i++)
		m.sum[i] = c->insn->counter[i] * c->n;
	profdb_profile_insn_add(p, &m);
}

/* To both the profile and its workloads, or to none. */
static int add_to(const struct store *s, struct image *img, const struct store_count *c)
{
	int r = add_events(s, img->counts);

	if (r >= 0 && c->insn)
		r = profdb_profile_insns_reserve(img->counts, 1);
	if (r >= 0 && s->workloads)
		r = workload_table_reserve(s->workloads, &img->workloads, 1);
	if (r >= 0)
		r = profdb_profile_add(img->counts, c->off, c->event, c->n);
	if (r < 0)
		return r;
	if (c->insn)
		add_insn(img->counts, c);
	if (s->workloads)
		workload_table_add(img->workloads, &c->where, c->off, c->event, c->n);
	img->dirty = true;
	if (s->workloads)
		watch_add(s->watch, s->workloads, img, c);
	return r;
}

static bool is_timed(const struct store *s, uint32_t event)
{
	return event < s->nr_events && event >= s->nr_events - s->nr_timed;
}

static int add(struct store *s, struct image *img, const struct store_count *c)
{
	struct account *a = is_timed(s, c->event) ? &s->times : &s->account;
	int r;

	if (img && img->excluded) {
		a->lost[ACCOUNT_LOST_EXCLUDED] += c->n;
		return 0;
	}
	if (!img)
		r = -ENOMEM;
	else
		r = c->event < s->nr_events ? add_to(s, img, c) : -EINVAL;
	if (r >= 0)
		a->stored += c->n;
	else if (r == -DCPI_EOVERFLOW)
		a->lost[ACCOUNT_LOST_OVERFLOW] += c->n;
	else if (r == -EINVAL)
		a->lost[ACCOUNT_LOST_BAD] += c->n;
	else
		a->lost[ACCOUNT_LOST_MEMORY] += c->n;
	return r;
}

void store_add(struct store *s, struct image *img, const struct store_count *c)
{
	add(s, img, c);
}

/* ---- counts of a drain ----------------------------------------------------------------------- */

static void store_first(struct store *s)
{
	const struct store_place *p = &s->ahead[s->first++ % STORE_AHEAD];

	s->account.pending -= p->count.n;
	add(s, p->image, &p->count);
}

static void expect(const struct store_place *p, unsigned int step)
{
	const struct store_count *c = &p->count;

	profdb_profile_expect(p->image->counts, c->off, step);
	if (step)
		workload_table_expect(p->image->workloads, &c->where, c->off, c->event);
}

void store_soon(struct store *s, struct image *img, const struct store_count *c)
{
	struct store_place *p;

	if (!img || img->excluded || c->insn) {
		add(s, img, c);
		return;
	}
	if (s->end - s->first == STORE_AHEAD)
		store_first(s);
	p = &s->ahead[s->end++ % STORE_AHEAD];
	*p = (struct store_place){ img, *c };
	s->account.pending += c->n;
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
		  const struct store_count *c)
{
	struct image *img = images_bucket(s->images, bucket);
	struct store_count at = *c;

	if (img)
		img = images_of(s->images, img, owner);
	at.off = 0;
	if (add(s, img, &at) >= 0)
		(is_timed(s, c->event) ? &s->times : &s->account)->bucket[bucket] += c->n;
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
