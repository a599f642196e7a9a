/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The quota of <db>/dyn. Over it, a child without rights removes what no epoch refers to; where
 * that does not suffice, dynamic code that is not on disk yet is refused, until there is room
 * again.
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon_core.h"
#include "gc_child.h"

/* After a run that found nothing to remove, which reads the whole database; each time twice as
 * long. */
#define FIRST_WAIT_NS (300 * 1000000000ull)
#define LAST_WAIT_NS  (3600 * 1000000000ull)

/* When an epoch last came or went. */
static uint64_t epochs_time(const struct daemon *d)
{
	struct stat st;

	if (fstat(profdb_dir_fd(d->db), &st) < 0)
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
}

static bool is_worth_it(const struct daemon *d)
{
	return base_now_ns() >= d->quota.next_ns || epochs_time(d) != d->quota.epochs_ns;
}

static void put_off(struct daemon *d)
{
	struct quota *q = &d->quota;

	if (!q->over || q->len < q->tried_len)
		q->wait_ns = 0;
	else if (!q->wait_ns)
		q->wait_ns = FIRST_WAIT_NS;
	else if (q->wait_ns < LAST_WAIT_NS)
		q->wait_ns = 2 * q->wait_ns < LAST_WAIT_NS ? 2 * q->wait_ns : LAST_WAIT_NS;
	q->next_ns = base_now_ns() + q->wait_ns;
}

static void start(struct daemon *d)
{
	const struct gc_config config = { .quota = d->quota.max };
	struct quota *q = &d->quota;

	/* What lives may get samples yet. */
	dyn_spare_images(d->dyn);
	q->tried_len = q->len;
	q->epochs_ns = epochs_time(d);
	q->child = gc_child_start(d->opt.database, &config, NULL);
	if (q->child < 0)
		base_log(BASE_LOG_WARN, "cannot remove pseudo-images: %s", base_strerror(q->child));
}

/* ---- the quota ------------------------------------------------------------------------------- */

static void measure(struct daemon *d)
{
	struct quota *q = &d->quota;
	size_t nr;

	if (gc_measure(d->db, &q->len, &nr) < 0)
		return;
	q->over = q->len > q->max;
	dyn_set_full(d->dyn, q->over);
}

/* The child has done what it could. */
static void tell(struct quota *q, bool failed)
{
	if (q->over && !q->told)
		base_log(BASE_LOG_WARN,
			 "pseudo-images take %llu bytes, more than -quota allows, and %s: new "
			 "dynamic code is refused; remove old epochs",
			 (unsigned long long)q->len,
			 failed ? "none could be removed ('dcpid -gc' says why)"
				: "epochs refer to them");
	else if (!q->over && q->told)
		base_log(BASE_LOG_INFO, "there is room for pseudo-images again");
	q->told = q->over;
}

static void take_child(struct daemon *d, int flags)
{
	struct quota *q = &d->quota;
	int status = 0;

	if (q->child <= 0 || waitpid(q->child, &status, flags) != q->child)
		return;
	q->child = 0;
	measure(d);
	put_off(d);
	tell(q, status != 0);
}

void quota_turn(struct daemon *d)
{
	take_child(d, WNOHANG);
}

void quota_check(struct daemon *d)
{
	struct quota *q = &d->quota;
	struct dyn_stats stats = { 0 };

	if (!q->max)
		return;
	dyn_stats_get(d->dyn, &stats);
	take_child(d, WNOHANG);
	if (q->checked && !q->over && stats.images_written == q->images_written)
		return;
	q->checked = true;
	q->images_written = stats.images_written;
	measure(d);
	if (!q->over)
		tell(q, false);
	else if (q->child <= 0 && is_worth_it(d))
		start(d);
	/* Of a recorded stream all comes at once. */
	if (!d->attrib.live)
		take_child(d, 0);
}

void quota_close(struct daemon *d)
{
	if (d->quota.child <= 0)
		return;
	kill(d->quota.child, SIGKILL);
	waitpid(d->quota.child, NULL, 0);
	d->quota.child = 0;
}
