/* SPDX-License-Identifier: BSD-2-Clause */
/* A buffer of bytes grows, is appended to and formatted into here. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

int base_grow(void *array, size_t *cap, size_t need, size_t elem_len)
{
	size_t want, bytes;
	void *p;

	if (need <= *cap)
		return 0;
	want = *cap < 8 ? 8 : *cap;
	if (base_mul_overflow(want, 2, &want) || want < need)
		want = need;
	if (base_mul_overflow(want, elem_len, &bytes) || bytes > PTRDIFF_MAX) {
		want = need;
		if (base_mul_overflow(want, elem_len, &bytes) || bytes > PTRDIFF_MAX)
			return -ENOMEM;
	}
	/* @array is the address of a pointer of any type: copied, not dereferenced as void **. */
	memcpy(&p, array, sizeof(p));
	p = realloc(p, bytes);
	if (!p)
		return -ENOMEM;
	memcpy(array, &p, sizeof(p));
	*cap = want;
	return 0;
}

static int reserve(struct base_buf *b, size_t len)
{
	size_t need;

	if (base_add_overflow(b->len, len, &need))
		return -ENOMEM;
	return base_grow(&b->data, &b->cap, need, 1);
}

int base_buf_append(struct base_buf *b, const void *data, size_t len)
{
	int r;

	if (!len)
		return 0;
	r = reserve(b, len);
	if (r < 0)
		return r;
	memcpy(b->data + b->len, data, len);
	b->len += len;
	return 0;
}

int base_buf_append_le(struct base_buf *b, uint64_t v, size_t len)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	return base_buf_append(b, bytes, len);
}

int base_buf_append_leb128(struct base_buf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	return base_buf_append(b, bytes, n);
}

int base_buf_extend(struct base_buf *b, size_t len, void **out)
{
	int r = reserve(b, len);

	if (r < 0)
		return r;
	if (out)
		*out = b->data ? b->data + b->len : NULL;
	if (len)
		memset(b->data + b->len, 0, len);
	b->len += len;
	return 0;
}

int base_buf_vprintf(struct base_buf *b, const char *fmt, va_list args)
{
	va_list again;
	int n, r;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, fmt, args);
	r = n < 0 ? -ENOMEM : reserve(b, (size_t)n + 1);
	if (r == 0) {
		vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
	return r;
}

int base_buf_printf(struct base_buf *b, const char *fmt, ...)
{
	va_list args;
	int r;

	va_start(args, fmt);
	r = base_buf_vprintf(b, fmt, args);
	va_end(args);
	return r;
}

void base_buf_clear(struct base_buf *b)
{
	b->len = 0;
}

void base_buf_release(struct base_buf *b)
{
	free(b->data);
	*b = (struct base_buf){ 0 };
}
