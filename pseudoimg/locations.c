/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPython's tables of locations (3.11 and later) become lines. An entry begins with a byte of its
 * own, with bit 7, the kind in bits 6 to 3, and one less than the number of instructions; what
 * follows depends on the kind. No byte is believed.
 */
#include "pseudoimg_internal.h"

enum {
	BEGINS = 0x80,
	INSTR_LEN = 2,
	/* Kinds: up to SHORT_LAST the line stays; three tell its distance. */
	SHORT_LAST = 9,
	ONE_LINE = 10,
	NO_COLUMNS = 13,
	LONG = 14,
	NO_LOCATION = 15,
	/* Numbers. */
	DIGIT_BITS = 6,
	GOES_ON = 0x40,
	DIGITS_MAX = 6,
};

struct table {
	const uint8_t *at, *end;
	int64_t line;
};

/* False: the table is cut off, or the number is too long. */
static bool read_number(struct table *t, uint64_t *out)
{
	*out = 0;
	for (unsigned int i = 0; i < DIGITS_MAX && t->at < t->end; i++) {
		uint8_t byte = *t->at++;

		*out |= (uint64_t)(byte & (GOES_ON - 1)) << DIGIT_BITS * i;
		if (!(byte & GOES_ON))
			return true;
	}
	return false;
}

/* The line moves by the number that comes next. */
static bool move_line(struct table *t)
{
	uint64_t n;

	if (!read_number(t, &n))
		return false;
	t->line += n & 1 ? -(int64_t)(n >> 1) : (int64_t)(n >> 1);
	return true;
}

/* The rest of an entry of this kind; false: it is cut off. */
static bool read_rest(struct table *t, unsigned int kind)
{
	uint64_t column;
	bool whole = true;

	if (kind == NO_LOCATION)
		return true;
	if (kind == NO_COLUMNS)
		return move_line(t);
	if (kind == LONG) {
		whole = move_line(t);
		for (int i = 0; whole && i < 3; i++)
			whole = read_number(t, &column);
		return whole;
	}
	if (kind > SHORT_LAST)
		t->line += kind - ONE_LINE;
	t->at += kind > SHORT_LAST ? 2 : 1;
	return t->at <= t->end;
}

static int put_row(struct base_buf *rows, uint32_t off, uint32_t line, uint32_t file)
{
	const struct pseudoimg_row row = { .off = off,
					   .line = line,
					   .file = line ? file : PSEUDOIMG_NO_FILE };
	const struct pseudoimg_row *last = NULL;

	if (rows->len)
		last = (const void *)(rows->data + rows->len - sizeof(row));
	if (last && last->line == line)
		return 0;
	return base_buf_append(rows, &row, sizeof(row));
}

int pseudoimg_locations_read(const uint8_t *table, size_t len, uint32_t first, uint64_t code_len,
			     uint32_t file, struct base_buf *rows)
{
	struct table t = { table, table + len, first };
	uint64_t off = 0;
	int r = 0;

	while (r >= 0 && off < code_len && t.at < t.end && *t.at & BEGINS) {
		uint8_t byte = *t.at++;
		unsigned int kind = byte >> 3 & 0xf;
		bool whole = read_rest(&t, kind);
		bool none = !whole || kind == NO_LOCATION || t.line <= 0 || t.line > UINT32_MAX;

		r = put_row(rows, (uint32_t)off, none ? 0 : (uint32_t)t.line, file);
		off += ((byte & 7u) + 1) * INSTR_LEN;
		if (!whole)
			break;
	}
	/* Instructions that the table does not reach have no line. */
	return r >= 0 && off < code_len ? put_row(rows, (uint32_t)off, 0, file) : r;
}
