/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exact_internal.h"

/* The next word, and what is behind it. */
static int word(struct exact_text *t, const char **from, size_t *len)
{
	const char *blank;

	if (t->at == t->end)
		return -DCPI_EFORMAT;
	blank = memchr(t->at, ' ', (size_t)(t->end - t->at));
	*from = t->at;
	*len = (size_t)((blank ? blank : t->end) - t->at);
	if (!*len || (blank && blank + 1 == t->end))
		return -DCPI_EFORMAT;
	t->at = blank ? blank + 1 : t->end;
	return 0;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static int number(const char *from, size_t len, unsigned int base, uint64_t *out)
{
	uint64_t v = 0;

	if (!len || (len > 1 && from[0] == '0'))
		return -DCPI_EFORMAT;
	for (size_t i = 0; i < len; i++) {
		unsigned int d = (unsigned int)digit(from[i]);

		if (d >= base || base_mul_overflow(v, base, &v) || base_add_overflow(v, d, &v))
			return -DCPI_EFORMAT;
	}
	*out = v;
	return 0;
}

int exact_text_number(struct exact_text *t, unsigned int base, uint64_t *out)
{
	const char *from;
	size_t len;
	int r = word(t, &from, &len);

	return r < 0 ? r : number(from, len, base, out);
}

int exact_text_signed(struct exact_text *t, int64_t *out)
{
	const char *from;
	uint64_t v;
	size_t len;
	int r = word(t, &from, &len);
	bool minus = r == 0 && *from == '-';

	if (r < 0 || (r = number(from + minus, len - minus, 10, &v)) < 0)
		return r;
	if (v > INT64_MAX)
		return -DCPI_EFORMAT;
	*out = minus ? -(int64_t)v : (int64_t)v;
	return 0;
}

int exact_text_word(struct exact_text *t, char *out, size_t len)
{
	const char *from;
	size_t n;
	int r = word(t, &from, &n);

	if (r < 0 || n >= len)
		return -DCPI_EFORMAT;
	memcpy(out, from, n);
	out[n] = '\0';
	return 0;
}

int exact_text_id(struct exact_text *t, struct base_id *out)
{
	const char *from;
	size_t len;

	*out = (struct base_id){ 0 };
	if (word(t, &from, &len) < 0)
		return -DCPI_EFORMAT;
	if (len == 1 && *from == '-')
		return 0;
	return base_id_parse(out, from, len) < 0 ? -DCPI_EFORMAT : 0;
}

int exact_text_hash(struct exact_text *t, uint8_t out[20])
{
	struct base_id id;

	if (exact_text_id(t, &id) < 0 || id.len != 20)
		return -DCPI_EFORMAT;
	memcpy(out, id.bytes, 20);
	return 0;
}

/* One byte of escaped text: its value, or negative. */
static int unescape(const char **at, const char *end)
{
	const char *p = *at;
	int high, low;

	*at = p + 1;
	if (*p != '\\')
		return (unsigned char)*p;
	if (end - p >= 2 && p[1] == '\\') {
		*at = p + 2;
		return '\\';
	}
	if (end - p < 4 || p[1] != 'x')
		return -DCPI_EFORMAT;
	high = digit(p[2]);
	low = digit(p[3]);
	*at = p + 4;
	return high > 15 || low > 15 || !(high | low) ? -DCPI_EFORMAT : high << 4 | low;
}

int exact_text_rest(struct exact_text *t, char **out)
{
	char *text, *to;
	int c = 0;

	if (t->at == t->end)
		return -DCPI_EFORMAT;
	text = to = malloc((size_t)(t->end - t->at) + 1);
	if (!text)
		return -ENOMEM;
	while (t->at < t->end && (c = unescape(&t->at, t->end)) >= 0)
		*to++ = (char)c;
	*to = '\0';
	if (c < 0) {
		free(text);
		return c;
	}
	*out = text;
	return 0;
}

bool exact_text_is(const struct exact_text *t, const char *name)
{
	size_t len = strlen(name), left = (size_t)(t->end - t->at);

	return left >= len && memcmp(t->at, name, len) == 0 && (left == len || t->at[len] == ' ');
}

int exact_text_put(struct base_buf *out, const char *text)
{
	int r = 0;

	for (; *text && r >= 0; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\\')
			r = base_buf_append(out, "\\\\", 2);
		else if (c < 0x20 || c == 0x7f)
			r = base_buf_printf(out, "\\x%02x", c);
		else
			r = base_buf_append(out, &c, 1);
	}
	return r;
}

int exact_text_put_hex(struct base_buf *out, const uint8_t *bytes, size_t len)
{
	int r = len ? 0 : base_buf_append(out, "-", 1);

	for (size_t i = 0; i < len && r >= 0; i++)
		r = base_buf_printf(out, "%02x", bytes[i]);
	return r;
}
