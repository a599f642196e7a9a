/* SPDX-License-Identifier: BSD-2-Clause */
/* When the day's housekeeping is due (dcpid -gc_daily). */
#ifndef DCPI_DAEMON_DAILY_H
#define DCPI_DAEMON_DAILY_H

#include "base.h"

struct daily {
	int64_t last; /* UTC: it was done, or need not be done for what was before; 0: not known */
	int64_t offset; /* of UTC from the time since boot, when looked at last */
	int64_t first;	/* seconds since boot at the first look */
	bool looked;
};

/* The last time up to @now that was 03:00, local time, and @spread seconds (below two hours: so
 * that machines do not all do it at once). */
int64_t daily_slot(int64_t now, uint32_t spread);
/*
 * Was there such a time since it was done last? If @s does not know when that was, or it would be
 * to come, it counts as done now; so it does when the clock has jumped, for by a wrong clock every
 * epoch may be old. Nothing is due in the ten minutes after the first look, within which a clock
 * that is wrong at boot is put right. @boot: seconds since boot, suspended ones too.
 */
bool daily_is_due(struct daily *s, int64_t now, int64_t boot, uint32_t spread);

#endif
