/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <time.h>

#include "base.h"

static FILE *log_to;
static enum base_log_level log_max = BASE_LOG_INFO;
static bool log_stamps;

void base_log_init(FILE *to, enum base_log_level max, bool stamps)
{
	log_to = to;
	log_max = max;
	log_stamps = stamps;
}

static const char *stamp(char *text, size_t len)
{
	struct timespec now;
	struct tm tm;

	text[0] = '\0';
	if (!log_stamps)
		return text;
	clock_gettime(CLOCK_REALTIME, &now);
	if (!gmtime_r(&now.tv_sec, &tm) || !strftime(text, len, "%Y-%m-%dT%H:%M:%SZ ", &tm))
		text[0] = '\0';
	return text;
}

void base_log(enum base_log_level level, const char *fmt, ...)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
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
	fprintf(to, "%s%s: %s\n", stamp(when, sizeof(when)), names[level], text);
	/* A log is read while, and because, its program is in trouble. */
	fflush(to);
}
