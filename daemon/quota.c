/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The quota of <db>/dyn. Over it, a child without rights removes what no epoch refers to; where
 * that does not suffice, dynamic code that is not on disk yet is refused, until there is room
 * again.
 */
#include <signal.h>
#include <sys/wait.h>

#include "daemon_core.h"
#include "gc_child.h"

static void start(struct daemon *d)
{
	const struct gc_config config = { .quota = d->quota.max };
	struct quota *q = &d->quota;

	/* What lives may get samples yet. */
	dyn_spare_images(d->dyn);
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
	else if (q->child <= 0)
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
