/* SPDX-License-Identifier: BSD-2-Clause */
/* Times are read as users write them, in the local time zone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "when.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };
/* The end of the year 9999. */
#define LAST_UTC 253402300799

/* The rest of a text; @at stays where it was if something else stands there. */
struct text {
	const char *at;
};

static bool take(struct text *t, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(t->at, word, len) != 0)
		return false;
	t->at += len;
	return true;
}

/* @min to @max digits. */
static bool take_number(struct text *t, size_t min, size_t max, int64_t *out)
{
	size_t len = strspn(t->at, "0123456789");

	if (len < min || len > max)
		return false;
	*out = strtoll(t->at, NULL, 10);
	t->at += len;
	return true;
}

/* ---- the parts of a time --------------------------------------------------------------------- */

/* A calendar's day, and the time of the day where it was given. */
struct civil {
	int year, month, day, hour, minute, second;
	bool timed, utc;
};

static bool take_date(struct text *t, struct civil *c)
{
	struct text own = *t;
	int64_t year, month, day;

	if (!take_number(&own, 4, 4, &year) || !take(&own, "-") ||
	    !take_number(&own, 2, 2, &month) || !take(&own, "-") || !take_number(&own, 2, 2, &day))
		return false;
	c->year = (int)year;
	c->month = (int)month;
	c->day = (int)day;
	*t = own;
	return true;
}

static bool take_clock(struct text *t, struct civil *c)
{
	struct text own = *t;
	int64_t hour, minute, second = 0;

	if (!take_number(&own, 1, 2, &hour) || !take(&own, ":") ||
	    !take_number(&own, 2, 2, &minute) ||
	    (take(&own, ":") && !take_number(&own, 2, 2, &second)))
		return false;
	c->hour = (int)hour;
	c->minute = (int)minute;
	c->second = (int)second;
	c->timed = true;
	*t = own;
	return true;
}

/* The date of @now, some days before. */
static bool set_day(struct civil *c, int64_t now, int back)
{
	time_t t = (time_t)now;
	struct tm tm;

	if (!localtime_r(&t, &tm))
		return false;
	/* Noon is in every day. */
	tm.tm_mday -= back;
	tm.tm_hour = 12;
	tm.tm_isdst = -1;
	t = mktime(&tm);
	if (!localtime_r(&t, &tm))
		return false;
	c->year = tm.tm_year + 1900;
	c->month = tm.tm_mon + 1;
	c->day = tm.tm_mday;
	return true;
}

/* A day by name or date, a time of the day, or both. */
static bool take_civil(const char *text, int64_t now, struct civil *c)
{
	struct text t = { text };
	bool day = true;

	if (take(&t, "yesterday"))
		day = set_day(c, now, 1);
	else if (take(&t, "today"))
		day = set_day(c, now, 0);
	else if (!take_date(&t, c))
		return set_day(c, now, 0) && take_clock(&t, c) && !*t.at;
	if (!day || !*t.at)
		return day;
	if (!take(&t, " ") && !take(&t, "T"))
		return false;
	if (!take_clock(&t, c))
		return false;
	c->utc = take(&t, "Z");
	return !*t.at;
}

static bool is_day(const struct civil *c)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (c->year % 4 == 0 && c->year % 100) || c->year % 400 == 0;

	return c->year >= 1970 && c->month >= 1 && c->month <= 12 && c->day >= 1 &&
	       c->day <= days[c->month - 1] + (leap && c->month == 2);
}

static struct tm tm_of(const struct civil *c, int isdst)
{
	return (struct tm){ .tm_year = c->year - 1900,
			    .tm_mon = c->month - 1,
			    .tm_mday = c->day,
			    .tm_hour = c->hour,
			    .tm_min = c->minute,
			    .tm_sec = c->second,
			    .tm_isdst = isdst };
}

/* Whether the clock showed this, if it is @isdst. */
static bool local(const struct civil *c, int isdst, int64_t *out)
{
	struct tm tm = tm_of(c, isdst);
	time_t t = mktime(&tm);

	*out = (int64_t)t;
	return tm.tm_mday == c->day && tm.tm_hour == c->hour && tm.tm_min == c->minute &&
	       (isdst < 0 || (tm.tm_isdst > 0) == isdst);
}

/* A time that the clock passed over is none; one that it showed twice is two. */
static int resolve(const struct civil *c, bool last, int64_t *out)
{
	int64_t summer, winter;
	bool is_summer, is_winter;

	if (c->utc) {
		struct tm tm = tm_of(c, 0);

		*out = (int64_t)timegm(&tm);
		return 0;
	}
	is_summer = local(c, 1, &summer);
	is_winter = local(c, 0, &winter);
	if (is_summer && is_winter)
		*out = (summer < winter) == last ? winter : summer;
	else if (is_summer || is_winter)
		*out = is_summer ? summer : winter;
	else
		return local(c, -1, out) ? 0 : -ENOENT;
	return 0;
}

