/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of files and of inlined routines: made safe for ELF and DWARF, each kept once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pseudoimg_internal.h"

/* ---- names made safe ------------------------------------------------------------------------- */

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

/* Likewise of a file or inlined routine, no longer than fits a record once it is escaped. */
static int pseudoimg_file_name_put(struct base_buf *b, const char *name, size_t len)
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

/* ---- names of files and inlined routines ----------------------------------------------------- */

static uint32_t *find(const struct pseudoimg_names *n, const char *text, size_t len)
{
	size_t i = base_hash64_seeded(n->seed, text, len) & (n->cap - 1);

	for (; n->table[i]; i = (i + 1) & (n->cap - 1)) {
		const char *other = pseudoimg_names_text(n, n->table[i] - 1);

		if (!strcmp(other, text))
			break;
	}
	return &n->table[i];
}

/* Names come from anybody: who does not know the seed cannot make them collide. */
static int grow(struct pseudoimg_names *n)
{
	size_t cap = n->cap ? n->cap * 2 : 64;
	uint32_t *table = calloc(cap, sizeof(*table));

	if (!table)
		return -ENOMEM;
	if (!n->seed)
		n->seed = base_hash_seed();
	free(n->table);
	n->table = table;
	n->cap = cap;
	for (size_t i = 0; i < n->v.nr; i++) {
		const char *text = pseudoimg_names_text(n, (uint32_t)i);

		*find(n, text, strlen(text)) = (uint32_t)i + 1;
	}
	return 0;
}

int64_t pseudoimg_names_put(struct pseudoimg_names *n, const char *name, size_t len)
{
	struct pseudoimg_name *to;
	size_t at = n->text.len;
	uint32_t *slot;
	int r = 0;

	if (n->v.nr * 2 >= n->cap)
		r = grow(n);
	if (r >= 0)
		r = pseudoimg_file_name_put(&n->text, name, len);
	if (r >= 0 && (n->text.len > UINT32_MAX || n->v.nr >= PSEUDOIMG_NO_FILE / 2))
		r = -DCPI_ELIMIT;
	if (r < 0)
		return r;
	slot = find(n, (const char *)n->text.data + at, n->text.len - at - 1);
	if (*slot) {
		n->text.len = at;
		return *slot - 1;
	}
	to = PSEUDOIMG_PUSH(&n->v);
	if (!to)
		return -ENOMEM;
	*to = (struct pseudoimg_name){ .at = (uint32_t)at };
	*slot = (uint32_t)n->v.nr;
	return *slot - 1;
}

void pseudoimg_names_release(struct pseudoimg_names *n)
{
	free(n->v.v);
	free(n->files.v);
	free(n->table);
	base_buf_release(&n->text);
	memset(n, 0, sizeof(*n));
}
