/* SPDX-License-Identifier: BSD-2-Clause */
/* The ASCII header of a profile file is parsed here, in all versions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profdb_internal.h"

/* Words and values of a profile's header are checked here, and times are made into epochs' names.
 */

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

/* Normalize 10 (century guessed), 12 or 14 digits to 12 or 14. 0 or -EINVAL. */
static int profdb_epoch_normalize(const char *text, char time[PROFDB_TIME_LEN + 1])
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

/* Whether values of @word have a meaning here; those of other words are kept byte for byte. */
static bool profdb_word_is_known(const char *word)
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

struct header {
	struct profdb_profile *p;
	enum profdb_format format;
	uint32_t seen;	 /* bit per row of known[] */
	size_t line;	 /* number, from 1 */
	char blank;	 /* behind the line's word */
	char event[256]; /* version 0: kept until the period is known too */
	uint64_t period;
	double enabled;
	struct base_err *err;
};

static int bad_value(struct header *h, const char *word, const char *value, const char *what)
{
	return base_fail(h->err, -DCPI_EFORMAT, "line %zu: value '%.40s' of '%s' is no %s", h->line,
			 value, word, what);
}

static int take_version(struct header *h, char *value)
{
	if (h->format == PROFDB_FORMAT_1 && h->line == 1)
		return 0; /* seen by choose_format */
	if (!strcmp(value, "0.07") && h->format != PROFDB_FORMAT_1)
		return 0;
	if (!strcmp(value, "0.06") && h->format != PROFDB_FORMAT_1) {
		h->format = PROFDB_FORMAT_0_06;
		return 0;
	}
	base_fail(h->err, -DCPI_EVERSION, "profile format version '%.40s' is not supported", value);
	if (!strncmp(value, "1.", 2))
		base_hint(h->err, "version 1.01 of the original DCPI was never published; its own "
				  "dcpicat reads it");
	if (!strncmp(value, "dcpi-dynamic ", 13))
		base_hint(h->err, "a newer DCPI wrote this profile");
	return -DCPI_EVERSION;
}

/* "0" alone is "no identity"; an odd number of digits gets a zero in front. */
static int take_image(struct header *h, char *value)
{
	char even[2 * sizeof(h->p->image.bytes) + 2] = "0";
	size_t len = strlen(value);

	if (!strcmp(value, "0"))
		return 0;
	if (len > 2 * sizeof(h->p->image.bytes))
		return bad_value(h, "image", value, "identity of at most 64 digits");
	strcpy(even + len % 2, value);
	if (base_id_parse(&h->p->image, even, len + len % 2) < 0)
		return bad_value(h, "image", value, "hexadecimal identity");
	return 0;
}

static int take_kind(struct header *h, char *value)
{
	int r = profdb_kind_find(value);

	if (r < 0)
		return bad_value(h, "kind", value, "known kind");
	h->p->kind = (enum profdb_kind)r;
	return 0;
}

static int take_path(struct header *h, char *value)
{
	if (h->p->nr_paths >= PROFDB_NR_PATHS)
		return base_fail(h->err, -DCPI_ELIMIT, "line %zu: more than %d paths", h->line,
				 PROFDB_NR_PATHS);
	return profdb_profile_add_path(h->p, value);
}

static int take_epoch(struct header *h, char *value)
{
	char time[PROFDB_TIME_LEN + 1];

	if (profdb_epoch_normalize(value, time) < 0)
		return bad_value(h, "epoch", value, "time YYYYMMDDHHMMSS");
	return profdb_profile_add_line(h->p, "epoch", time);
}

/* "0.25", "1.000000": at most six digits after the point, at most 1. */
static int parse_fraction(const char *text, double *out)
{
	size_t whole = strspn(text, "0123456789"), part = 0;
	uint32_t v = 0;

	if (text[whole] == '.')
		part = strspn(text + whole + 1, "0123456789");
	if (whole != 1 || part > 6 || text[whole + (part ? 1 + part : 0)] || *text > '1')
		return -EINVAL;
	for (size_t i = 0; i < 6; i++)
		v = v * 10 + (i < part ? (uint32_t)(text[2 + i] - '0') : 0);
	if (*text == '1' && v)
		return -EINVAL;
	*out = *text == '1' ? 1 : v / 1e6;
	return 0;
}

static int take_enabled(struct header *h, char *value)
{
	if (parse_fraction(value, &h->enabled) < 0)
		return bad_value(h, "enabled", value, "fraction");
	return 0;
}

static int take_period(struct header *h, char *value)
{
	if (profdb_number_parse(value, 10, &h->period) < 0)
		return bad_value(h, "period", value, "number");
	return 0;
}

