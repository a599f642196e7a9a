/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples and the edges of traces become counts in the profiles of images, and are accounted for.
 */
#include <errno.h>

#include "images.h"
#include "watch.h"

/* All profiles have all events, in the driver's order: an event's index is the same everywhere. */
static int add_events(const struct store *s, struct image *img)
{
	for (; img->nr_events < s->nr_events; img->nr_events++) {
		const struct driver_event *e = &s->events[img->nr_events];
		int r = profdb_profile_event_add(img->counts, e->name, e->period);

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

/* ---- counts on their way --------------------------------------------------------------------- */

static struct account *account_of(struct store *s, uint32_t event)
{
	bool timed = event < s->nr_events && event >= s->nr_events - s->nr_timed;

	return timed ? &s->times : &s->account;
}

static void lose(struct store *s, const struct store_count *c, int why)
{
	struct account *a = account_of(s, c->event);

	if (why == -DCPI_EOVERFLOW)
		a->lost[ACCOUNT_LOST_OVERFLOW] += c->n;
	else if (why == -EINVAL)
		a->lost[ACCOUNT_LOST_BAD] += c->n;
	else
		a->lost[ACCOUNT_LOST_MEMORY] += c->n;
}

void store_soon(struct store *s, struct image *img, const struct store_count *c)
{
	if (img && img->excluded) {
		account_of(s, c->event)->lost[ACCOUNT_LOST_EXCLUDED] += c->n;
		return;
	}
	if (!img || c->event >= s->nr_events) {
		lose(s, c, img ? -EINVAL : -ENOMEM);
		return;
	}
	account_of(s, c->event)->pending += c->n;
	s->ahead[s->nr++] = (struct store_place){ img, *c };
	if (s->nr == STORE_AHEAD || c->insn)
		store_all(s);
}

void store_bucket(struct store *s, enum account_bucket bucket, const struct images_owner *owner,
		  const struct store_count *c)
{
	struct image *img = images_bucket(s->images, bucket);
	struct store_count at = *c;

	if (img)
		img = images_of(s->images, img, owner);
	at.off = 0;
	store_soon(s, img, &at);
}

/* Room for a count beside the others of its image that are on their way: it goes to both the
 * profile and its workloads, or to none. */
static int make_room(const struct store *s, struct image *img, const struct store_count *c)
{
	int r = img->nr_events < s->nr_events ? add_events(s, img) : 0;

	img->nr_ahead++;
	if (r >= 0 && c->insn)
		r = profdb_profile_insns_reserve(img->counts, 1);
	if (r >= 0 && s->workloads)
		r = workload_table_reserve(s->workloads, &img->workloads, img->nr_ahead);
	return r;
}

static void make_rows(const struct store *s, struct profdb_add *rows)
{
	for (size_t i = 0; i < s->nr; i++) {
		const struct store_count *c = &s->ahead[i].count;
		struct image *img = s->ahead[i].image;
		int r = make_room(s, img, c);

		rows[i] = (struct profdb_add){ img->counts, c->off, c->n, c->event, r };
	}
}

/* The workloads get the counts that the profiles have taken. */
static void add_owned(const struct store *s, const struct profdb_add *rows)
{
	struct workload_add owned[STORE_AHEAD];

	for (size_t i = 0; i < s->nr; i++)
		owned[i] =
			(struct workload_add){ rows[i].r < 0 ? NULL : s->ahead[i].image->workloads,
					       s->ahead[i].count.where, rows[i].off, rows[i].n,
					       rows[i].event };
	workload_tables_add(owned, s->nr);
}

static void stored(struct store *s, const struct store_place *p)
{
	struct account *a = account_of(s, p->count.event);

	a->stored += p->count.n;
	if (p->image->kind == PROFDB_NAMED)
		a->bucket[p->image->bucket] += p->count.n;
	p->image->dirty = true;
	if (p->count.insn)
		add_insn(p->image->counts, &p->count);
}

/* One module is called for all of a batch, and then the next one. */
void store_all(struct store *s)
{
	struct profdb_add rows[STORE_AHEAD];
	bool watched = s->workloads && watch_has_viewers(s->watch);

	make_rows(s, rows);
	profdb_profiles_add(rows, s->nr);
	if (s->workloads)
		add_owned(s, rows);
	for (size_t i = 0; i < s->nr; i++) {
		const struct store_place *p = &s->ahead[i];

		p->image->nr_ahead = 0;
		account_of(s, p->count.event)->pending -= p->count.n;
		if (rows[i].r < 0)
			lose(s, &p->count, rows[i].r);
		else
			stored(s, p);
		if (watched && rows[i].r >= 0)
			watch_add(s->watch, s->workloads, p->image, &p->count);
	}
	s->nr = 0;
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
		image_label(img, label);
	r = add_events(s, img);
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
