/* SPDX-License-Identifier: BSD-2-Clause */
/* An epoch of one platform becomes rows: here those of its profile files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store_internal.h"

enum { TRIES = 5 };

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

void store_pack_rename(struct store_pack *p, const char *platform)
{
	p->rename = platform;
}

void store_pack_known(struct store_pack *p, bool (*has)(void *ctx, const void *key, size_t len),
		      void (*sent)(void *ctx, const void *key, size_t len), void *ctx)
{
	p->has = has;
	p->sent = sent;
	p->known_ctx = ctx;
}

int store_pack_offered(struct store_pack *p, const void *key, size_t len)
{
	uint8_t nr = (uint8_t)len;
	int r;

	if (base_map_get(&p->offered, key, len) || (p->has && p->has(p->known_ctx, key, len)))
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

	for (size_t at = 0; p->sent && at < b->len; at += 1 + (size_t)b->data[at])
		p->sent(p->known_ctx, b->data + at + 1, b->data[at]);
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

int store_pack_meet(struct store_pack *p, const struct profdb_profile *profile)
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

/* ---- keys of rows --------------------------------------------------------------------------- */

int store_pack_keyed(struct store_pack *p, enum store_table_nr t, size_t from)
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
		r = store_pack_keyed(p, STORE_PROF, from);
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
	int r = store_pack_meet(p, profile);

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

/* ---- images on call paths alone ---------------------------------------------------------------
 */

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
	int r = profile ? store_pack_meet(p, profile) : -ENOMEM;

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

/* ---- an epoch ----------------------------------------------------------------------------------
 */

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
		r = store_pack_totals(p);
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
	p->name = p->rename ? p->rename : platform;
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
