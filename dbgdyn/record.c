/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of routines: measured, checked and written. */
#include "dbgdyn_internal.h"

static bool lines_good(const struct dbgdyn_routine *r)
{
	if ((r->nr_lines && !r->lines) || r->nr_lines > WIRE_RECORD_MAX / sizeof(struct wire_line))
		return false;
	for (size_t i = 0; i < r->nr_lines; i++) {
		const struct dbgdyn_line *l = &r->lines[i];

		if (l->code_off >= r->code_len || (i && l->code_off < l[-1].code_off))
			return false;
		if (l->line && l->file >= r->nr_files)
			return false;
	}
	return true;
}

/* Bytes of the file names in the record; false where one is too long. */
static bool files_measure(const struct dbgdyn_routine *r, size_t *len)
{
	if ((r->nr_files && !r->files) || r->nr_files > WIRE_RECORD_MAX / 2)
		return false;
	for (size_t i = 0; i < r->nr_files; i++) {
		if (r->files[i].len > DBGDYN_FILE_MAX || (r->files[i].len && !r->files[i].text))
			return false;
		*len += 2 + r->files[i].len;
		if (*len > WIRE_RECORD_MAX)
			return false;
	}
	return true;
}

/* Structs grow at their end: what a caller compiled earlier does not have is none. */
static size_t nr_inlines(const struct dbgdyn_routine *r)
{
	return r->size >= offsetof(struct dbgdyn_routine, bytes) ? r->nr_inlines : 0;
}

static const void *bytes(const struct dbgdyn_routine *r)
{
	return r->size >= sizeof(*r) && r->bytes ? r->bytes : r->code;
}

static size_t name_len(size_t len)
{
	return len < WIRE_NAME_MAX ? len : WIRE_NAME_MAX;
}

static bool inline_good(const struct dbgdyn_routine *r, const struct dbgdyn_inline *in)
{
	return in->code_len && in->name.text && in->name.len && in->depth < WIRE_INLINE_DEPTH &&
	       (!in->call_line || in->call_file < r->nr_files);
}

/* Nested in preorder, and the bytes of their names. */
static bool inlines_measure(const struct dbgdyn_routine *r, size_t nr, size_t *len)
{
	uint64_t ends[WIRE_INLINE_DEPTH], at = 0; /* end of the open part at each depth */
	uint32_t depth = 0;			  /* how many are open */

	if (nr && (!r->inlines || nr > WIRE_RECORD_MAX / sizeof(struct wire_inline)))
		return false;
	for (size_t i = 0; i < nr; i++) {
		const struct dbgdyn_inline *in = &r->inlines[i];
		uint64_t end = (uint64_t)in->code_off + in->code_len;

		if (!inline_good(r, in) || in->depth > depth)
			return false;
		if (in->depth < depth)
			at = ends[in->depth];
		if (in->code_off < at || end > (in->depth ? ends[in->depth - 1] : r->code_len))
			return false;
		ends[in->depth] = end;
		at = in->code_off;
		depth = in->depth + 1;
		*len += 2 + name_len(in->name.len);
	}
	return true;
}

bool dbgdyn_record_measure(const struct dbgdyn_routine *r, struct dbgdyn_parts *parts)
{
	if (!r || r->size < offsetof(struct dbgdyn_routine, inlines) || !r->name.text ||
	    !r->name.len || !dbgdyn_range_good(r->code, r->code_len) ||
	    r->code_len > DBGDYN_CODE_MAX)
		return false;
	*parts = (struct dbgdyn_parts){ .name_len = name_len(r->name.len),
					.nr_inlines = nr_inlines(r) };
	return files_measure(r, &parts->strings_len) && lines_good(r) &&
	       inlines_measure(r, parts->nr_inlines, &parts->strings_len);
}

size_t dbgdyn_record_len(const struct dbgdyn_routine *r, const struct dbgdyn_parts *parts,
			 bool with_code)
{
	return wire_routine_len(parts->name_len, r->code_len, with_code, r->nr_lines,
				parts->nr_inlines, parts->strings_len);
}

static uint8_t *pad8(uint8_t *p)
{
	while ((uintptr_t)p % 8)
		*p++ = 0;
	return p;
}

static uint8_t *put_lines(uint8_t *p, const struct dbgdyn_routine *r)
{
	for (size_t i = 0; i < r->nr_lines; i++) {
		struct wire_line l = { .code_off = r->lines[i].code_off,
				       .line = r->lines[i].line,
				       .file = r->lines[i].file };

		memcpy(p, &l, sizeof(l));
		p += sizeof(l);
	}
	return p;
}

/* Their names stand behind those of the files. */
static uint8_t *put_inlines(uint8_t *p, const struct dbgdyn_routine *r, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct dbgdyn_inline *in = &r->inlines[i];
		struct wire_inline w = { .code_off = in->code_off,
					 .code_len = in->code_len,
					 .name = (uint32_t)(r->nr_files + i),
					 .call_file = in->call_line ? in->call_file : 0,
					 .call_line = in->call_line,
					 .depth = in->depth };

		memcpy(p, &w, sizeof(w));
		p += sizeof(w);
	}
	return p;
}

static uint8_t *put_string(uint8_t *p, const char *text, size_t text_len)
{
	uint16_t len = (uint16_t)text_len;

	memcpy(p, &len, sizeof(len));
	p += sizeof(len);
	if (len)
		memcpy(p, text, len);
	return p + len;
}

static uint8_t *put_strings(uint8_t *p, const struct dbgdyn_routine *r, size_t nr)
{
	for (size_t i = 0; i < r->nr_files; i++)
		p = put_string(p, r->files[i].text, r->files[i].len);
	for (size_t i = 0; i < nr; i++)
		p = put_string(p, r->inlines[i].name.text, name_len(r->inlines[i].name.len));
	return p;
}

void dbgdyn_record_fill(struct wire_routine *rec, size_t len, const struct dbgdyn_routine *r,
			const struct dbgdyn_parts *parts, uint16_t flags)
{
	uint8_t *p = (uint8_t *)(rec + 1);

	rec->head =
		(struct wire_head){ .len = (uint32_t)len, .type = WIRE_ROUTINE, .flags = flags };
	rec->part = 0;
	rec->addr = (uintptr_t)r->code;
	rec->code_len = r->code_len;
	rec->name_len = (uint32_t)parts->name_len;
	rec->nr_lines = (uint32_t)r->nr_lines;
	rec->nr_files = (uint32_t)(r->nr_files + parts->nr_inlines);
	rec->nr_inlines = (uint32_t)parts->nr_inlines;
	memcpy(p, r->name.text, parts->name_len);
	p += parts->name_len;
	if (flags & WIRE_ROUTINE_CODE) {
		memcpy(p, bytes(r), r->code_len);
		p += r->code_len;
	}
	p = put_inlines(put_lines(pad8(p), r), r, parts->nr_inlines);
	pad8(put_strings(p, r, parts->nr_inlines));
}
