/* SPDX-License-Identifier: BSD-2-Clause */
/* Text from outside: made safe to print, and read as digits and numbers. */
#include <string.h>

#include "base.h"

size_t base_utf8(const void *text, size_t left, uint32_t *out)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t *p = text;
	size_t len = !left ? 0 : *p < 0x80 ? 1 : *p < 0xc0 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
	uint32_t c;

	if (!len || len > left || *p >= 0xf8)
		return 0;
	c = len == 1 ? *p : *p & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*out = c;
	return len;
}

bool base_utf8_acts(uint32_t c)
{
	static const uint32_t ranges[][2] = { { 0, 0x1f },	  { 0x7f, 0x9f },
					      { 0x61c, 0x61c },	  { 0x200b, 0x200f },
					      { 0x2028, 0x202e }, { 0x2060, 0x206f },
					      { 0xfeff, 0xfeff } };

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i][0] && c <= ranges[i][1])
			return true;
	return false;
}

size_t base_text_width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

char *base_text_clean(char *text)
{
	size_t left = strlen(text);
	char *to = text;

	for (const char *p = text; left;) {
		uint32_t c = 0;
		size_t len = base_utf8(p, left, &c);
		bool acts = !len || base_utf8_acts(c);

		/* A control of two bytes is one of another encoding's, rather. */
		if (!len || (c >= 0x80 && c < 0xa0))
			len = 1;
		/* The replacement is never longer than the bytes it replaces. */
		if (acts)
			*to++ = '?';
		else
			to = (char *)memmove(to, p, len) + len;
		p += len;
		left -= len;
	}
	*to = '\0';
	return text;
}

int base_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool base_number_parse(const char *s, uint64_t *out)
{
	uint64_t base = 10, v = 0;

	if (s[0] == '0' && s[1] == 'x') {
		base = 16;
		s += 2;
	}
	if (!*s)
		return false;
	for (; *s; s++) {
		uint64_t d = (uint64_t)base_digit(*s); /* none: more than any base */

		if (d >= base || base_mul_overflow(v, base, &v) || base_add_overflow(v, d, &v))
			return false;
	}
	*out = v;
	return true;
}

bool base_signed_parse(const char *s, int64_t min, int64_t max, int64_t *out)
{
	bool negative = *s == '-';
	uint64_t v;
	int64_t n;

	if (!base_number_parse(s + negative, &v) || v > INT64_MAX)
		return false;
	n = negative ? -(int64_t)v : (int64_t)v;
	if (n < min || n > max)
		return false;
	*out = n;
	return true;
}
