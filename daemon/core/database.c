/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A database, or its open epoch, that somebody removes while we run. What was meant by it nobody
 * knows: its folder is not made again, samples wait in memory as they do for a full disk, and
 * whoever makes the folder again, or puts a copy back, finds them there.
 */
#include <errno.h>
#include <time.h>

#include "core.h"
#include "image.h"

static int fail_gone(const struct daemon *d, struct base_err *err)
{
	base_fail(err, -ENOENT, "database '%s', or its open epoch, was removed",
		  profdb_path(d->db));
	base_hint(err,
		  "make its folder again, then 'dcpictl flush'; or end the daemon: 'dcpiquit'");
	return -ENOENT;
}

void database_look(struct daemon *d)
{
	if (d->gone_ns || d->finished || !profdb_is_gone(d->db))
		return;
	d->gone_ns = base_now_ns();
	d->flush_error = (struct base_err){ 0 };
	fail_gone(d, &d->flush_error);
	base_log(BASE_LOG_ERROR, "%s: samples wait in memory for a flush that finds its folder",
		 d->flush_error.text);
}

/* ---- it is there again ----------------------------------------------------------------------- */

/* The file is there as it was written. */
static bool is_on_disk(const struct daemon *d, const struct image *img)
{
	struct base_id id;

	return image_identify(profdb_dyn_fd(d->db), img->stem, &id, NULL) >= 0 &&
	       base_id_equal(&id, &img->id);
}

/*
 * Pseudo-images that nobody can make again: who made them has forgotten what was in them. Those of
 * a copy that was put back, or where another part was removed, are there.
 */
static void give_up_images(struct daemon *d)
{
	struct image *img;
	size_t nr = 0;

	for (size_t pos = 0; images_next(d->images, &pos, &img);) {
		if (img->kind != PROFDB_DYNAMIC || !img->id.len || img->behind || img->refused ||
		    is_on_disk(d, img))
			continue;
		img->refused = true;
		nr += img->dirty || img->values;
	}
	if (nr)
		base_log(BASE_LOG_WARN,
			 "%zu pseudo-images of code that is gone were removed: their samples go to "
			 "'%s'",
			 nr, account_bucket_name(ACCOUNT_BUCKET_REFUSED));
}

/* All that was written, and is known of here, is written again when it is needed. */
static void forget_files(struct daemon *d)
{
	dyn_images_lost(d->dyn);
	kernel_images_lost(d->kernel);
	give_up_images(d);
	d->quota.checked = false;
	d->daily.stored = 0;
}

static int reopen(struct daemon *d, struct base_err *err)
{
	int r = profdb_reopen(d->db, err);

	if (r > 0)
		forget_files(d);
	if (r == -EROFS || r == -EACCES || r == -EPERM)
		base_hint(err,
			  "its folder must be writable to the daemon's user; to a service one that "
			  "was made anew is read-only until 'systemctl restart dcpid'");
	d->reopened |= r >= 0;
	return r;
}

int database_find(struct daemon *d, struct base_err *err)
{
	struct base_err own = { 0 };
	int r = 0;

	database_look(d);
	if (!d->gone_ns)
		return 0;
	if (profdb_is_gone(d->db))
		r = reopen(d, &own);
	if (r == -ENOENT)
		return fail_gone(d, err);
	/* Else it was out of reach for a while, and is as it was. */
	if (r >= 0 && d->reopened)
		r = daemon_turn_epoch(d, &own);
	if (r < 0) {
		*err = err->code ? *err : own;
		return r;
	}
	d->gone_ns = 0;
	d->reopened = false;
	base_log(BASE_LOG_INFO, "database '%s' is there again: what waited goes into epoch %s",
		 profdb_path(d->db), d->epoch);
	return 0;
}

/* ---- it stays away --------------------------------------------------------------------------- */

static uint64_t not_on_disk(const struct daemon *d)
{
	struct driver_stats stats = { 0 };
	struct account total;

	driver_stats_get(d->driver, &stats);
	account_total(&d->store.account, &stats, &total);
	return total.pending + daemon_unwritten(d, false);
}

static void give_up(struct account *a, uint64_t unwritten)
{
	a->lost[ACCOUNT_LOST_UNWRITTEN] += unwritten + a->pending;
	a->stored -= unwritten;
	a->pending = 0;
}

int database_give_up(struct daemon *d, const struct base_err *why, struct base_err *err)
{
	uint64_t nr = not_on_disk(d);

	give_up(&d->store.account, daemon_unwritten(d, false));
	give_up(&d->store.times, daemon_unwritten(d, true));
	/* For the next daemon and the tools. */
	if (nr && !d->gone_ns && profdb_epoch_lose(d->db, nr) < 0)
		base_log(BASE_LOG_ERROR, "nor can that be noted in epoch %s", d->epoch);
	if (nr)
		base_fail(err, why->code, "%llu sample%s that waited in memory %s lost: %s",
			  (unsigned long long)nr, nr == 1 ? "" : "s", nr == 1 ? "is" : "are",
			  why->text);
	else
		*err = *why;
	d->finished = true;
	return why->code;
}
