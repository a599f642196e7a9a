/* SPDX-License-Identifier: BSD-2-Clause */
/* An epoch of one platform becomes rows: of its profile files, its images, and the sums by routine,
 * which are for questions about whole fleets. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_internal.h"

enum { TRIES = 5, EM_NOTHING = 0 };

int store_pack_open(struct profdb *db, const char *path, struct store_pack **out,
		    struct base_err *err)
{
	struct store_pack *p = calloc(1, sizeof(*p));

	if (!p || !(p->path = strdup(path))) {
		free(p);
		return base_fail_errno(err, -ENOMEM, "cannot pack '%s'", path);
	}
	p->db = db;
	*out = p;
	return 0;
}

void store_pack_close(struct store_pack *p)
{
	if (!p)
		return;
	free(p->path);
	free(p);
}

/* Does the store have it, or this try? Else it is noted as one that this try has. 1, 0, -ENOMEM. */
static int offered(struct store_pack *p, const void *key, size_t len)
{
	uint8_t nr = (uint8_t)len;
	int r;

	if (base_map_get(&p->offered, key, len) ||
	    (p->how->has && p->how->has(p->how->known, key, len)))
		return 1;
	r = base_map_set(&p->offered, key, len, p);
	if (r >= 0)
		r = base_buf_append(&p->offers, &nr, 1);
	return r < 0 ? r : base_buf_append(&p->offers, key, len);
}

/* The rows are whole: the store has these keys once it has the rows. */
static void tell_offers(struct store_pack *p)
{
	const struct base_buf *b = &p->offers;

	for (size_t at = 0; p->how->sent && at < b->len; at += 1 + (size_t)b->data[at])
		p->how->sent(p->how->known, b->data + at + 1, b->data[at]);
}

/* ---- images that were met -------------------------------------------------------------------- */

static struct profdb_profile *header_of(const struct profdb_profile *p)
{
	const char *text = profdb_profile_word(p, "text"), *path, *identity;
	struct profdb_profile *copy = profdb_profile_new(
		profdb_profile_kind(p), profdb_profile_image(p), profdb_profile_path(p, 0));
	int r = copy ? 0 : -ENOMEM;

	for (size_t i = 1; r >= 0 && (path = profdb_profile_path(p, i)); i++)
		r = profdb_profile_add_path(copy, path);
	if (r >= 0 && text)
		r = profdb_profile_set_word(copy, "text", text);
	identity = profdb_profile_word(p, "identity");
	if (r >= 0 && identity)
		r = profdb_profile_set_word(copy, "identity", identity);
	if (r < 0) {
		profdb_profile_free(copy);
		return NULL;
	}
	return copy;
}

/* The image of this profile is in the epoch: notes it once. 0 or -ENOMEM. */
static int meet(struct store_pack *p, const struct profdb_profile *profile)
{
	struct store_met new = { 0 };
	int r;

	store_image_key(profile, p->platform, &new.key);
	if (base_map_get(&p->by_key, &new.key, sizeof(new.key)))
		return 0;
	r = base_grow(&p->met, &p->cap_met, p->nr_met + 1, sizeof(*p->met));
	if (r < 0 || !(new.header = header_of(profile)))
		return -ENOMEM;
	p->met[p->nr_met++] = new;
	return base_map_set(&p->by_key, &new.key, sizeof(new.key), (void *)(uintptr_t)p->nr_met);
}

static void forget(struct store_pack *p)
{
	for (size_t i = 0; i < p->nr_met; i++)
		profdb_profile_free(p->met[i].header);
	free(p->met);
	p->met = NULL;
	p->nr_met = p->cap_met = 0;
	base_map_release(&p->by_key);
	base_map_release(&p->rows);
	base_map_release(&p->offered);
	base_buf_release(&p->offers);
}

/* ---- keys of rows ---------------------------------------------------------------------------- */

