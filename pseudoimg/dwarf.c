/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The least .debug_info with which debuggers tie routines and lines together: one compile unit
 * over all .text, one subprogram per routine. Version 4, which every consumer of today reads.
 */
#include <errno.h>

#include "pseudoimg_internal.h"

enum {
	DW_TAG_compile_unit = 0x11,
	DW_TAG_subprogram = 0x2e,
	DW_AT_name = 0x03,
	DW_AT_stmt_list = 0x10,
	DW_AT_low_pc = 0x11,
	DW_AT_high_pc = 0x12,
	DW_AT_language = 0x13,
	DW_AT_producer = 0x25,
	DW_AT_decl_file = 0x3a,
	DW_AT_decl_line = 0x3b,
	DW_AT_ranges = 0x55,
	DW_FORM_addr = 0x01,
	DW_FORM_data2 = 0x05,
	DW_FORM_data4 = 0x06,
	DW_FORM_string = 0x08,
	DW_FORM_udata = 0x0f,
	DW_FORM_sec_offset = 0x17,
	DW_LANG_C99 = 0x0c, /* nobody knows the source language; C's names need no demangling */

	ABBREV_UNIT = 1,
	ABBREV_UNIT_NO_LINES,
	ABBREV_ROUTINE,
	ABBREV_ROUTINE_NO_LINES,
};

static const uint8_t abbrevs[] = {
	ABBREV_UNIT,
	DW_TAG_compile_unit,
	1,
	DW_AT_producer,
	DW_FORM_string,
	DW_AT_language,
	DW_FORM_data2,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_ranges,
	DW_FORM_sec_offset,
	DW_AT_stmt_list,
	DW_FORM_sec_offset,
	0,
	0,
	ABBREV_UNIT_NO_LINES,
	DW_TAG_compile_unit,
	1,
	DW_AT_producer,
	DW_FORM_string,
	DW_AT_language,
	DW_FORM_data2,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_ranges,
	DW_FORM_sec_offset,
	0,
	0,
	ABBREV_ROUTINE,
	DW_TAG_subprogram,
	0,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	DW_AT_decl_file,
	DW_FORM_udata,
	DW_AT_decl_line,
	DW_FORM_udata,
	0,
	0,
	ABBREV_ROUTINE_NO_LINES,
	DW_TAG_subprogram,
	0,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	0,
	0,
	0,
};

static int put_unit(struct base_buf *b, const struct pseudoimg_model *m)
{
	static const char producer[] = "dcpid " DCPI_VERSION;
	bool lines = m->files.nr > 0;
	int r = pseudoimg_put_uint(b, 0, 4); /* length */

	if (r >= 0)
		r = pseudoimg_put_uint(b, 4, 2);
	if (r >= 0)
		r = pseudoimg_put_uint(b, 0, 4); /* abbreviations' offset */
	if (r >= 0)
		r = pseudoimg_put_uint(b, 8, 1);
	if (r >= 0)
		r = pseudoimg_put_uint(b, lines ? ABBREV_UNIT : ABBREV_UNIT_NO_LINES, 1);
	if (r >= 0)
		r = base_buf_append(b, producer, sizeof(producer));
	if (r >= 0)
		r = pseudoimg_put_uint(b, DW_LANG_C99, 2);
	if (r >= 0)
		r = pseudoimg_name_put(b, (const char *)(m->image + 1), m->image->facility_len);
	if (r >= 0) /* low_pc, ranges, stmt_list: all 0 */
		r = pseudoimg_put_uint(b, 0, 8);
	return r < 0 ? r : pseudoimg_put_uint(b, 0, lines ? 8 : 4);
}

/*
 * The row in force where routine @at begins, or where the first sequence does that begins within
 * it; NULL where that row has no line. Routines and sequences ascend.
 */
