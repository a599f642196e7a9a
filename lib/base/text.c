/* SPDX-License-Identifier: BSD-2-Clause */
/* Text from outside: made safe to print, and read as digits and numbers. */
#include "base.h"

/* Length of the well-formed UTF-8 character at @p, 0 where there is none. */
static size_t utf8_len(const unsigned char *p)
{
	size_t len = *p < 0x80		       ? 1
		     : *p >= 0xc2 && *p < 0xe0 ? 2
		     : *p >= 0xe0 && *p < 0xf0 ? 3
		     : *p >= 0xf0 && *p < 0xf5 ? 4
					       : 0;

	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms and surrogates; C1 controls, which terminals obey too. */
	if (len == 3 && ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] >= 0xa0)))
		return 0;
	if (len == 4 && ((*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] >= 0x90)))
		return 0;
	return len == 2 && *p == 0xc2 && p[1] < 0xa0 ? 0 : len;
}

/* Marks that are not seen, but change the order of what is, or end lines: U+061C, U+200B to U+200F,
 * U+2028 to U+202E, U+2060 to U+206F, U+FEFF. */
static bool is_mark(const unsigned char *p, size_t len)
{
	if (len == 2)
		return p[0] == 0xd8 && p[1] == 0x9c;
	if (len != 3)
		return false;
	if (p[0] == 0xe2 && p[1] == 0x80)
		return (p[2] >= 0x8b && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae);
	return (p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa0 && p[2] <= 0xaf) ||
	       (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf);
}

char *base_text_clean(char *text)
{
	unsigned char *to = (unsigned char *)text;

	for (const unsigned char *p = to; *p;) {
		size_t len = utf8_len(p);

		if (!len || *p < 0x20 || *p == 0x7f || is_mark(p, len)) {
			*to++ = '?';
			p += len ? len : 1;
			continue;
		}
		while (len--)
			*to++ = *p++;
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