static int add_event(struct header *h, const char *name, uint64_t period, double enabled)
{
	int r;

	if (profdb_profile_event_find(h->p, name) >= 0)
		return base_fail(h->err, -DCPI_EFORMAT, "line %zu: event '%s' stands twice",
				 h->line, name);
	r = profdb_profile_event_add(h->p, name, period);
	if (r == -EINVAL)
		return bad_value(h, "event", name, "event of 1 to 31 characters");
	if (r >= 0)
		h->p->events[r].enabled = enabled;
	return r < 0 ? base_fail_errno(h->err, r, "line %zu: event '%.40s'", h->line, name) : 0;
}

/* "NAME period N enabled F" */
static int take_event1(struct header *h, char *value)
{
	char *save = NULL, *name = strtok_r(value, " \t", &save);
	char *period_word = strtok_r(NULL, " \t", &save), *period = strtok_r(NULL, " \t", &save);
	char *enabled_word = strtok_r(NULL, " \t", &save), *enabled = strtok_r(NULL, " \t", &save);
	double fraction;
	uint64_t n;

	if (!enabled || strcmp(period_word, "period") || strcmp(enabled_word, "enabled") ||
	    strtok_r(NULL, " \t", &save) || profdb_number_parse(period, 10, &n) < 0 ||
	    parse_fraction(enabled, &fraction) < 0)
		return base_fail(h->err, -DCPI_EFORMAT,
				 "line %zu: not 'event NAME period N enabled F'", h->line);
	return add_event(h, name, n, fraction);
}

/* Names of the original may have blanks; ours, standing in columns, have none. */
static int take_event0(struct header *h, char *value)
{
	for (char *c = value; *c; c++) {
		if (*c == ' ' || *c == '\t')
			*c = '_';
	}
	if (!profdb_event_name_ok(value))
		return bad_value(h, "event", value, "event of 1 to 31 characters");
	strcpy(h->event, value);
	return 0;
}

static int take_event(struct header *h, char *value)
{
	return h->format == PROFDB_FORMAT_1 ? take_event1(h, value) : take_event0(h, value);
}

enum { ONCE0 = 1, ONCE1 = 2, NEED0 = 4, NEED1 = 8, NOT1 = 16 };

/* Once, needed, not allowed: in version 0 or 1. The rest are words as any other. */
static const struct known {
	const char *word;
	int (*take)(struct header *h, char *value);
	unsigned int flags;
} known[] = {
	{ "version", take_version, ONCE0 | ONCE1 | NEED1 },
	{ "image", take_image, ONCE0 | ONCE1 | NEED0 | NEED1 },
	{ "kind", take_kind, ONCE0 | ONCE1 | NEED1 },
	{ "path", take_path, 0 },
	{ "epoch", take_epoch, ONCE0 | ONCE1 | NEED0 },
	{ "event", take_event, ONCE0 | NEED0 },
	{ "period", take_period, ONCE0 | NEED0 | NOT1 },
	{ "enabled", take_enabled, ONCE0 | NOT1 },
	{ "platform", NULL, ONCE0 | ONCE1 | NEED0 },
	{ "tsize", NULL, ONCE0 | ONCE1 | NEED0 },
	{ "cpuspeed", NULL, ONCE0 | ONCE1 | NEED0 },
};

enum { NR_KNOWN = sizeof(known) / sizeof(known[0]) };

static bool has(const struct header *h, const struct known *k, unsigned int flag0,
		unsigned int flag1)
{
	return k->flags & (h->format == PROFDB_FORMAT_1 ? flag1 : flag0);
}

static int add_line(struct header *h, const char *word, const char *value)
{
	int r = profdb_profile_add_line(h->p, word, value);

	if (r >= 0)
		h->p->lines[h->p->nr_lines - 1].blank = h->blank;
	return r == -EINVAL ? bad_value(h, word, value, "proper value") : r;
}

static int take_word(struct header *h, const char *word, char *value)
{
	for (size_t i = 0; i < NR_KNOWN; i++) {
		const struct known *k = &known[i];

		if (strcmp(k->word, word))
			continue;
		if (has(h, k, 0, NOT1))
			return base_fail(h->err, -DCPI_EFORMAT,
					 "line %zu: no line '%s' in version 1", h->line, word);
		if (has(h, k, ONCE0, ONCE1) && h->seen & 1u << i)
			return base_fail(h->err, -DCPI_EFORMAT, "line %zu: '%s' stands twice",
					 h->line, word);
		h->seen |= 1u << i;
		if (k->take)
			return k->take(h, value);
		break;
	}
	return add_line(h, word, value);
}

