/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The least .debug_info with which debuggers tie routines and lines together: one compile unit
 * over all .text, one subprogram per routine, within it what was inlined. Version 4, which every
 * consumer of today reads.
 */
#include <string.h>

#include "bound.h"
#include "pseudoimg_internal.h"

enum {
	DW_TAG_compile_unit = 0x11,
	DW_TAG_inlined_subroutine = 0x1d,
	DW_TAG_subprogram = 0x2e,
	DW_AT_name = 0x03,
	DW_AT_stmt_list = 0x10,
	DW_AT_low_pc = 0x11,
	DW_AT_high_pc = 0x12,
	DW_AT_language = 0x13,
	DW_AT_inline = 0x20,
	DW_AT_producer = 0x25,
	DW_AT_abstract_origin = 0x31,
	DW_AT_decl_file = 0x3a,
	DW_AT_decl_line = 0x3b,
	DW_AT_ranges = 0x55,
	DW_AT_call_file = 0x58,
	DW_AT_call_line = 0x59,
	DW_FORM_addr = 0x01,
	DW_FORM_data2 = 0x05,
	DW_FORM_data4 = 0x06,
	DW_FORM_string = 0x08,
	DW_FORM_data1 = 0x0b,
	DW_FORM_udata = 0x0f,
	DW_FORM_ref4 = 0x13,
	DW_FORM_sec_offset = 0x17,
	DW_LANG_C99 = 0x0c, /* the source language is unknown; C's names need no demangling */
	DW_INL_inlined = 1,
};

/* An inlined part with a known caller's line. */
#define INLINED(abbrev, children)                                                                  \
	(abbrev) | PSEUDOIMG_CALLED, DW_TAG_inlined_subroutine, (children), DW_AT_abstract_origin, \
		DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4,            \
		DW_AT_call_file, DW_FORM_udata, DW_AT_call_line, DW_FORM_udata, 0, 0
#define INLINED_ANYWHERE(abbrev, children)                                                         \
	(abbrev), DW_TAG_inlined_subroutine, (children), DW_AT_abstract_origin, DW_FORM_ref4,      \
		DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0
#define ROUTINE(abbrev, children)                                                                  \
	(abbrev) | PSEUDOIMG_DECLARED, DW_TAG_subprogram, (children), DW_AT_name, DW_FORM_string,  \
		DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, DW_AT_decl_file,         \
		DW_FORM_udata, DW_AT_decl_line, DW_FORM_udata, 0, 0
#define ROUTINE_ANYWHERE(abbrev, children)                                                         \
	(abbrev), DW_TAG_subprogram, (children), DW_AT_name, DW_FORM_string, DW_AT_low_pc,         \
		DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0

const uint8_t pseudoimg_abbrevs[] = {
	PSEUDOIMG_UNIT | PSEUDOIMG_DECLARED,
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
	PSEUDOIMG_UNIT,
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
	ROUTINE(PSEUDOIMG_ROUTINE, 0),
	ROUTINE_ANYWHERE(PSEUDOIMG_ROUTINE, 0),
	ROUTINE(PSEUDOIMG_ROUTINE | PSEUDOIMG_PARENT, 1),
	ROUTINE_ANYWHERE(PSEUDOIMG_ROUTINE | PSEUDOIMG_PARENT, 1),
	INLINED(PSEUDOIMG_INLINED, 0),
	INLINED_ANYWHERE(PSEUDOIMG_INLINED, 0),
	INLINED(PSEUDOIMG_INLINED | PSEUDOIMG_PARENT, 1),
	INLINED_ANYWHERE(PSEUDOIMG_INLINED | PSEUDOIMG_PARENT, 1),
	PSEUDOIMG_ABSTRACT,
	DW_TAG_subprogram,
	0,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_inline,
	DW_FORM_data1,
	0,
	0,
	0,
};
const size_t pseudoimg_abbrevs_len = sizeof(pseudoimg_abbrevs);

static int put_unit(struct base_buf *b, const struct pseudoimg_model *m)
{
	static const char producer[] = PSEUDOIMG_PRODUCER;
	bool lines = m->names.files.nr > 0;
	int r = base_buf_append_le(b, 0, 4); /* length */

	if (r >= 0)
		r = base_buf_append_le(b, 4, 2);
	if (r >= 0)
		r = base_buf_append_le(b, 0, 4); /* abbreviations' offset */
	if (r >= 0)
		r = base_buf_append_le(b, 8, 1);
	if (r >= 0)
		r = base_buf_append_le(b, PSEUDOIMG_UNIT | (lines ? PSEUDOIMG_DECLARED : 0), 1);
	if (r >= 0)
		r = base_buf_append(b, producer, sizeof(producer));
	if (r >= 0)
		r = base_buf_append_le(b, DW_LANG_C99, 2);
	if (r >= 0)
		r = pseudoimg_name_put(b, (const char *)(m->image + 1), m->image->facility_len);
	if (r >= 0) /* low_pc, ranges, stmt_list: all 0 */
		r = base_buf_append_le(b, 0, 8);
	return r < 0 ? r : base_buf_append_le(b, 0, lines ? 8 : 4);
}

