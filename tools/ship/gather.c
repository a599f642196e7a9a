/* SPDX-License-Identifier: BSD-2-Clause */
/* Epochs of a database become batches in the spool, each once, open ones after each flush. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ship.h"

struct gathering {
	struct spool *s;
	struct gather *g;
	struct profdb *db;
	struct store_pack *pack;
	struct base_buf keys; /* of the rows of an open epoch: table, length, key */
	struct store_row_key *before;
	size_t nr_before, cap_before;
};

/* ---- keys of rows that were sent of an open epoch ----------------------------------------------
 */

static int note_row(void *ctx, const struct store_row_key *key)
{
	struct gathering *x = ctx;
	uint32_t head[2] = { (uint32_t)key->table, (uint32_t)key->len };
	int r = base_buf_append(&x->keys, head, sizeof(head));

	return r < 0 ? r : base_buf_append(&x->keys, key->data, key->len);
}

static int take_keys(struct gathering *x, const struct base_buf *bytes)
{
	uint32_t head[2];
	size_t at = 0;

	x->nr_before = 0;
	while (bytes->len - at >= sizeof(head)) {
		memcpy(head, bytes->data + at, sizeof(head));
		at += sizeof(head);
		if (head[0] >= STORE_NR_TABLES || head[1] > bytes->len - at)
			return 0;
		if (base_grow(&x->before, &x->cap_before, x->nr_before + 1, sizeof(*x->before)) < 0)
			return -ENOMEM;
		x->before[x->nr_before++] = (struct store_row_key){ (enum store_table_nr)head[0],
								    bytes->data + at, head[1] };
		at += head[1];
	}
	return 0;
}

static void keys_name(const char *epoch, const char *platform, char name[128])
{
	snprintf(name, 128, "open-%s-%s", epoch, platform);
}

/* ---- one epoch ---------------------------------------------------------------------------------
 */

static void on_bad(void *ctx, const char *file, const struct base_err *why)
{
	struct gathering *x = ctx;

	(void)file;
	fprintf(stderr, "%s: warning: %s\n", x->g->prog, why->text);
}

static int put(struct gathering *x, const char *epoch, const char *platform,
	       const struct store_batch *b, struct base_err *err)
{
	uint64_t ver = profdb_epoch_written(x->db, epoch, platform);
	char name[128];
	int r = 0;

	keys_name(epoch, platform, name);
	/* The keys come first: a row that was never sent may become empty, the other way it would
	 * stay. */
	if (x->g->open)
		r = base_file_write(x->s->dir_fd, name, 0600, x->keys.data, x->keys.len, err);
	if (r >= 0)
		r = spool_put(x->s, epoch, platform, ver, b, err);
	if (r >= 0)
		r = known_keep(&x->s->known, err);
	return r;
}

/* What earlier flushes sent stays among the keys, as a batch of theirs may come last. */
static int pack(struct gathering *x, const char *epoch, const char *platform, struct base_err *err)
{
	struct store_pack_how how = { .row = note_row, .bad = on_bad, .ctx = x };
	struct store_batch b = { 0 };
	struct base_buf before = { 0 };
	char name[128];
	int r;

	keys_name(epoch, platform, name);
	r = base_file_read(x->s->dir_fd, name, 1 << 28, &before, NULL);
	r = r == -ENOMEM ? r : take_keys(x, &before);
	how.before = x->before;
	how.nr_before = x->nr_before;
	base_buf_clear(&x->keys);
	if (r >= 0 && before.len)
		r = base_buf_append(&x->keys, before.data, before.len);
	if (r >= 0)
		r = store_pack_epoch(x->pack, epoch, platform, &how, &b, err);
	if (r >= 0)
		r = put(x, epoch, platform, &b, err);
	if (r < 0)
		known_drop(&x->s->known);
	store_batch_release(&b);
	base_buf_release(&before);
	x->g->packed += r >= 0;
	return r < 0 ? base_fail_errno(err, r, "cannot pack '%s/%s'", epoch, platform) : 0;
}

/* An epoch that is written goes again when its last flush is another one. */
static bool has_changed(struct gathering *x, const char *epoch, const char *platform)
{
	char key[160];
	uint64_t ver = profdb_epoch_written(x->db, epoch, platform);

	snprintf(key, sizeof(key), "%s/%s@%" PRIu64, epoch, platform, ver);
	return !base_map_get(&x->s->shipped, key, strlen(key)) &&
	       base_map_set(&x->s->shipped, key, strlen(key), x) >= 0;
}

/* 1: a part of this joined epoch was shipped already, so that its samples would count twice. */
static int is_joined(struct gathering *x, const char *epoch, struct base_err *err)
{
	char **parts = profdb_epoch_parts(x->db, epoch, err);
	int r = parts ? 0 : -EIO;

	for (size_t i = 0; parts && parts[i] && !r; i++)
		r = base_map_get(&x->s->shipped, parts[i], strlen(parts[i])) != NULL;
	free(parts);
	return r;
}

static int ship(struct gathering *x, const char *epoch, const char *platform, struct base_err *err)
{
	bool open = profdb_epoch_open(x->db, epoch, platform);
	int r;

	if (spool_is_shipped(x->s, epoch, platform) || (open && !x->g->open) ||
	    (open && !has_changed(x, epoch, platform)))
		return 0;
	r = is_joined(x, epoch, err);
	if (r > 0)
		fprintf(stderr,
			"%s: warning: '%s/%s' is left out: epochs that became a part of it were "
			"shipped before\n",
			x->g->prog, epoch, platform);
	else if (r == 0)
		r = pack(x, epoch, platform, err);
	return r < 0 || open ? r : spool_set_shipped(x->s, epoch, platform, err);
}

static int ship_platforms(struct gathering *x, const char *epoch, struct base_err *err)
{
	char **platforms = profdb_platforms(x->db, epoch, err);
	int r = platforms ? 0 : -EIO;

	for (size_t i = 0; r >= 0 && platforms[i]; i++)
		if (!x->g->platform || strcmp(platforms[i], x->g->platform) == 0)
			r = ship(x, epoch, platforms[i], err);
	free(platforms);
	return r;
}

int gather_epochs(struct spool *s, const char *db, struct gather *g, struct base_err *err)
{
	struct gathering x = { .s = s, .g = g };
	char **epochs = NULL;
	int r = profdb_open(db, false, &x.db, err);

	g->packed = 0;
	if (r >= 0)
		r = store_pack_open(x.db, db, &x.pack, err);
	if (r >= 0) {
		store_pack_rename(x.pack, g->as);
		store_pack_known(x.pack, known_has, known_add, &s->known);
		epochs = profdb_epochs(x.db, err);
		r = epochs ? 0 : -EIO;
	}
	for (size_t i = 0; r >= 0 && epochs[i]; i++)
		r = ship_platforms(&x, epochs[i], err);
	free(epochs);
	free(x.before);
	base_buf_release(&x.keys);
	store_pack_close(x.pack);
	profdb_close(x.db);
	return r < 0 ? base_fail_errno(err, r, "cannot pack '%s'", db) : 0;
}
