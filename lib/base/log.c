/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages are printed and kept here. */
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "base.h"

static FILE *log_to;
static enum base_log_level log_max = BASE_LOG_INFO;
static enum base_log_form log_form;

void base_log_init(FILE *to, enum base_log_level max, enum base_log_form form)
{
	log_to = to;
	log_max = max;
	log_form = form;
}

/* The last lines, in a ring; NULL: none are kept. */
static char (*kept)[BASE_LOG_KEPT_LEN + 1];
static size_t nr_kept; /* since the beginning */

static const char *stamp(char *text, size_t len)
{
	struct timespec now;
	struct tm tm;

	text[0] = '\0';
	clock_gettime(CLOCK_REALTIME, &now);
	if (!gmtime_r(&now.tv_sec, &tm) || !strftime(text, len, "%Y-%m-%dT%H:%M:%SZ ", &tm))
		text[0] = '\0';
	return text;
}

void base_log_keep(void)
{
	if (!kept)
		kept = calloc(BASE_LOG_KEPT, sizeof(*kept));
}

const char *base_log_kept(size_t index)
{
	size_t nr = nr_kept < BASE_LOG_KEPT ? nr_kept : BASE_LOG_KEPT;

	return index < nr ? kept[(nr_kept - nr + index) % BASE_LOG_KEPT] : NULL;
}

static void keep(const char *when, const char *level, const char *text)
{
	if (kept && snprintf(kept[nr_kept % BASE_LOG_KEPT], sizeof(*kept), "%s%s: %s", when, level,
			     text) >= 0)
		nr_kept++;
}

void base_log(enum base_log_level level, const char *fmt, ...)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	static const int priorities[] = { 3, 4, 6, 7 }; /* syslog(3)'s */
	FILE *to = log_to ? log_to : stderr;
	char text[4096], when[40];
	va_list args;

	if (level > log_max || level > BASE_LOG_DEBUG)
		return;
	va_start(args, fmt);
	if (vsnprintf(text, sizeof(text), fmt, args) < 0)
		text[0] = '\0';
	va_end(args);
	base_text_clean(text);
	/* Other threads have their line before or after. */
	flockfile(to);
	stamp(when, sizeof(when));
	keep(when, names[level], text);
	if (log_form == BASE_LOG_JOURNAL)
		fprintf(to, "<%d>%s\n", priorities[level], text);
	else
		fprintf(to, "%s%s: %s\n", log_form == BASE_LOG_STAMPS ? when : "", names[level],
			text);
	/* A log is read while, and because, its program is in trouble. */
	fflush(to);
	funlockfile(to);
}