/* The row of table @t that has begun at @from has its key now: notes that. 0 or negative. */
static int keyed(struct store_pack *p, enum store_table_nr t, size_t from)
{
	const struct base_buf *rows = &p->out->rows[t];
	const struct store_row_key key = { t, rows->data + from, rows->len - from };
	int r = p->how->row ? p->how->row(p->how->ctx, &key) : 0;

	return r < 0 || !p->how->nr_before ? r : base_map_set(&p->rows, key.data, key.len, p);
}

/* A row without samples: what follows the key is a version, and nothing else. */
static int put_empty(struct store_pack *p, const struct store_row_key *key)
{
	static const uint8_t nothing[32];
	struct base_buf *row = &p->out->rows[key->table];
	size_t len = key->table == STORE_PROF ? 8 + 4 + 1 + 8 + 8 : 8 + 4 + 8 + 2;
	int r = base_buf_append(row, key->data, key->len);

	if (r >= 0)
		r = base_buf_append_le(row, p->ver, 8);
	return r < 0 ? r : base_buf_append(row, nothing, len);
}

static int put_gone(struct store_pack *p)
{
	int r = 0;

	for (size_t i = 0; i < p->how->nr_before && r >= 0; i++) {
		const struct store_row_key *key = &p->how->before[i];

		if (!base_map_get(&p->rows, key->data, key->len))
			r = put_empty(p, key);
	}
	return r;
}

/* ---- rows of profiles ------------------------------------------------------------------------ */

static int put_entries(const struct profdb_profile *profile, size_t event, struct base_buf *row)
{
	struct store_offsets x = { .nr = 0 };
	int r = 0;

	for (size_t i = 0; i < profdb_profile_nr_entries(profile) && r >= 0; i++) {
		const struct profdb_entry *e = profdb_profile_entry(profile, i);

		if (e->count[event])
			r = store_offsets_add(&x, e->off, e->count[event]);
	}
	if (r >= 0)
		r = base_buf_append(row, "\0", 2); /* off and n, which version 1 had */
	if (r >= 0)
		r = store_offsets_put(&x, row);
	store_offsets_release(&x);
	return r;
}

static int put_profile(struct store_pack *p, const char *file, const struct profdb_profile *profile,
		       size_t event)
{
	const struct profdb_event *e = profdb_profile_event(profile, event);
	struct base_buf *row = &p->out->rows[STORE_PROF];
	size_t from = row->len;
	struct store_key key;
	int r = store_put_text(row, e->name);

	store_image_key(profile, p->platform, &key);
	if (r >= 0)
		r = base_buf_append(row, key.bytes, sizeof(key.bytes));
	if (r >= 0)
		r = base_buf_append_le(row, p->begin, 4);
	if (r >= 0)
		r = store_put_text(row, p->name);
	if (r >= 0)
		r = store_put_text(row, file);
	if (r >= 0)
		r = keyed(p, STORE_PROF, from);
	if (r >= 0)
		r = base_buf_append_le(row, p->ver, 8);
	if (r >= 0)
		r = base_buf_append_le(row, e->period, 8);
	if (r >= 0)
		r = base_buf_append_le(row, (uint64_t)(e->enabled * 1e6 + 0.5), 4);
	if (r >= 0)
		r = store_put_text(row, profdb_profile_word(profile, "label"));
	if (r >= 0)
		r = base_buf_append_le(row, e->sum, 8);
	return r < 0 ? r : put_entries(profile, event, row);
}

static int take_profile(void *ctx, const char *file, struct profdb_profile *profile)
{
	struct store_pack *p = ctx;
	int r = meet(p, profile);

	for (size_t i = 0; i < profdb_profile_nr_events(profile) && r >= 0; i++)
		r = put_profile(p, file, profile, i);
	profdb_profile_free(profile);
	return r < 0 ? r : 0;
}

static void take_bad(void *ctx, const char *file, const struct base_err *why)
{
	struct store_pack *p = ctx;

	if (p->how->bad)
		p->how->bad(p->how->ctx, file, why);
}

/* ---- images on call paths alone -------------------------------------------------------------- */

