/* SPDX-License-Identifier: BSD-2-Clause */
/* The samples of an epoch are added up by routine, for questions about whole fleets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store_internal.h"

/* A routine of this epoch. */
struct routine {
	uint64_t number;
	uint64_t count[ANALYSIS_NR_EVENTS];
};

/* The routines of the samples with one label. */
struct labelled {
	char *label;
	struct routine *v;
	size_t nr, cap;
	struct base_map by_number; /* index + 1 */
};

struct totals {
	struct store_pack *p;
	struct analysis *a;
	struct labelled *v;
	size_t nr, cap;
	struct base_map seen; /* keys of facilities whose rows are made */
};

/* ---- counting ----------------------------------------------------------------------------------
 */

static struct labelled *labelled_of(struct totals *t, const char *label)
{
	for (size_t i = 0; i < t->nr; i++)
		if (strcmp(t->v[i].label, label) == 0)
			return &t->v[i];
	if (base_grow(&t->v, &t->cap, t->nr + 1, sizeof(*t->v)) < 0)
		return NULL;
	t->v[t->nr] = (struct labelled){ .label = strdup(label) };
	return t->v[t->nr].label ? &t->v[t->nr++] : NULL;
}

static struct routine *routine_of(struct labelled *l, uint64_t number)
{
	size_t at = (size_t)(uintptr_t)base_map_get(&l->by_number, &number, sizeof(number));

	if (!at) {
		if (base_grow(&l->v, &l->cap, l->nr + 1, sizeof(*l->v)) < 0)
			return NULL;
		l->v[l->nr++] = (struct routine){ .number = number };
		at = l->nr;
		if (base_map_set(&l->by_number, &number, sizeof(number), (void *)(uintptr_t)at) < 0)
			return NULL;
	}
	return &l->v[at - 1];
}

/* A routine's name and place, once for each store. */
static int put_routine(struct totals *t, uint64_t number, const struct store_key *image,
		       const char *symbol, uint64_t off, uint64_t len)
{
	struct store_pack *p = t->p;
	struct base_buf *row = &p->out->rows[STORE_ROUTINE];
	int r = store_pack_offered(p, &number, sizeof(number));

	if (r != 0)
		return r < 0 ? r : 0;
	r = base_buf_append_le(row, number, 8);
	if (r >= 0)
		r = base_buf_append(row, image->bytes, sizeof(image->bytes));
	if (r >= 0)
		r = store_put_text(row, symbol);
	if (r >= 0)
		r = base_buf_append_le(row, off, 8);
	if (r >= 0)
		r = base_buf_append_le(row, len, 8);
	return r < 0 ? r : base_buf_append_le(row, 1, 8);
}

/* ---- one image ---------------------------------------------------------------------------------
 */

struct counting {
	struct totals *t;
	struct labelled *l;
	struct analysis_image *ai;
	struct image *img;    /* NULL: it could not be opened */
	struct store_key key; /* the image's; of a pseudo-image its facility's */
	bool by_name;	      /* routines of equal name are one, wherever they stand */
	const struct image_symbol *last;
	struct routine *routine; /* the last one's */
};

static int count_symbol(struct counting *c, const struct image_symbol *symbol)
{
	uint64_t off = 0, number;
	const char *name = symbol ? symbol->name : "";
	bool placed = symbol && !c->by_name && image_off(c->img, symbol->vaddr, &off) >= 0;

	if (!placed)
		off = 0;
	number = store_routine_key(&c->key, name, off);
	c->routine = routine_of(c->l, number);
	c->last = symbol;
	return !c->routine
		       ? -ENOMEM
		       : put_routine(c->t, number, &c->key, name, off, symbol ? symbol->len : 0);
}

static int count_entries(struct counting *c)
{
	const struct profdb_profile *profile = c->ai->profile;
	size_t nr = profdb_profile_nr_entries(profile);
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		const struct profdb_entry *e = profdb_profile_entry(profile, i);
		const struct image_symbol *symbol = NULL;
		uint64_t vaddr;

		if (c->img && image_vaddr(c->img, e->off, &vaddr) >= 0)
			symbol = image_symbol_at(c->img, vaddr);
		if (!c->routine || symbol != c->last)
			r = count_symbol(c, symbol);
		if (r >= 0)
			analysis_entry_add(c->ai, e, c->routine->count, NULL);
	}
	return r;
}

static struct store_met *met_of(struct store_pack *p, const struct store_key *key)
{
	size_t at = (size_t)(uintptr_t)base_map_get(&p->by_key, key, sizeof(*key));

	return at ? &p->met[at - 1] : NULL;
}

/* The row of a facility, to which routines of pseudo-images refer. */
static int put_facility(struct counting *c)
{
	struct store_pack *p = c->t->p;
	struct profdb_profile *header;
	int r;

	c->by_name = true;
	store_facility_key(c->ai->facility, &c->key);
	if (base_map_get(&c->t->seen, &c->key, sizeof(c->key)))
		return 0;
	header = profdb_profile_new(PROFDB_DYNAMIC, &(const struct base_id){ 0 }, c->ai->facility);
	r = header ? base_map_set(&c->t->seen, &c->key, sizeof(c->key), p) : -ENOMEM;
	if (r >= 0) {
		struct analysis_image ai = { .kind = PROFDB_DYNAMIC,
					     .profile = header,
					     .name = c->ai->facility };

		r = store_pack_image(p, &c->key, &ai, NULL);
	}
	profdb_profile_free(header);
	return r;
}

