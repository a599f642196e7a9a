/* SPDX-License-Identifier: BSD-2-Clause */
/* What all readers of names share: text that is put together, and bytes that are taken. */
#include <string.h>

#include "demangle_internal.h"

struct dem_text dem_fail(struct dem *d)
{
	d->failed = true;
	return (struct dem_text){ 0 };
}

struct dem_text dem_bytes(struct dem *d, const char *bytes, size_t len)
{
	struct dem_text t = { d->used, (uint32_t)len };

	if (d->failed || len > DEM_TEXT - d->used)
		return dem_fail(d);
	memcpy(d->text + d->used, bytes, len);
	d->used += (uint32_t)len;
	return t;
}

struct dem_text dem_lit(struct dem *d, const char *text)
{
	return dem_bytes(d, text, strlen(text));
}

/* What was made last is only made longer. */
static struct dem_text movable(struct dem *d, struct dem_text a)
{
	return a.at + a.len == d->used ? a : dem_bytes(d, d->text + a.at, a.len);
}

struct dem_text dem_join(struct dem *d, struct dem_text a, struct dem_text b)
{
	if (!b.len)
		return a;
	if (!a.len)
		return b;
	if (a.at + a.len == b.at) {
		a.len += b.len;
		return a;
	}
	a = movable(d, a);
	a.len += dem_bytes(d, d->text + b.at, b.len).len;
	return a;
}

struct dem_text dem_add(struct dem *d, struct dem_text a, const char *text)
{
	if (!a.len)
		return dem_lit(d, text);
	a = movable(d, a);
	a.len += dem_lit(d, text).len;
	return a;
}

char dem_last(const struct dem *d, struct dem_text t)
{
	return t.len ? d->text[t.at + t.len - 1] : '\0';
}

bool dem_enter(struct dem *d)
{
	if (++d->depth > DEM_DEPTH || ++d->steps > DEM_STEPS)
		d->failed = true;
	return !d->failed;
}

void dem_leave(struct dem *d)
{
	d->depth--;
}

char dem_peek(const struct dem *d, size_t ahead)
{
	return !d->failed && ahead < (size_t)(d->end - d->p) ? d->p[ahead] : '\0';
}

bool dem_take(struct dem *d, const char *word)
{
	size_t len = strlen(word);

	if (d->failed || len > (size_t)(d->end - d->p) || memcmp(d->p, word, len) != 0)
		return false;
	d->p += len;
	return true;
}

bool dem_digit(char c)
{
	return c >= '0' && c <= '9';
}

uint32_t dem_number(struct dem *d)
{
	uint32_t n = 0;

	if (!dem_digit(dem_peek(d, 0)))
		d->failed = true;
	while (dem_digit(dem_peek(d, 0)) && n < 100000000)
		n = n * 10 + (uint32_t)(*d->p++ - '0');
	return n;
}

uint32_t dem_sequence(struct dem *d, unsigned int base)
{
	uint32_t n = 0;
	bool any = false;

	for (char c; (c = dem_peek(d, 0)) != '_'; d->p++, any = true) {
		unsigned int digit = dem_digit(c)	    ? (unsigned int)(c - '0')
				     : c >= 'A' && c <= 'Z' ? (unsigned int)(c - 'A') + 10
							    : 99;

		if (digit >= base || n > 1000000) {
			d->failed = true;
			return 0;
		}
		n = n * base + digit;
	}
	d->p++;
	return any ? n + 1 : 0;
}
