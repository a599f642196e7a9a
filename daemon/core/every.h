/* SPDX-License-Identifier: BSD-2-Clause */
/* When a daemon begins an epoch by itself (every.c; dcpid -epoch_every). */
#ifndef DCPI_DAEMON_EVERY_H
#define DCPI_DAEMON_EVERY_H

#include "base.h"

enum { EVERY_DAY = 86400 };

/* Seconds of "1h", "30m", …, or 0 of "off" or NULL, into *@out: whole minutes, at most a week. 0 or
 * -DCPI_EUSAGE. */
int every_parse(const char *text, int64_t *out, struct base_err *err);
/*
 * Whether the epoch that began at @began (UTC seconds, as its name says) is over at @now, as epochs
 * begin at the multiples of @every seconds of UTC. A clock that was set back is waited for, but not
 * for more than a day. 0 for @every: never.
 */
static inline bool every_is_due(int64_t every, int64_t began, int64_t now)
{
	return every && (began > now + EVERY_DAY || now / every > began / every);
}

#endif