/* The row in force @from bytes behind the sequence's start, or NULL where that has no line. */
static const struct pseudoimg_row *row_at(const struct pseudoimg_seq *s, uint64_t from)
{
	size_t lo = BASE_UPPER_BOUND(s->rows, s->nr_rows, off, from);

	return lo && s->rows[lo - 1].line ? &s->rows[lo - 1] : NULL;
}

/* Everything that is known while .debug_info is written. */
struct info {
	struct pseudoimg_sink *s;
	struct pseudoimg_model *m;
	uint64_t start; /* start of the unit, in the file */
	size_t seq;	/* rows of DST: all up to this one come before the routine */
};

/*
 * The row in force where the routine begins, or where the first sequence does that begins within
 * it. Routines and sequences ascend.
 */
static const struct pseudoimg_row *first_row(struct info *info, const struct pseudoimg_node *node,
					     const struct pseudoimg_loaded *l,
					     struct pseudoimg_seq *seq)
{
	const struct pseudoimg_model *m = info->m;
	uint64_t end = node->start + node->len;

	while (info->seq < m->seqs.nr &&
	       pseudoimg_span_end(&m->seqs.v[info->seq].at) <= node->start)
		info->seq++;
	*seq = l->seq;
	if (info->seq < m->seqs.nr &&
	    (!seq->nr_rows || pseudoimg_span_compare(&m->seqs.v[info->seq].at, &seq->at) < 0))
		*seq = pseudoimg_model_seq(m, info->seq);
	if (!seq->nr_rows || seq->at.start >= end)
		return NULL;
	return row_at(seq, node->start > seq->at.start ? node->start - seq->at.start : 0);
}

/* ---- inlined parts --------------------------------------------------------------------------- */

/* The routine as such, of which parts are inlined; once for each name, before its first use. */
static int put_abstract(struct info *info, uint32_t index)
{
	struct pseudoimg_name *name = &info->m->names.v.v[index];
	const char *text = pseudoimg_names_text(&info->m->names, index);
	uint64_t at = pseudoimg_sink_at(info->s) - info->start;
	int r;

	if (name->die)
		return 0;
	if (at > UINT32_MAX)
		return -DCPI_ELIMIT;
	name->die = (uint32_t)at;
	r = base_buf_append_le(&info->s->b, PSEUDOIMG_ABSTRACT, 1);
	if (r >= 0)
		r = base_buf_append(&info->s->b, text, strlen(text) + 1);
	return r < 0 ? r : base_buf_append_le(&info->s->b, DW_INL_inlined, 1);
}

static int64_t name_of(struct info *info, const struct pseudoimg_loaded *l, uint32_t index)
{
	if (l->names[index] != PSEUDOIMG_NO_FILE)
		return l->names[index];
	return pseudoimg_names_put(&info->m->names, PSEUDOIMG_UNNAMED,
				   sizeof(PSEUDOIMG_UNNAMED) - 1);
}

static int put_abstracts(struct info *info, const struct pseudoimg_loaded *l)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < l->view.rec->nr_inlines; i++) {
		int64_t name = name_of(info, l, l->view.inlines[i].name);

		r = name < 0 ? (int)name : put_abstract(info, (uint32_t)name);
	}
	return r;
}

static int put_inlined(struct info *info, const struct pseudoimg_node *node,
		       const struct pseudoimg_loaded *l, uint32_t i, bool parent)
{
	const struct wire_inline *in = &l->view.inlines[i];
	uint32_t file = in->call_line ? l->names[in->call_file] : PSEUDOIMG_NO_FILE;
	bool called = file != PSEUDOIMG_NO_FILE;
	struct base_buf *b = &info->s->b;
	int64_t name = name_of(info, l, in->name);
	int r = name < 0 ? (int)name : 0;

	if (r >= 0)
		r = base_buf_append_le(b,
				       PSEUDOIMG_INLINED | (called ? PSEUDOIMG_CALLED : 0) |
					       (parent ? PSEUDOIMG_PARENT : 0),
				       1);
	if (r >= 0)
		r = base_buf_append_le(b, info->m->names.v.v[name].die, 4);
	if (r >= 0)
		r = base_buf_append_le(b, node->start + in->code_off, 8);
	if (r >= 0)
		r = base_buf_append_le(b, in->code_len, 4);
	if (r >= 0 && called)
		r = base_buf_append_leb128(b, info->m->names.v.v[file].file);
	if (r >= 0 && called)
		r = base_buf_append_leb128(b, in->call_line);
	return r;
}