/* A call path does not tell which file it means where files have one build-id but other code. */
static bool is_forged(const struct store_pack *p, const struct profdb_image_ref *ref)
{
	for (size_t i = 0; i < p->nr_met; i++) {
		const struct profdb_profile *h = p->met[i].header;

		if (profdb_profile_word(h, "text") && profdb_profile_kind(h) == ref->kind &&
		    base_id_equal(profdb_profile_image(h), &ref->id))
			return true;
	}
	return false;
}

static int meet_ref(struct store_pack *p, const struct profdb_image_ref *ref)
{
	struct profdb_profile *profile =
		profdb_profile_new(ref->kind, &ref->id, ref->stem ? ref->stem : ref->path);
	int r = profile ? meet(p, profile) : -ENOMEM;

	profdb_profile_free(profile);
	return r;
}

/* It follows the profiles, which know their images better. */
static int meet_callers(struct store_pack *p)
{
	struct profdb_callpaths *c;
	int r = profdb_callpaths_load(p->db, p->epoch, p->platform, &c, NULL);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; i < profdb_callpaths_nr_images(c) && r >= 0; i++) {
		const struct profdb_image_ref *ref = profdb_callpaths_image(c, i);

		if (!is_forged(p, ref))
			r = meet_ref(p, ref);
	}
	profdb_callpaths_free(c);
	return r;
}

/* ---- contents of images ---------------------------------------------------------------------- */

/* Pseudo-images and kernels are files of the database; all others are found by their path. */
static int read_content(const struct store_pack *p, enum profdb_kind kind, const struct image *img,
			struct base_buf *out)
{
	const char *name = base_path_name(image_path(img));
	int fd = kind == PROFDB_DYNAMIC ? profdb_dyn_fd(p->db) : profdb_kernel_fd(p->db);

	if (kind != PROFDB_DYNAMIC && kind != PROFDB_KERNEL && kind != PROFDB_VDSO)
		return -ENOENT;
	return fd < 0 ? fd : base_file_read(fd, name, STORE_CONTENT_MAX, out, NULL);
}

static int put_content(struct store_pack *p, const struct store_key *key,
		       const struct base_buf *bytes)
{
	struct base_buf *row = &p->out->rows[STORE_CONTENT];
	int r = offered(p, key->bytes, sizeof(key->bytes));

	if (r != 0)
		return r < 0 ? r : 0;
	r = base_buf_append(row, key->bytes, sizeof(key->bytes));
	if (r >= 0)
		r = base_buf_append_le(row, 1, 8);
	return r < 0 ? r : store_put_string(row, bytes->data, bytes->len);
}

/* ---- symbols --------------------------------------------------------------------------------- */

struct symbols {
	struct base_buf names, offs, lens;
	uint64_t nr;
};

static int add_symbols(struct symbols *s, struct image *img)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < image_nr_symbols(img) && s->nr < STORE_SYMBOLS_MAX; i++) {
		const struct image_symbol *symbol = image_symbol(img, i);
		uint64_t off;

		if (image_off(img, symbol->vaddr, &off) < 0)
			continue;
		s->nr++;
		r = store_put_text(&s->names, symbol->name);
		if (r >= 0)
			r = base_buf_append_le(&s->offs, off, 8);
		if (r >= 0)
			r = base_buf_append_le(&s->lens, symbol->len, 8);
	}
	return r;
}

int store_put_symbols(struct base_buf *row, struct image *img)
{
	struct symbols s = { 0 };
	int r = img ? add_symbols(&s, img) : 0;

	if (r >= 0)
		r = store_put_array(row, s.nr, &s.names);
	if (r >= 0)
		r = store_put_array(row, s.nr, &s.offs);
	if (r >= 0)
		r = store_put_array(row, s.nr, &s.lens);
	base_buf_release(&s.names);
	base_buf_release(&s.offs);
	base_buf_release(&s.lens);
	return r;
}

/* ---- an image's row -------------------------------------------------------------------------- */

