/* SPDX-License-Identifier: BSD-2-Clause */
/* Words and values of a profile's header are checked here, and times are made into epochs' names.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "profdb_internal.h"

int profdb_number_parse(const char *text, unsigned int base, uint64_t *out)
{
	uint64_t v = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		unsigned int digit = (unsigned int)base_digit(*text); /* none: more than any base */

		if (digit >= base || base_mul_overflow(v, base, &v) ||
		    base_add_overflow(v, digit, &v))
			return -EINVAL;
	}
	*out = v;
	return 0;
}

static bool all_digits(const char *text, size_t len)
{
	return strlen(text) == len && strspn(text, "0123456789") == len;
}

static int two(const char *p)
{
	return (p[0] - '0') * 10 + p[1] - '0';
}

/* Whether the Gregorian calendar has the day YYYYMMDD. */
static bool is_day(const char *date)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year = two(date) * 100 + two(date + 2), month = two(date + 4), day = two(date + 6);
	bool leap = (year % 4 == 0 && year % 100) || year % 400 == 0;

	return month >= 1 && month <= 12 && day >= 1 &&
	       day <= days[month - 1] + (leap && month == 2);
}

static bool is_minute(const char *name)
{
	return is_day(name) && two(name + 8) < 24 && two(name + 10) < 60;
}

bool profdb_epoch_name_ok(const char *name)
{
	return (all_digits(name, PROFDB_EPOCH_MINUTE) && is_minute(name)) ||
	       (all_digits(name, PROFDB_EPOCH_LEN) && is_minute(name) &&
		two(name + PROFDB_EPOCH_MINUTE) < 60);
}

bool profdb_epoch_time_ok(const char *time)
{
	return profdb_epoch_name_ok(time) ||
	       (all_digits(time, PROFDB_TIME_LEN) && is_minute(time) && /* leap second */
		two(time + PROFDB_EPOCH_MINUTE) == 60);
}

int profdb_epoch_normalize(const char *text, char time[PROFDB_TIME_LEN + 1])
{
	char out[PROFDB_TIME_LEN + 1];
	size_t len = strlen(text);

	if (len > PROFDB_TIME_LEN)
		return -EINVAL;
	if (len == 10) /* DCPI is of 1997: two digits of the year below 70 are of this century. */
		snprintf(out, sizeof(out), "%s%.10s", strncmp(text, "70", 2) < 0 ? "20" : "19",
			 text);
	else
		snprintf(out, sizeof(out), "%s", text);
	if (!profdb_epoch_time_ok(out))
		return -EINVAL;
	strcpy(time, out);
	return 0;
}

int profdb_epoch_time(int64_t now, char time[PROFDB_TIME_LEN + 1])
{
	time_t t = (time_t)now;
	struct tm tm;

	if (now < 0 || !gmtime_r(&t, &tm) || tm.tm_year > 9999 - 1900)
		return -EINVAL;
	snprintf(time, PROFDB_TIME_LEN + 1, "%04u%02u%02u%02u%02u%02u", tm.tm_year + 1900u,
		 tm.tm_mon + 1u, tm.tm_mday + 0u, tm.tm_hour + 0u, tm.tm_min + 0u, tm.tm_sec + 0u);
	return 0;
}

int64_t profdb_epoch_begin_time(const char *epoch)
{
	struct tm tm = { 0 };

	if (sscanf(epoch, "%4d%2d%2d%2d%2d%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
		   &tm.tm_min, &tm.tm_sec) < 5)
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return (int64_t)timegm(&tm);
}

static bool is_number(const char *value)
{
	uint64_t v;

	return profdb_number_parse(value, 10, &v) == 0;
}

static bool is_hex(const char *value)
{
	return *value && strspn(value, "0123456789abcdefABCDEF") == strlen(value);
}

/* Decimal like the sizes beside it, or hexadecimal where it says so. */
static bool is_address(const char *value)
{
	uint64_t v;

	if (value[0] == '0' && value[1] == 'x')
		return profdb_number_parse(value + 2, 16, &v) == 0;
	return is_number(value);
}

static const struct {
	const char *word;
	bool (*ok)(
		const char *value); /* NULL: no value at all, the word has functions of its own */
} rules[] = {
	{ "version", NULL },	   { "image", NULL },
	{ "kind", NULL },	   { "path", NULL },
	{ "event", NULL },	   { "period", NULL },
	{ "enabled", NULL },	   { "epoch", profdb_epoch_time_ok },
	{ "tsize", is_number },	   { "tstart", is_address },
	{ "cpuspeed", is_number }, { "cpucount", is_number },
	{ "cpuimplv", is_number }, { "cpuamask", is_hex },
};

static bool word_name_ok(const char *word)
{
	size_t len = 0;

	for (; word[len]; len++) {
		if ((unsigned char)word[len] <= ' ' || word[len] == 0x7f)
			return false;
	}
	return len > 0;
}

bool profdb_event_name_ok(const char *name)
{
	return word_name_ok(name) && strlen(name) < PROFDB_EVENT_NAME;
}

bool profdb_word_is_known(const char *word)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (!strcmp(rules[i].word, word))
			return true;
	}
	return !strcmp(word, "platform") || !strcmp(word, "label");
}

int profdb_word_check(const char *word, const char *value)
{
	if (!word_name_ok(word) || !*value)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (!strcmp(rules[i].word, word))
			return rules[i].ok && rules[i].ok(value) ? 0 : -EINVAL;
	}
	return 0;
}

uint32_t profdb_enabled_millionths(double enabled)
{
	return enabled <= 0 ? 0 : enabled >= 1 ? 1000000 : (uint32_t)(enabled * 1e6 + 0.5);
}