/* Version 1 writes bytes that would break a line as \xHH, and the backslash double. In place. */
static int unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		char hex[3] = { 0 };
		uint64_t v;

		if (*text != '\\') {
			*to++ = *text;
			continue;
		}
		if (*++text == '\\') {
			*to++ = '\\';
			continue;
		}
		if (*text != 'x' || !text[1] || !text[2])
			return -DCPI_EFORMAT;
		memcpy(hex, text + 1, 2);
		if (profdb_number_parse(hex, 16, &v) < 0 || !v)
			return -DCPI_EFORMAT;
		*to++ = (char)v;
		text += 2;
	}
	*to = '\0';
	return 0;
}

/* @text: one line without its newline, changed. 1: it was the last. */
static int take_line(struct header *h, char *text)
{
	size_t len = strlen(text), word_len = strcspn(text, " \t");
	char *value;

	h->blank = text[word_len];
	/* In version 0 a line of an unknown word is kept as it is: its blanks may mean something.
	 */
	if (strspn(text + word_len, " \t") < len - word_len && h->format != PROFDB_FORMAT_1) {
		text[word_len] = '\0';
		if (word_len && !profdb_word_is_known(text))
			return add_line(h, text, text + word_len + 1);
		text[word_len] = h->blank;
	}
	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		text[--len] = '\0';
	if (!strcmp(text, "samples"))
		return 1;
	if (!word_len || word_len >= len)
		return base_fail(h->err, -DCPI_EFORMAT, "line %zu: not a word and its value",
				 h->line);
	text[word_len] = '\0';
	value = text + word_len + 1;
	value += strspn(value, " \t");
	if (h->format == PROFDB_FORMAT_1 && unescape(value) < 0)
		return base_fail(h->err, -DCPI_EFORMAT, "line %zu: malformed escape", h->line);
	return take_word(h, text, value);
}

/* Copies the line at @pos into @line; where the next one begins, or negative. */
static int64_t next_line(struct header *h, const uint8_t *data, size_t len, size_t pos,
			 struct base_buf *line)
{
	size_t limit = len < PROFDB_HEADER_MAX ? len : PROFDB_HEADER_MAX;
	const uint8_t *end = pos < limit ? memchr(data + pos, '\n', limit - pos) : NULL;
	size_t n = end ? (size_t)(end - data) - pos : limit - pos;

	h->line++;
	if (n && memchr(data + pos, 0, n))
		return base_fail(h->err, -DCPI_EFORMAT, "line %zu: not text", h->line);
	if (!end && limit == len)
		return base_fail(h->err, -DCPI_ETRUNCATED, "header ends before its line 'samples'");
	if (!end)
		return base_fail(h->err, -DCPI_EFORMAT, "header longer than %u bytes",
				 PROFDB_HEADER_MAX);
	base_buf_clear(line);
	if (base_buf_append(line, data + pos, n) < 0 || base_buf_append(line, "", 1) < 0)
		return -ENOMEM;
	return (int64_t)(pos + n + 1);
}

/* Check that the version 0 header is consistent with its only event. */
static int finish(struct header *h)
{
	for (size_t i = 0; i < NR_KNOWN; i++) {
		if (has(h, &known[i], NEED0, NEED1) && !(h->seen & 1u << i))
			return base_fail(h->err, -DCPI_EFORMAT, "header has no line '%s'",
					 known[i].word);
	}
	return h->format == PROFDB_FORMAT_1 ? 0 : add_event(h, h->event, h->period, h->enabled);
}

/* Only the very first line makes a file one of version 1. */
static void choose_format(struct header *h, const uint8_t *data, size_t len)
{
	size_t n = strlen(PROFDB_VERSION1_LINE);

	if (len > n && !memcmp(data, PROFDB_VERSION1_LINE "\n", n + 1))
		h->format = PROFDB_FORMAT_1;
}

static int take_lines(struct header *h, const uint8_t *data, size_t len, size_t *binary)
{
	struct base_buf line = { 0 };
	int64_t next = 0;
	int r = 0;

	while (r == 0) {
		next = next_line(h, data, len, (size_t)next, &line);
		r = next < 0 ? (int)next : take_line(h, (char *)line.data);
	}
	*binary = (size_t)next;
	base_buf_release(&line);
	return r < 0 ? r : finish(h);
}

int profdb_header_parse(const uint8_t *data, size_t len, struct profdb_profile **out,
			size_t *binary, enum profdb_format *format, struct base_err *err)
{
	struct header h = { .format = PROFDB_FORMAT_0_07, .enabled = 1, .err = err };
	int r = -ENOMEM;

	h.p = profdb_profile_new(PROFDB_FILE, NULL, NULL);
	if (h.p) {
		choose_format(&h, data, len);
		r = take_lines(&h, data, len, binary);
	}
	if (r < 0) {
		profdb_profile_free(h.p);
		return base_fail_errno(err, r, "cannot read a profile's header");
	}
	*format = h.format;
	*out = h.p;
	return 0;
}
