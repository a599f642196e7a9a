/* SPDX-License-Identifier: BSD-2-Clause */
/* The quota of pseudo-images and the day's maintenance, as the loop and each flush have them done.
 */
#include "core.h"

void daemon_keep_quota(struct daemon *d)
{
	struct dyn_stats stats = { 0 };

	dyn_stats_get(d->dyn, &stats);
	if (quota_check(&d->quota, stats.images_written + stats.files_kept)) {
		/* Processes that live may get samples yet. */
		dyn_spare_images(d->dyn);
		/* A recorded stream comes at once. */
		quota_start(&d->quota, !d->follow.live);
	}
	dyn_set_full(d->dyn, d->quota.over);
}

void daemon_maintain(struct daemon *d)
{
	quota_turn(&d->quota);
	dyn_set_full(d->dyn, d->quota.over);
	if (d->gone_ns || !daily_turn(&d->daily))
		return;
	/* Processes that live may get samples yet. */
	dyn_spare_images(d->dyn);
	daily_start(&d->daily);
}