static const struct pseudoimg_row *first_row(const struct pseudoimg_model *m, size_t *seq,
					     const struct pseudoimg_span *at)
{
	while (*seq < m->seqs.nr && pseudoimg_span_end(&m->seqs.v[*seq].at) <= at->start)
		(*seq)++;
	if (*seq == m->seqs.nr || m->seqs.v[*seq].at.start >= pseudoimg_span_end(at))
		return NULL;
	const struct pseudoimg_seq *s = &m->seqs.v[*seq];
	const struct pseudoimg_row *v = m->rows.v + s->first_row;
	uint64_t from = at->start > s->at.start ? at->start - s->at.start : 0;
	size_t lo = 0, hi = s->nr_rows, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (v[mid].off <= from)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && v[lo - 1].line ? &v[lo - 1] : NULL;
}

static int put_routine(struct base_buf *b, const struct pseudoimg_routine *routine,
		       const char *name, size_t name_len, const struct pseudoimg_row *row)
{
	int r = pseudoimg_put_uint(b, row ? ABBREV_ROUTINE : ABBREV_ROUTINE_NO_LINES, 1);

	if (r >= 0)
		r = base_buf_append(b, name, name_len + 1);
	if (r >= 0)
		r = pseudoimg_put_uint(b, routine->at.start, 8);
	if (r >= 0)
		r = pseudoimg_put_uint(b, routine->at.len, 4);
	if (r >= 0 && row)
		r = pseudoimg_put_uleb(b, row->file + 1);
	if (r >= 0 && row)
		r = pseudoimg_put_uleb(b, row->line);
	return r;
}

static int put_info(struct base_buf *b, const struct pseudoimg_model *m,
		    const struct base_buf *strings, const uint32_t *names)
{
	int r = put_unit(b, m);
	size_t seq = 0;

	for (size_t i = 0; r >= 0 && i < m->routines.nr; i++) {
		const char *name = (const char *)strings->data + names[i];
		const struct pseudoimg_routine *routine = &m->routines.v[i];

		r = put_routine(b, routine, name, strlen(name), first_row(m, &seq, &routine->at));
	}
	if (r >= 0)
		r = pseudoimg_put_uint(b, 0, 1); /* end of the unit's children */
	return r < 0 ? r : pseudoimg_put_length(b, 0);
}

static int put_aranges(struct base_buf *b, const struct pseudoimg_layout *l)
{
	static const uint8_t header[] = { 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0 };
	int r = base_buf_append(b, header, sizeof(header));

	for (size_t i = 0; r >= 0 && i < l->text.nr; i++) {
		r = pseudoimg_put_uint(b, l->text.v[i].addr, 8);
		if (r >= 0)
			r = pseudoimg_put_uint(b, l->text.v[i].len, 8);
	}
	if (r >= 0)
		r = pseudoimg_put_uint(b, 0, 8);
	if (r >= 0)
		r = pseudoimg_put_uint(b, 0, 8);
	return r < 0 ? r : pseudoimg_put_length(b, 0);
}

static int put_ranges(struct base_buf *b, const struct pseudoimg_layout *l)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < l->text.nr; i++) {
		r = pseudoimg_put_uint(b, l->text.v[i].addr, 8);
		if (r >= 0)
			r = pseudoimg_put_uint(b, l->text.v[i].addr + l->text.v[i].len, 8);
	}
	if (r >= 0)
		r = pseudoimg_put_uint(b, 0, 8);
	return r < 0 ? r : pseudoimg_put_uint(b, 0, 8);
}

int pseudoimg_dwarf_make(struct pseudoimg_dwarf *d, const struct pseudoimg_model *m,
			 const struct pseudoimg_layout *l, const struct base_buf *strings,
			 const uint32_t *names)
{
	int r = base_buf_append(&d->abbrev, abbrevs, sizeof(abbrevs));

	if (r >= 0)
		r = put_info(&d->info, m, strings, names);
	if (r >= 0)
		r = put_aranges(&d->aranges, l);
	if (r >= 0)
		r = put_ranges(&d->ranges, l);
	return r < 0 ? r : pseudoimg_dwarf_line_make(&d->line, m, l);
}

void pseudoimg_dwarf_release(struct pseudoimg_dwarf *d)
{
	base_buf_release(&d->abbrev);
	base_buf_release(&d->info);
	base_buf_release(&d->aranges);
	base_buf_release(&d->ranges);
	base_buf_release(&d->line);
}
