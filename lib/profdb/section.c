/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sections of a file of version 1, and the numbers of variable length in them, are read and
 * written here.
 */
#include <errno.h>
#include <string.h>

#include "profdb_internal.h"

/* tag[4] zero[4] length[8] payload padding: docs/format/dcpiformat.md */
enum { HEAD_LEN = 16 };

static bool tag_ok(const char tag[4])
{
	for (int i = 0; i < 4; i++) {
		bool letter = (tag[i] | 32) >= 'a' && (tag[i] | 32) <= 'z';

		if (!letter && (i == 0 || tag[i] < '0' || tag[i] > '9'))
			return false;
	}
	return true;
}

static bool all_zero(const uint8_t *p, size_t len)
{
	for (; len; len--) {
		if (*p++)
			return false;
	}
	return true;
}

/* The section at *@pos; *@pos moves behind it. */
int profdb_section_next(const uint8_t *file, size_t len, size_t *pos, struct profdb_payload *s,
			struct base_err *err)
{
	const uint8_t *head = file + *pos;
	size_t space = len - *pos, padded;

	if (space < HEAD_LEN)
		return base_fail(err, -DCPI_ETRUNCATED, "file ends without its footer");
	memcpy(s->tag, head, sizeof(s->tag));
	if (!tag_ok(s->tag) || !all_zero(head + 4, 4))
		return base_fail(err, -DCPI_EFORMAT, "no section begins at byte %zu", *pos);
	if (profdb_get64(head + 8) > space - HEAD_LEN)
		return base_fail(err, -DCPI_ETRUNCATED, "section '%.4s' is longer than the file",
				 s->tag);
	s->data = head + HEAD_LEN;
	s->len = (size_t)profdb_get64(head + 8);
	padded = (size_t)base_align_up(s->len, 8);
	if (padded > space - HEAD_LEN)
		return base_fail(err, -DCPI_ETRUNCATED, "section '%.4s' is cut", s->tag);
	if (!all_zero(s->data + s->len, padded - s->len))
		return base_fail(err, -DCPI_EFORMAT, "section '%.4s' is not padded by zeros",
				 s->tag);
	*pos += HEAD_LEN + padded;
	return 0;
}

int profdb_text_get(const struct profdb_payload *s, size_t *pos, size_t max, char **out)
{
	uint64_t len;
	int r = profdb_varint_get(s, pos, &len);

	if (r < 0 || len > max || len > s->len - *pos || memchr(s->data + *pos, 0, (size_t)len))
		return -DCPI_EFORMAT;
	*out = strndup((const char *)s->data + *pos, (size_t)len);
	*pos += (size_t)len;
	return *out ? 0 : -ENOMEM;
}

/* ---- writing --------------------------------------------------------------------------------- */

size_t profdb_varint_put(uint8_t *to, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}

int profdb_bytes_append(struct base_buf *out, const void *data, size_t len)
{
	int r = base_buf_append_leb128(out, len);

	return r < 0 ? r : base_buf_append(out, data, len);
}

int profdb_section_begin(struct base_buf *out, const char tag[4], size_t *at)
{
	uint8_t head[HEAD_LEN] = { 0 };

	*at = out->len;
	memcpy(head, tag, 4);
	return base_buf_append(out, head, sizeof(head));
}

int profdb_section_end(struct base_buf *out, size_t at)
{
	size_t len = out->len - at - HEAD_LEN;

	profdb_put64(out->data + at + 8, len);
	return base_buf_extend(out, (size_t)base_align_up(len, 8) - len, NULL);
}

int profdb_section_put(struct base_buf *out, const char tag[4], const void *data, size_t len)
{
	size_t at;
	int r = profdb_section_begin(out, tag, &at);

	if (r >= 0)
		r = base_buf_append(out, data, len);
	return r < 0 ? r : profdb_section_end(out, at);
}