/* A day may begin later than at midnight, where the clock was set ahead then. */
static int first_of_day(struct civil *c, int64_t *out)
{
	int r = -ENOENT;

	for (int minute = 0; r == -ENOENT && minute <= 3 * MINUTE; minute += 15) {
		c->hour = minute / MINUTE;
		c->minute = minute % MINUTE;
		r = resolve(c, false, out);
	}
	return r;
}

/* ---- what was meant -------------------------------------------------------------------------- */

static int unreadable(const char *text, struct base_err *err)
{
	base_fail(err, -DCPI_EUSAGE, "'%.60s' is no time", text);
	base_hint(err, "give one as " WHEN_FORMS);
	return -DCPI_EUSAGE;
}

static int no_such(const char *text, const char *why, const char *hint, struct base_err *err)
{
	base_fail(err, -DCPI_EUSAGE, "time '%.60s': %s", text, why);
	base_hint(err, "%s", hint);
	return -DCPI_EUSAGE;
}

static int parse_civil(const char *text, int64_t now, bool last, int64_t *out, struct base_err *err)
{
	struct civil c = { 0 };
	int r;

	if (!take_civil(text, now, &c))
		return unreadable(text, err);
	if (!is_day(&c))
		return no_such(text, "there is no such day",
			       "a date is YEAR-MONTH-DAY, from 1970 on", err);
	if (c.hour > 23 || c.minute > 59 || c.second > 59)
		return no_such(text, "no clock shows this",
			       "a time of the day is from 00:00 to 23:59:59", err);
	r = c.timed ? resolve(&c, last, out) : first_of_day(&c, out);
	if (r < 0)
		return no_such(text, "the clock was set ahead over it",
			       "give an earlier or later one, or UTC: 2026-11-26T10:00:00Z", err);
	return 0;
}

static int64_t unit(char c)
{
	return c == 's'	  ? 1
	       : c == 'm' ? MINUTE
	       : c == 'h' ? HOUR
	       : c == 'd' ? DAY
	       : c == 'w' ? (int64_t)7 * DAY
			  : 0;
}

int when_span(const char *text, int64_t *out)
{
	struct text t = { text };
	int64_t nr;

	if (!take_number(&t, 1, 9, &nr) || !nr || !*t.at || !unit(*t.at) || t.at[1])
		return -EINVAL;
	*out = nr * unit(*t.at);
	return 0;
}

int when_parse(const char *text, int64_t now, bool last, int64_t *out, struct base_err *err)
{
	struct text t = { text };
	int64_t span = 0, at = now;
	int r = 0;

	if (take(&t, "-")) {
		r = when_span(t.at, &span) < 0 ? unreadable(text, err) : 0;
		at = r < 0 ? at : now - span;
	} else if (take(&t, "@")) {
		if (!take_number(&t, 1, 12, &at) || *t.at || at > LAST_UTC)
			r = unreadable(text, err);
	} else if (strcmp(text, "now") != 0) {
		r = parse_civil(text, now, last, &at, err);
	}
	if (r < 0)
		return r;
	if (at < 0)
		return no_such(text, "it is before 1970", "no samples are so old", err);
	if (at > now)
		return no_such(
			text, "it is in the future",
			"for a day before name it, as 'yesterday 10:00'; without -until all up "
			"to now is taken",
			err);
	*out = at;
	return 0;
}

int when_window(const char *since, const char *until, int64_t now, struct when_window *out,
		struct base_err *err)
{
	int r = 0;

	*out = (struct when_window){ INT64_MIN, INT64_MAX };
	if (since)
		r = when_parse(since, now, false, &out->since, err);
	if (r >= 0 && until)
		r = when_parse(until, now, true, &out->until, err);
	if (r < 0 || out->since < out->until)
		return r;
	base_fail(err, -DCPI_EUSAGE, "-until '%.60s' is not later than -since '%.60s'", until,
		  since ? since : "");
	base_hint(err, "a date is the first instant of its day: the whole of yesterday is -since "
		       "yesterday -until today");
	return -DCPI_EUSAGE;
}

const char *when_text(int64_t utc, char out[WHEN_TEXT])
{
	time_t t = (time_t)utc;
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(out, WHEN_TEXT, "%Y-%m-%d %H:%M:%S %Z", &tm))
		snprintf(out, WHEN_TEXT, "@%lld", (long long)utc);
	return out;
}
