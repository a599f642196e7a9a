/* SPDX-License-Identifier: BSD-2-Clause */
/* The quota of pseudo-images and the day's maintenance, as the loop and each flush have them done.
 */
#include "budget.h"
#include "core.h"

static uint64_t written(const struct daemon *d)
{
	struct dyn_stats stats = { 0 };

	dyn_stats_get(d->dyn, &stats);
	return stats.images_written + stats.files_kept;
}

static void tell_full(struct daemon *d)
{
	const struct quota *q = &d->quota;

	budget_clear(d->budgets, BUDGET_IMAGES);
	for (size_t i = 0; i < q->nr_users; i++)
		budget_take(d->budgets, q->users[i].uid, BUDGET_IMAGES, q->users[i].len,
			    UINT64_MAX);
	dyn_set_full(d->dyn, q->over, quota_share(q));
}

void daemon_keep_quota(struct daemon *d)
{
	if (quota_check(&d->quota, written(d))) {
		/* Processes that live may get samples yet. */
		dyn_spare_images(d->dyn);
		/* A recorded stream comes at once. */
		quota_start(&d->quota, !d->follow.live);
	}
	tell_full(d);
}

void daemon_maintain(struct daemon *d)
{
	quota_turn(&d->quota);
	tell_full(d);
	/* Users may write much up to the next flush. */
	if (quota_is_due(&d->quota, written(d)))
		daemon_keep_quota(d);
	if (d->gone_ns || !daily_turn(&d->daily))
		return;
	/* Processes that live may get samples yet. */
	dyn_spare_images(d->dyn);
	daily_start(&d->daily);
}