/* The file's name in a database; kernels' too, as profiles do not have it. */
static const char *stem_of(const struct analysis_image *ai, const struct image *img)
{
	return img && ai->kind != PROFDB_FILE && ai->kind != PROFDB_NAMED
		       ? base_path_name(image_path(img))
		       : NULL;
}

static int put_head(struct base_buf *row, const struct analysis_image *ai)
{
	char id[BASE_ID_TEXT_LEN];
	const struct profdb_profile *p = ai->profile;
	int r = store_put_text(row, profdb_kind_name(ai->kind));

	if (r >= 0)
		r = store_put_text(row, base_id_text(profdb_profile_image(p), id));
	if (r >= 0)
		r = store_put_text(row, profdb_profile_path(p, 0));
	if (r >= 0)
		r = store_put_text(row, profdb_profile_word(p, "text"));
	return r < 0 ? r : store_put_text(row, ai->facility ? ai->facility : ai->name);
}

static int put_image_row(struct store_pack *p, const struct store_key *key, uint64_t ver,
			 struct analysis_image *ai, struct image *img,
			 const struct store_key *content, bool has_content)
{
	struct base_buf *row = &p->out->rows[STORE_IMAGE];
	int r = base_buf_append(row, key->bytes, sizeof(key->bytes));

	if (r >= 0)
		r = base_buf_append_le(row, ver, 8);
	if (r >= 0)
		r = put_head(row, ai);
	if (r >= 0)
		r = store_put_text(row, stem_of(ai, img));
	if (r >= 0)
		r = base_buf_append(row, content->bytes, sizeof(content->bytes));
	if (r >= 0)
		r = base_buf_append_le(row, img ? image_machine(img) : EM_NOTHING, 4);
	return r < 0 ? r : store_put_symbols(row, has_content ? NULL : img);
}

/*
 * The row that tells more counts: with more symbols, or with the larger contents; of a pseudo-image
 * the later one, which has all that an earlier one has.
 */
static uint64_t version_of(const struct store_pack *p, const struct analysis_image *ai,
			   struct image *img, const struct base_buf *bytes)
{
	if (!img)
		return 0;
	if (ai->kind == PROFDB_DYNAMIC)
		return p->ver;
	return bytes->len ? bytes->len : image_nr_symbols(img) + 1;
}

/* Tells apart the rows of one image that a store may need. */
static void image_row_key(const struct store_key *key, const struct store_key *content,
			  uint64_t detail, struct store_key *out)
{
	struct {
		struct store_key key, content;
		uint64_t detail;
	} all = { *key, *content, detail };

	store_content_key(&all, sizeof(all), out);
}

static int put_image(struct store_pack *p, const struct store_key *key, struct analysis_image *ai,
		     struct image *img, const struct base_buf *bytes)
{
	struct store_key content = { { 0 } }, row;
	int r;

	if (bytes->len)
		store_content_key(bytes->data, bytes->len, &content);
	image_row_key(key, &content, img ? image_nr_symbols(img) + 1 : 0, &row);
	r = offered(p, row.bytes, sizeof(row.bytes));
	if (r != 0)
		return r < 0 ? r : 0;
	if (bytes->len)
		r = put_content(p, &content, bytes);
	return r < 0 ? r
		     : put_image_row(p, key, version_of(p, ai, img, bytes), ai, img, &content,
				     bytes->len);
}

/* The row of the image @ai, which the store lacks; @img is NULL where it could not be opened. */
static int pack_image(struct store_pack *p, const struct store_key *key, struct analysis_image *ai,
		      struct image *img)
{
	struct base_buf bytes = { 0 };
	int r = 0;

	if (img)
		r = read_content(p, ai->kind, img, &bytes);
	r = r == -ENOMEM ? r : put_image(p, key, ai, img, &bytes);
	base_buf_release(&bytes);
	return r;
}

/* ---- sums of routines ------------------------------------------------------------------------ */

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
	int r = offered(p, &number, sizeof(number));

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

