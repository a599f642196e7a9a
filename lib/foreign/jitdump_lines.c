/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines of a jitdump file are matched with the routine that they belong to here. */
#include <errno.h>
#include <stdlib.h>

#include "jitdump_internal.h"

enum { TEXT_MAX = 4095 };

/* ---- where they count from ------------------------------------------------------------------- */

/* The properties that these entries show by themselves. */
static uint32_t look_at(const struct jitdump_entries *e, const struct jitdump_code *code)
{
	uint64_t first = UINT64_MAX;
	bool high = false;

	for (size_t i = 0; i < e->nr; i++) {
		uint64_t off = e->v[i].addr - code->addr;

		first = off < first ? off : first;
		/* At its end exactly: where some say that the lines end. */
		if (off > code->len && off - code->len < JITDUMP_SHIFT)
			high = true;
	}
	if (first < JITDUMP_SHIFT)
		return JITDUMP_EXACT;
	if (high)
		return JITDUMP_HIGH;
	return first == JITDUMP_SHIFT ? JITDUMP_LIKELY_HIGH : 0;
}

/* JITDUMP_EXACT, JITDUMP_HIGH, or 0: nobody can know. */
static uint32_t find_base(const struct jitdump_entries *e, const struct jitdump_code *code,
			  uint32_t *seen)
{
	uint32_t here = look_at(e, code), before = *seen & (JITDUMP_EXACT | JITDUMP_HIGH);

	*seen |= here;
	if (here == JITDUMP_EXACT || here == JITDUMP_HIGH)
		return here;
	if (before == JITDUMP_EXACT || before == JITDUMP_HIGH)
		return before;
	if (here == JITDUMP_LIKELY_HIGH || (!before && (*seen & JITDUMP_LIKELY_HIGH)))
		return JITDUMP_HIGH;
	return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Make offsets of addresses, and leave out what is not in the code. */
static void place(struct jitdump_entries *e, uint64_t start, uint64_t len)
{
	size_t nr = 0;

	for (size_t i = 0; i < e->nr; i++) {
		if (e->v[i].addr - start >= len)
			continue;
		e->v[nr] = e->v[i];
		e->v[nr++].addr -= start;
	}
	e->nr = nr;
}

static int by_offset(const void *pa, const void *pb)
{
	const struct jitdump_line *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/*
 * V8 names a module by its URL, as which the file is found by nobody. In place: the path of a
 * file's; other names remain. Returns the length.
 */
static size_t path_of_url(uint8_t *name, size_t len)
{
	size_t scheme = strlen("file://"), nr = 0;
	int high, low;

	if (len <= scheme || memcmp(name, "file:///", scheme + 1))
		return len;
	for (size_t i = scheme; i < len; i++) {
		name[nr] = name[i];
		if (name[i] == '%' && len - i > 2) {
			high = base_digit((char)name[i + 1]);
			low = base_digit((char)name[i + 2]);
			if (high >= 0 && low >= 0 && (high || low)) {
				name[nr] = (uint8_t)(high << 4 | low);
				i += 2;
			}
		}
		nr++;
	}
	return nr;
}

/* Append it, as a record has it. */
static int put_file(struct base_buf *files, const char *name, size_t len)
{
	uint8_t head[2] = { 0 };
	size_t at = files->len;
	int r = base_buf_append(files, head, sizeof(head));

	if (r == 0)
		r = base_buf_append(files, name, len);
	if (r < 0)
		return r;
	len = path_of_url(files->data + at + sizeof(head), len);
	files->data[at] = (uint8_t)len;
	files->data[at + 1] = (uint8_t)(len >> 8);
	files->len = at + sizeof(head) + len;
	return 0;
}

static int file_index(struct jitdump_lines *l, struct base_map *known, const struct jitdump_line *e,
		      uint32_t *index)
{
	size_t len = e->file_len < TEXT_MAX ? e->file_len : TEXT_MAX;
	void *is = base_map_get(known, e->file, len);
	int r;

	if (is) {
		*index = (uint32_t)((uintptr_t)is - 1);
		return 0;
	}
	r = base_map_set(known, e->file, len, (void *)((uintptr_t)l->nr_files + 1));
	if (r == 0)
		r = put_file(&l->files, e->file, len);
	*index = l->nr_files++;
	return r;
}

static int put_line(struct jitdump_lines *l, struct base_map *known, const struct jitdump_line *e)
{
	struct wire_line line = { .code_off = (uint32_t)e->addr }, *last = NULL;
	int r = 0;

	if (e->line && e->file_len) {
		line.line = e->line;
		r = file_index(l, known, e, &line.file);
	}
	if (r < 0)
		return r;
	if (l->lines.len)
		last = (struct wire_line *)(void *)(l->lines.data + l->lines.len) - 1;
	/* If several lines have one address, the last is valid. */
	if (last && last->code_off == line.code_off)
		*last = line;
	else if (!last || last->line != line.line || last->file != line.file)
		r = base_buf_append(&l->lines, &line, sizeof(line));
	return r;
}

static int put_lines(struct jitdump_lines *l, struct jitdump_entries *e)
{
	struct base_map known = { 0 };
	int r = 0;

	if (e->nr)
		qsort(e->v, e->nr, sizeof(*e->v), by_offset);
	for (size_t i = 0; r == 0 && i < e->nr; i++)
		r = put_line(l, &known, &e->v[i]);
	base_map_release(&known);
	return r;
}

int jitdump_lines_read(struct runtime_file *f, const struct jitdump_lines_at *at,
		       const struct jitdump_code *code, uint32_t *seen, struct jitdump_lines *lines)
{
	struct jitdump_entries e = { 0 };
	uint32_t base;
	const uint8_t *rec;
	int r;

	base_buf_clear(&lines->lines);
	base_buf_clear(&lines->files);
	lines->nr_files = 0;
	if (!at->len)
		return 0;
	if (at->len > JITDUMP_DEBUG_MAX)
		return 1;
	r = runtime_file_peek(f, at->off, at->len, &rec);
	if (r == 0)
		r = jitdump_entries_read(&e, rec, at->len, code);
	if (r == 0) {
		base = find_base(&e, code, seen);
		place(&e, code->addr + (base == JITDUMP_HIGH ? JITDUMP_SHIFT : 0), code->len);
		r = base ? put_lines(lines, &e) : 0;
	}
	free(e.v);
	return r;
}

void jitdump_lines_release(struct jitdump_lines *lines)
{
	base_buf_release(&lines->lines);
	base_buf_release(&lines->files);
}
