/* SPDX-License-Identifier: BSD-2-Clause */
/* Names from outside, made safe for ELF and DWARF. */
#include "pseudoimg_internal.h"

/* Bytes of the well-formed UTF-8 character at @p, or 0. */
static size_t utf8_len(const uint8_t *p, size_t left)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	uint32_t c;

	if (len < 2)
		return len;
	if (len > left || p[0] > 0xf4)
		return 0;
	c = p[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return len;
}

/* C0, DEL, and the C1 set, which some terminals obey too. */
static bool is_control(const uint8_t *p, size_t len)
{
	return len == 1 ? p[0] < 0x20 || p[0] == 0x7f : len == 2 && p[0] == 0xc2 && p[1] < 0xa0;
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
	int r;

	while (at < len) {
		n = utf8_len(p + at, len - at);
		if (n && !is_control(p + at, n)) {
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
