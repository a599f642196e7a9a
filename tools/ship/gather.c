/* SPDX-License-Identifier: BSD-2-Clause */
/* Epochs of a database become batches in the spool, each once, open ones after each flush. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ship.h"

struct gathering {
	struct spool *s;
	struct gather *g;
	struct profdb *db;
	struct store_pack *pack;
	struct base_buf keys; /* of the rows of an epoch, as in its file */
	struct base_map seen; /* the same, each once */
	uint64_t above, ver;  /* the version before, and this one */
	struct store_row_key *before;
	size_t nr_before, cap_before;
};

/* ---- keys of rows that were sent of an open epoch ----------------------------------------------
 */

/* In a file: the highest version that was sent (8 bytes), then of each key its table and length
 * (4 bytes each), and the key. */
static int note_row(void *ctx, const struct store_row_key *key)
{
	struct gathering *x = ctx;
	uint32_t head[2] = { (uint32_t)key->table, (uint32_t)key->len };
	int r;

	if (base_map_get(&x->seen, key->data, key->len))
		return 0;
	r = base_map_set(&x->seen, key->data, key->len, x);
	if (r >= 0)
		r = base_buf_append(&x->keys, head, sizeof(head));
	return r < 0 ? r : base_buf_append(&x->keys, key->data, key->len);
}

static int take_keys(struct gathering *x, const struct base_buf *bytes)
{
	uint32_t head[2];
	size_t at = sizeof(x->above);
	int r = 0;

	x->nr_before = 0;
	x->above = 0;
	base_map_release(&x->seen);
	base_buf_clear(&x->keys);
	if (bytes->len >= at)
		memcpy(&x->above, bytes->data, at);
	while (r >= 0 && bytes->len > at && bytes->len - at >= sizeof(head)) {
		memcpy(head, bytes->data + at, sizeof(head));
		at += sizeof(head);
		if (head[0] >= STORE_NR_SENT || head[1] > bytes->len - at)
			break;
		r = base_grow(&x->before, &x->cap_before, x->nr_before + 1, sizeof(*x->before));
		if (r >= 0) {
			x->before[x->nr_before] =
				(struct store_row_key){ (enum store_table_nr)head[0],
							bytes->data + at, head[1] };
			r = note_row(x, &x->before[x->nr_before++]);
		}
		at += head[1];
	}
	return r;
}

/* ---- one epoch ---------------------------------------------------------------------------------
 */

static void on_bad(void *ctx, const char *file, const struct base_err *why)
{
	struct gathering *x = ctx;

	(void)file;
	fprintf(stderr, "%s: warning: %s\n", x->g->prog, why->text);
}

/* The keys come first: a row that was never sent may become empty, the other way it would stay. */
static int write_keys(struct gathering *x, const char *epoch, const char *platform,
		      struct base_err *err)
{
	struct base_buf file = { 0 };
	char name[128];
	int r = base_buf_append(&file, &x->ver, sizeof(x->ver));

	if (r >= 0)
		r = base_buf_append(&file, x->keys.data, x->keys.len);
	spool_keys_name(epoch, platform, name);
	if (r >= 0)
		r = base_file_write(x->s->dir_fd, name, 0600, file.data, file.len, err);
	base_buf_release(&file);
	return r;
}

/*
 * The batch is made, then it is noted, then others may see it. A kill in between leaves a batch
 * that is finished at the next start, or one that is not noted: it is made anew then.
 */
static int put(struct gathering *x, const char *epoch, const char *platform,
	       const struct gather_parts *parts, const struct store_batch *b, struct base_err *err)
{
	char name[SPOOL_NAME];
	int r = spool_hold(x->s, epoch, platform, x->ver, b, name, err);

	if (r < 0)
		return r;
	if (!parts)
		r = write_keys(x, epoch, platform, err);
	else if (parts->nr)
		r = spool_set_joined(x->s, epoch, platform, parts->nr, err);
	else
		r = spool_set_shipped(x->s, epoch, platform, err);
	if (r < 0) {
		spool_drop(x->s, name);
		return r;
	}
	r = spool_show(x->s, name, err);
	return r < 0 ? r : known_keep(&x->s->known, err);
}

/* Rows that earlier flushes sent stay among the keys, as a batch of theirs may come last. @parts is
 * NULL of an epoch that is still written. */
static int pack(struct gathering *x, const char *epoch, const char *platform,
		const struct gather_parts *parts, struct base_err *err)
{
	struct store_pack_how how = { .row = note_row, .bad = on_bad, .ver = &x->ver, .ctx = x };
	struct store_batch b = { 0 };
	struct base_buf before = { 0 };
	char name[128];
	int r;

	spool_keys_name(epoch, platform, name);
	r = base_file_read(x->s->dir_fd, name, 1 << 28, &before, NULL);
	r = r == -ENOMEM ? r : take_keys(x, &before);
	how.before = x->before;
	how.nr_before = x->nr_before;
	how.above = x->above;
	if (r >= 0)
		r = store_pack_epoch(x->pack, epoch, platform, &how, &b, err);
	if (r >= 0)
		r = put(x, epoch, platform, parts, &b, err);
	if (r < 0)
		known_drop(&x->s->known);
	store_batch_release(&b);
	base_buf_release(&before);
	x->g->packed += r >= 0;
	return r < 0 ? base_fail_errno(err, r, "cannot pack '%s/%s'", epoch, platform) : 0;
}