/* ---- sums of one image's routines ------------------------------------------------------------ */

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

		r = pack_image(p, &c->key, &ai, NULL);
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
		r = pack_image(t->p, &c.key, ai, c.img);
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
		r = pack_image(p, &m->key, &ai, img);
		image_close(img);
		free(ai.name);
		free(ai.facility);
	}
	return r;
}

/* ---- rows of these sums ---------------------------------------------------------------------- */

static int compare_routines(const void *pa, const void *pb)
{
	const struct routine *a = pa, *b = pb;

	return (a->number > b->number) - (a->number < b->number);
}

static int put_routine_counts(const struct labelled *l, size_t event, struct base_buf *row)
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

static int put_totals_row(struct totals *t, const struct labelled *l, size_t event)
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
		r = keyed(p, STORE_TOTALS, from);
	if (r >= 0)
		r = base_buf_append_le(row, p->ver, 8);
	if (r >= 0)
		r = base_buf_append_le(row, t->a->events[event].period, 8);
	if (r >= 0)
		r = base_buf_append_le(row, enabled_of(&t->a->events[event]), 4);
	if (r >= 0)
		r = base_buf_append_le(row, sum, 8);
	return r < 0 ? r : put_routine_counts(l, event, row);
}

static int put_totals(struct totals *t)
{
	int r = 0;

	for (size_t i = 0; i < t->nr && r >= 0; i++) {
		qsort(t->v[i].v, t->v[i].nr, sizeof(*t->v[i].v), compare_routines);
		for (size_t e = 0; e < t->a->nr_events && r >= 0; e++)
			r = put_totals_row(t, &t->v[i], e);
	}
	return r;
}

static void totals_release(struct totals *t)
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

/* Rows of images, their symbols, contents, and the sums of their routines. 0 or negative. */
static int pack_totals(struct store_pack *p)
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
		r = put_totals(&t);
	totals_release(&t);
	return r;
}

/* ---- an epoch -------------------------------------------------------------------------------- */

static int pack(struct store_pack *p)
{
	int r;

	/* Where the clock was set back, a later flush still counts more. */
	p->written = profdb_epoch_written(p->db, p->epoch, p->platform);
	p->ver = p->written > p->how->above ? p->written : p->how->above + 1;
	r = profdb_walk(p->db, p->epoch, p->platform, take_profile, take_bad, p, p->err);
	if (r >= 0)
		r = meet_callers(p);
	if (r >= 0)
		r = pack_totals(p);
	if (r >= 0)
		r = store_pack_work(p);
	if (r >= 0)
		r = put_gone(p);
	return r;
}

int store_pack_epoch(struct store_pack *p, const char *epoch, const char *platform,
		     const struct store_pack_how *how, struct store_batch *out,
		     struct base_err *err)
{
	struct store_batch batch = { 0 };
	int64_t begin = profdb_epoch_begin_time(epoch);
	bool same = false;
	int r = 0;

	p->epoch = epoch;
	p->platform = platform;
	p->name = how->rename ? how->rename : platform;
	p->begin = begin > 0 && begin < UINT32_MAX ? (uint32_t)begin : 0;
	p->how = how;
	p->out = &batch;
	p->err = err;
	for (int i = 0; i < TRIES && r >= 0 && !same; i++) {
		store_batch_release(&batch);
		r = pack(p);
		same = r >= 0 && profdb_epoch_written(p->db, epoch, platform) == p->written;
		if (same)
			tell_offers(p);
		forget(p);
	}
	if (r >= 0 && !same)
		r = base_fail(err, -EAGAIN, "epoch '%s' was written while it was read", epoch);
	if (r >= 0)
		r = store_batch_add(out, &batch);
	if (r >= 0 && how->ver)
		*how->ver = p->ver;
	store_batch_release(&batch);
	return r < 0 ? base_fail_errno(err, r, "cannot pack epoch '%s' of '%s'", epoch, platform)
		     : 0;
}