static int count_image(struct totals *t, struct analysis_image *ai)
{
	const char *label = profdb_profile_word(ai->profile, "label");
	struct counting c = { .t = t, .ai = ai, .l = labelled_of(t, label ? label : "") };
	struct store_met *met;
	int r = c.l ? 0 : -ENOMEM;

	store_image_key(ai->profile, t->p->platform, &c.key);
	met = met_of(t->p, &c.key);
	analysis_image_open(t->a, ai, &c.img, NULL);
	if (r >= 0 && met && !met->named) {
		r = store_pack_image(t->p, &c.key, ai, c.img);
		met->named = true;
	}
	if (r >= 0 && ai->facility)
		r = put_facility(&c);
	if (r >= 0)
		r = count_entries(&c);
	image_close(c.img);
	return r;
}

/* Images whose profiles were taken together with another's get a row too. */
static int put_others(struct store_pack *p, struct analysis *a)
{
	int r = 0;

	for (size_t i = 0; i < p->nr_met && r >= 0; i++) {
		struct store_met *m = &p->met[i];
		struct analysis_image ai = { .kind = profdb_profile_kind(m->header),
					     .profile = m->header,
					     .name = NULL };
		struct image *img = NULL;

		if (m->named)
			continue;
		analysis_image_open(a, &ai, &img, NULL);
		r = store_pack_image(p, &m->key, &ai, img);
		image_close(img);
		free(ai.name);
		free(ai.facility);
	}
	return r;
}

/* ---- rows --------------------------------------------------------------------------------------
 */

static int compare(const void *pa, const void *pb)
{
	const struct routine *a = pa, *b = pb;

	return (a->number > b->number) - (a->number < b->number);
}

static int put_counts(const struct labelled *l, size_t event, struct base_buf *row)
{
	size_t nr = 0;
	int r;

	for (size_t i = 0; i < l->nr; i++)
		nr += l->v[i].count[event] != 0;
	r = base_buf_append_leb128(row, nr);
	for (size_t i = 0; i < l->nr && r >= 0; i++)
		if (l->v[i].count[event])
			r = base_buf_append_le(row, l->v[i].number, 8);
	if (r >= 0)
		r = base_buf_append_leb128(row, nr);
	for (size_t i = 0; i < l->nr && r >= 0; i++)
		if (l->v[i].count[event])
			r = base_buf_append_le(row, l->v[i].count[event], 8);
	return r;
}

/* The part of the time in which the event was counted, in millionths. */
static uint64_t enabled_of(const struct analysis_event *e)
{
	return e->sum && e->whole > 0 ? (uint64_t)(1e6 * (double)e->sum / e->whole + 0.5) : 1000000;
}

static int put_row(struct totals *t, const struct labelled *l, size_t event)
{
	struct store_pack *p = t->p;
	struct base_buf *row = &p->out->rows[STORE_TOTALS];
	size_t from = row->len;
	uint64_t sum = 0;
	int r = store_put_text(row, t->a->events[event].name);

	for (size_t i = 0; i < l->nr; i++)
		sum += l->v[i].count[event];
	if (r >= 0)
		r = store_put_text(row, l->label);
	if (r >= 0)
		r = base_buf_append_le(row, p->begin, 4);
	if (r >= 0)
		r = store_put_text(row, p->name);
	if (r >= 0)
		r = store_pack_keyed(p, STORE_TOTALS, from);
	if (r >= 0)
		r = base_buf_append_le(row, p->ver, 8);
	if (r >= 0)
		r = base_buf_append_le(row, t->a->events[event].period, 8);
	if (r >= 0)
		r = base_buf_append_le(row, enabled_of(&t->a->events[event]), 4);
	if (r >= 0)
		r = base_buf_append_le(row, sum, 8);
	return r < 0 ? r : put_counts(l, event, row);
}

static int put_rows(struct totals *t)
{
	int r = 0;

	for (size_t i = 0; i < t->nr && r >= 0; i++) {
		qsort(t->v[i].v, t->v[i].nr, sizeof(*t->v[i].v), compare);
		for (size_t e = 0; e < t->a->nr_events && r >= 0; e++)
			r = put_row(t, &t->v[i], e);
	}
	return r;
}

static void release(struct totals *t)
{
	for (size_t i = 0; i < t->nr; i++) {
		free(t->v[i].label);
		free(t->v[i].v);
		base_map_release(&t->v[i].by_number);
	}
	free(t->v);
	base_map_release(&t->seen);
	analysis_close(t->a);
}

int store_pack_totals(struct store_pack *p)
{
	const struct analysis_selection sel = {
		.db = p->path, .epoch = p->epoch, .platform = p->platform, .by_label = true
	};
	struct totals t = { .p = p };
	int r = analysis_open(&sel, &t.a, p->err);

	for (size_t i = 0; r >= 0 && i < t.a->nr_images; i++)
		r = count_image(&t, t.a->images[i]);
	if (r >= 0)
		r = put_others(p, t.a);
	if (r >= 0)
		r = put_rows(&t);
	release(&t);
	return r;
}