/* An epoch that is written goes again when its last flush is another one. */
static void flush_name(struct gathering *x, const char *epoch, const char *platform, char key[160])
{
	snprintf(key, 160, "%s/%s@%" PRIu64, epoch, platform,
		 profdb_epoch_written(x->db, epoch, platform));
}

int gather_parts(const struct spool *s, struct profdb *db, const char *epoch, const char *platform,
		 struct gather_parts *out, struct base_err *err)
{
	char **parts = profdb_epoch_parts(db, epoch, err);

	*out = (struct gather_parts){ 0 };
	for (size_t i = 0; parts && parts[i]; i++) {
		char *slash = strchr(parts[i], '/');

		if (!slash || strcmp(slash + 1, platform) != 0)
			continue;
		*slash = 0;
		out->nr++;
		out->shipped += spool_is_shipped(s, parts[i], platform);
		out->begun += spool_is_begun(s, parts[i], platform);
	}
	free(parts);
	return parts ? 0 : -EIO;
}

static int leave_out(struct gathering *x, const char *epoch, const char *platform,
		     const struct gather_parts *parts, struct base_err *err)
{
	if (parts->shipped < parts->nr)
		fprintf(stderr,
			"%s: warning: '%s/%s' is left out: some of the epochs that became a part "
			"of it were sent "
			"before\n",
			x->g->prog, epoch, platform);
	return spool_leave_out(x->s, epoch, platform, err);
}

/* An epoch that is still written is packed after each flush. The flush is that before packing: one
 * that comes meanwhile is packed again. */
static int ship_open(struct gathering *x, const char *epoch, const char *platform,
		     struct base_err *err)
{
	char key[160];
	int r;

	flush_name(x, epoch, platform, key);
	if (base_map_get(&x->s->shipped, key, strlen(key)))
		return 0;
	r = pack(x, epoch, platform, NULL, err);
	return r < 0 ? r : base_map_set(&x->s->shipped, key, strlen(key), x);
}

static int ship_finished(struct gathering *x, const char *epoch, const char *platform,
			 struct base_err *err)
{
	struct gather_parts parts;
	int r = gather_parts(x->s, x->db, epoch, platform, &parts, err);

	/* A joined epoch's samples must not count twice. */
	if (r >= 0 && parts.nr && spool_is_joined(x->s, epoch, platform, parts.nr))
		return 0;
	if (r >= 0 && parts.begun)
		return leave_out(x, epoch, platform, &parts, err);
	if (r < 0 || spool_is_shipped(x->s, epoch, platform))
		return r;
	return pack(x, epoch, platform, &parts, err);
}

static int ship(struct gathering *x, const char *epoch, const char *platform, struct base_err *err)
{
	if (spool_is_left_out(x->s, epoch, platform))
		return 0;
	if (!profdb_epoch_open(x->db, epoch, platform))
		return ship_finished(x, epoch, platform, err);
	return x->g->open ? ship_open(x, epoch, platform, err) : 0;
}

/* An epoch that cannot be packed, or has just been removed, does not hold up the others. A failure
 * that each of them would meet does. */
static int ship_one(struct gathering *x, const char *epoch, const char *platform,
		    struct base_err *err)
{
	struct base_err why = { 0 };
	int r = ship(x, epoch, platform, &why);

	if (r >= 0)
		return 0;
	if (r == -ENOSPC || r == -ENOMEM || r == -EROFS || r == -EDQUOT) {
		*err = why;
		return r;
	}
	fprintf(stderr, "%s: warning: %s\n", x->g->prog, why.code ? why.text : base_strerror(r));
	return 0;
}

int gather_check_name(const struct gather *g, const char *epoch, char *const *platforms,
		      struct base_err *err)
{
	if (!g->as || g->platform || !platforms[0] || !platforms[1])
		return 0;
	base_fail(err, -DCPI_EUSAGE, "cannot name all platforms of epoch '%s' '%s'", epoch, g->as);
	base_hint(err, "choose one of them: -platform '%s'", platforms[0]);
	return -DCPI_EUSAGE;
}

static int ship_platforms(struct gathering *x, const char *epoch, struct base_err *err)
{
	char **platforms = profdb_platforms(x->db, epoch, NULL);
	int r = platforms ? gather_check_name(x->g, epoch, platforms, err) : 0;

	for (size_t i = 0; r >= 0 && platforms && platforms[i]; i++)
		if (!x->g->platform || strcmp(platforms[i], x->g->platform) == 0)
			r = ship_one(x, epoch, platforms[i], err);
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
	for (size_t i = 0; r >= 0 && epochs[i] && !(g->stop && *g->stop); i++)
		r = ship_platforms(&x, epochs[i], err);
	free(epochs);
	free(x.before);
	base_buf_release(&x.keys);
	base_map_release(&x.seen);
	store_pack_close(x.pack);
	profdb_close(x.db);
	return r < 0 ? base_fail_errno(err, r, "cannot pack '%s'", db) : 0;
}
