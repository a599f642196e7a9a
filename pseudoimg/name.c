/* SPDX-License-Identifier: BSD-2-Clause */
/* Names from outside, made safe for ELF and DWARF. */
#include "pseudoimg_internal.h"

/* C0, DEL, and the C1 set, which some terminals obey too. */
static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

static int put_escaped(struct base_buf *b, uint8_t c)
{
	switch (c) {
	case '\n':
		return base_buf_append(b, "\\n", 2);
	case '\t':
		return base_buf_append(b, "\\t", 2);
	case '\r':
		return base_buf_append(b, "\\r", 2);
	}
	char hex[4] = { '\\', 'x', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15] };

	return base_buf_append(b, hex, sizeof(hex));
}

int pseudoimg_name_put(struct base_buf *b, const char *name, size_t len)
{
	const uint8_t *p = (const uint8_t *)name;
	size_t plain = 0, at = 0, n;
	uint32_t c = 0;
	int r;

	while (at < len) {
		n = base_utf8(p + at, len - at, &c);
		if (n && !is_control(c)) {
			at += n;
			continue;
		}
		if ((r = base_buf_append(b, p + plain, at - plain)) < 0)
			return r;
		for (n = n ? n : 1; n; n--, at++)
			if ((r = put_escaped(b, p[at])) < 0)
				return r;
		plain = at;
	}
	r = base_buf_append(b, p + plain, at - plain);
	return r < 0 ? r : base_buf_append(b, "", 1);
}

/* Back to where a character begins. */
static void cut(struct base_buf *b, size_t start, size_t most)
{
	size_t len = most;

	if (b->len - start - 1 <= most)
		return;
	while (len && (b->data[start + len] & 0xc0) == 0x80)
		len--;
	b->data[start + len] = '\0';
	b->len = start + len + 1;
}

int pseudoimg_file_name_put(struct base_buf *b, const char *name, size_t len)
{
	size_t start = b->len;
	int r = pseudoimg_name_put(b, name, len);

	if (r >= 0)
		cut(b, start, UINT16_MAX);
	return r;
}

int pseudoimg_symbol_name_put(struct base_buf *b, const struct pseudoimg_str *name)
{
	size_t start = b->len;
	int r;

	if (!name->len)
		return base_buf_append(b, PSEUDOIMG_UNNAMED, sizeof(PSEUDOIMG_UNNAMED));
	r = pseudoimg_name_put(b, name->p, name->len);
	if (r >= 0)
		cut(b, start, WIRE_NAME_MAX);
	return r;
}
