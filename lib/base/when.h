/* SPDX-License-Identifier: BSD-2-Clause */
/* Times as users write them: "10:00", "yesterday 10:00", "2026-11-26T10:00:00Z", "-15m", … */
#ifndef DCPI_WHEN_H
#define DCPI_WHEN_H

#include "base.h"

/* A window of time [since, until), UTC seconds. */
struct when_window {
	int64_t since, until; /* INT64_MIN, INT64_MAX: without that end */
};

/* The forms that when_parse takes, for the help of options. */
#define WHEN_FORMS                                                                                 \
	"10:00, 'yesterday 10:00', 2026-11-26, '2026-11-26 10:00', -15m, -2h, -3d, @SECONDS"

/*
 * The instant that @text means at @now, into *@out: a clock time of today, a date (its first
 * instant), both; "today", "yesterday", "now"; with a unit s, m, h, d or w and a minus how long
 * before @now; with @ UTC seconds. Times are of the local time zone, with a Z at their end of UTC.
 * A time that the clock showed twice is the first one, or if @last the last one. 0, or
 * -DCPI_EUSAGE with @err and a hint: unreadable, no such day or time, later than @now.
 */
int when_parse(const char *text, int64_t now, bool last, int64_t *out, struct base_err *err);
/* Both ends of a window, NULL: not given. -DCPI_EUSAGE also where it would be empty. */
int when_window(const char *since, const char *until, int64_t now, struct when_window *out,
		struct base_err *err);
/* "2026-11-26 10:00:00 CET", local time. */
enum { WHEN_TEXT = 64 };
const char *when_text(int64_t utc, char out[WHEN_TEXT]);
/* "1h", "30m", "90s", "2d" as seconds, above 0; @out stays where it is none. 0 or -EINVAL. */
int when_span(const char *text, int64_t *out);

#endif