/* They come in preorder: what is deeper than the one before lies in it. */
static int put_inlines(struct info *info, const struct pseudoimg_node *node,
		       const struct pseudoimg_loaded *l)
{
	uint32_t nr = l->view.rec->nr_inlines, depth = 0;
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < nr; i++) {
		uint32_t next = i + 1 < nr ? l->view.inlines[i + 1].depth : 0;

		r = put_inlined(info, node, l, i, next > l->view.inlines[i].depth);
		depth = l->view.inlines[i].depth;
		for (; r >= 0 && depth > next; depth--)
			r = base_buf_append_le(&info->s->b, 0, 1);
		if (r >= 0)
			r = pseudoimg_sink_drain(info->s);
	}
	return r < 0 ? r : base_buf_append_le(&info->s->b, 0, 1);
}

/* ---- the unit -------------------------------------------------------------------------------- */

static int put_routine(struct info *info, const struct pseudoimg_node *node)
{
	struct base_buf *b = &info->s->b;
	const struct pseudoimg_row *row;
	struct pseudoimg_loaded l;
	struct pseudoimg_seq seq;
	int r = pseudoimg_model_load_lines(info->m, node, &l);

	if (r < 0)
		return r;
	row = first_row(info, node, &l, &seq);
	if (node->inlines)
		r = put_abstracts(info, &l);
	if (r >= 0)
		r = base_buf_append_le(b,
				       PSEUDOIMG_ROUTINE | (row ? PSEUDOIMG_DECLARED : 0) |
					       (node->inlines ? PSEUDOIMG_PARENT : 0),
				       1);
	if (r >= 0)
		r = pseudoimg_symbol_name_put(b, &l.name);
	if (r >= 0)
		r = base_buf_append_le(b, node->start, 8);
	if (r >= 0)
		r = base_buf_append_le(b, node->len, 4);
	if (r >= 0 && row)
		r = base_buf_append_leb128(b, info->m->names.v.v[row->file].file);
	if (r >= 0 && row)
		r = base_buf_append_leb128(b, row->line);
	return r < 0 || !node->inlines ? r : put_inlines(info, node, &l);
}

int pseudoimg_dwarf_info(struct pseudoimg_sink *s, struct pseudoimg_model *m)
{
	struct info info = { .s = s, .m = m, .start = pseudoimg_sink_at(s) };
	int r = put_unit(&s->b, m);

	for (size_t i = 0; r >= 0 && i < m->nodes.nr; i++) {
		r = put_routine(&info, &m->nodes.v[i]);
		if (r >= 0)
			r = pseudoimg_sink_drain(s);
	}
	if (r >= 0)
		r = base_buf_append_le(&s->b, 0, 1); /* end of the unit's children */
	return r < 0 ? r : pseudoimg_sink_put_length(s, info.start);
}

int pseudoimg_dwarf_aranges(struct pseudoimg_sink *s, const struct pseudoimg_layout *l)
{
	static const uint8_t header[] = { 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0 };
	uint64_t start = pseudoimg_sink_at(s);
	struct base_buf *b = &s->b;
	int r = base_buf_append(b, header, sizeof(header));

	for (size_t i = 0; r >= 0 && i < l->text.nr; i++) {
		r = base_buf_append_le(b, l->text.v[i].addr, 8);
		if (r >= 0)
			r = base_buf_append_le(b, l->text.v[i].len, 8);
	}
	if (r >= 0)
		r = base_buf_append_le(b, 0, 8);
	if (r >= 0)
		r = base_buf_append_le(b, 0, 8);
	return r < 0 ? r : pseudoimg_sink_put_length(s, start);
}

int pseudoimg_dwarf_ranges(struct pseudoimg_sink *s, const struct pseudoimg_layout *l)
{
	struct base_buf *b = &s->b;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < l->text.nr; i++) {
		r = base_buf_append_le(b, l->text.v[i].addr, 8);
		if (r >= 0)
			r = base_buf_append_le(b, l->text.v[i].addr + l->text.v[i].len, 8);
	}
	if (r >= 0)
		r = base_buf_append_le(b, 0, 8);
	return r < 0 ? r : base_buf_append_le(b, 0, 8);
}
