/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The least DWARF with which debuggers tie routines and lines together: in .debug_info one compile
 * unit over all .text, one subprogram per routine, within it what was inlined; in .debug_line one
 * program over everything. Version 4, which every consumer of today reads.
 */
#include <elf.h>
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

/* Overwrite the 32-bit length field at @at in the file by what lies behind it: 0, -DCPI_ELIMIT. */
static int put_length(struct pseudoimg_sink *s, uint64_t at)
{
	uint64_t len = pseudoimg_sink_at(s) - at - 4;
	uint8_t bytes[4];

	if (len >= 0xfffffff0u)
		return -DCPI_ELIMIT;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(len >> 8 * i);
	if (at < s->off)
		return pseudoimg_put_at(s->fd, bytes, sizeof(bytes), at);
	memcpy(s->b.data + (at - s->off), bytes, sizeof(bytes));
	return 0;
}

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

static int put_info(void *ctx, struct pseudoimg_sink *s)
{
	const struct pseudoimg_dwarf *d = ctx;
	struct pseudoimg_model *m = d->model;
	struct info info = { .s = s, .m = m, .start = pseudoimg_sink_at(s) };
	int r = put_unit(&s->b, m);

	for (size_t i = 0; r >= 0 && i < m->nodes.nr; i++) {
		r = put_routine(&info, &m->nodes.v[i]);
		if (r >= 0)
			r = pseudoimg_sink_drain(s);
	}
	if (r >= 0)
		r = base_buf_append_le(&s->b, 0, 1); /* end of the unit's children */
	return r < 0 ? r : put_length(s, info.start);
}

static int put_aranges(void *ctx, struct pseudoimg_sink *s)
{
	const struct pseudoimg_layout *l = ((const struct pseudoimg_dwarf *)ctx)->layout;
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
	return r < 0 ? r : put_length(s, start);
}

static int put_ranges(void *ctx, struct pseudoimg_sink *s)
{
	const struct pseudoimg_layout *l = ((const struct pseudoimg_dwarf *)ctx)->layout;
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

/* ---- lines ----------------------------------------------------------------------------------- */

enum {
	DW_LNS_copy = 1,
	DW_LNS_advance_pc = 2,
	DW_LNS_advance_line = 3,
	DW_LNS_set_file = 4,
	DW_LNS_set_column = 5,
	DW_LNE_end_sequence = 1,
	DW_LNE_set_address = 2,
	DW_LNE_set_discriminator = 4,
};

int pseudoimg_put_sleb(struct base_buf *b, int64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;
	bool more = true;

	while (more) {
		uint8_t low = v & 0x7f;

		v = v < 0 ? ~(~v >> 7) : v >> 7;
		more = !((v == 0 && !(low & 0x40)) || (v == -1 && (low & 0x40)));
		bytes[n++] = low | (more ? 0x80 : 0);
	}
	return base_buf_append(b, bytes, n);
}

const uint8_t pseudoimg_line_header[] = {
	1, /* minimum_instruction_length */
	1, /* maximum_operations_per_instruction */
	1, /* default_is_stmt */
	(uint8_t)PSEUDOIMG_LINE_BASE,
	PSEUDOIMG_LINE_RANGE,
	PSEUDOIMG_OPCODE_BASE,
	0,
	1,
	1,
	1,
	1,
	0,
	0,
	0,
	1,
	0,
	0,
	1, /* operands of the standard opcodes */
	0, /* no include_directories */
};
const size_t pseudoimg_line_header_len = sizeof(pseudoimg_line_header);

static int put_header(struct pseudoimg_sink *s, const struct pseudoimg_model *m)
{
	struct base_buf *b = &s->b;
	uint64_t length_at;
	int r = base_buf_append_le(b, 0, 4);

	if (r >= 0)
		r = base_buf_append_le(b, 4, 2);
	length_at = pseudoimg_sink_at(s);
	if (r >= 0)
		r = base_buf_append_le(b, 0, 4);
	if (r >= 0)
		r = base_buf_append(b, pseudoimg_line_header, pseudoimg_line_header_len);
	for (size_t i = 0; r >= 0 && i < m->names.files.nr; i++) {
		const char *name = pseudoimg_names_text(&m->names, m->names.files.v[i]);

		r = base_buf_append(b, name, strlen(name) + 1);
		if (r >= 0) /* directory, time, length */
			r = base_buf_append_le(b, 0, 3);
		if (r >= 0)
			r = pseudoimg_sink_drain(s);
	}
	if (r >= 0)
		r = base_buf_append_le(b, 0, 1);
	return r < 0 ? r : put_length(s, length_at);
}

/* The state machine of a program that is being written. */
struct program {
	struct base_buf *b;
	uint64_t addr;
	uint32_t line, file; /* file: from 1 */
	uint32_t column;
	uint64_t end; /* end of the code with lines so far; 0: no sequence is open */
	size_t text;  /* the section the open sequence is in */
};

static int set_file(struct program *p, uint32_t file)
{
	int r = 0;

	if (file != p->file) {
		r = base_buf_append_le(p->b, DW_LNS_set_file, 1);
		if (r >= 0)
			r = base_buf_append_leb128(p->b, file);
		p->file = file;
	}
	return r;
}

static int set_column(struct program *p, uint32_t column)
{
	int r = 0;

	if (column != p->column) {
		r = base_buf_append_le(p->b, DW_LNS_set_column, 1);
		if (r >= 0)
			r = base_buf_append_leb128(p->b, column);
		p->column = column;
	}
	return r;
}

/* It holds for the next row alone. */
static int set_discriminator(struct program *p, uint32_t discriminator)
{
	const uint8_t head[] = { 0,
				 discriminator < 0x80	  ? 2
				 : discriminator < 0x4000 ? 3
							  : 4,
				 DW_LNE_set_discriminator };
	int r = discriminator ? base_buf_append(p->b, head, sizeof(head)) : 0;

	return r < 0 || !discriminator ? r : base_buf_append_leb128(p->b, discriminator);
}

static int set_place(struct program *p, const struct pseudoimg_row *row, uint32_t file)
{
	int r = set_file(p, file);

	if (r >= 0)
		r = set_column(p, row->column);
	return r < 0 ? r : set_discriminator(p, row->discriminator);
}

static int advance(struct base_buf *b, uint64_t by)
{
	int r = base_buf_append_le(b, DW_LNS_advance_pc, 1);

	return r < 0 ? r : base_buf_append_leb128(b, by);
}

/* Use one special opcode if it reaches. */
static int put_row(struct program *p, uint64_t addr, uint32_t to_line)
{
	int64_t line = (int64_t)to_line - p->line;
	uint64_t by = addr - p->addr;
	int r = 0;

	p->addr = addr;
	p->line = to_line;
	if (line < PSEUDOIMG_LINE_BASE || line >= PSEUDOIMG_LINE_BASE + PSEUDOIMG_LINE_RANGE) {
		r = base_buf_append_le(p->b, DW_LNS_advance_line, 1);
		if (r >= 0)
			r = pseudoimg_put_sleb(p->b, line);
		line = 0;
	}
	if (r >= 0 && PSEUDOIMG_OPCODE_BASE + (line - PSEUDOIMG_LINE_BASE) +
				      PSEUDOIMG_LINE_RANGE * (by > 18 ? 18 : by) >
			      255) {
		r = advance(p->b, by);
		by = 0;
	}
	if (r < 0)
		return r;
	return base_buf_append_le(p->b,
				  (uint64_t)(PSEUDOIMG_OPCODE_BASE + (line - PSEUDOIMG_LINE_BASE)) +
					  PSEUDOIMG_LINE_RANGE * by,
				  1);
}

static int begin_sequence(struct program *p, uint64_t addr)
{
	static const uint8_t set_address[] = { 0, 9, DW_LNE_set_address };
	int r = base_buf_append(p->b, set_address, sizeof(set_address));

	p->addr = addr;
	p->line = p->file = 1;
	p->column = 0;
	return r < 0 ? r : base_buf_append_le(p->b, addr, 8);
}

static int end_sequence(struct program *p)
{
	static const uint8_t end[] = { 0, 1, DW_LNE_end_sequence };
	int r;

	if (!p->end)
		return 0;
	r = advance(p->b, p->end - p->addr);
	p->end = 0;
	return r < 0 ? r : base_buf_append(p->b, end, sizeof(end));
}

/*
 * Readers of today take time in the square of the number of sequences. So what lies behind the last
 * one in the same section goes on with it, over a row without line where there is a gap.
 */
static int put_seq(struct program *p, const struct pseudoimg_model *m,
		   const struct pseudoimg_layout *l, const struct pseudoimg_seq *seq)
{
	size_t text = p->text;
	int r = 0;

	while (text < l->text.nr && l->text.v[text].addr + l->text.v[text].len <= seq->at.start)
		text++;
	if (!p->end || text != p->text || seq->at.start < p->end) {
		r = end_sequence(p);
		if (r >= 0)
			r = begin_sequence(p, seq->at.start);
	} else if (seq->at.start > p->end) {
		r = put_row(p, p->end, 0);
	}
	for (uint32_t i = 0; r >= 0 && i < seq->nr_rows; i++) {
		const struct pseudoimg_row *row = &seq->rows[i];

		r = row->line ? set_place(p, row, m->names.v.v[row->file].file) : 0;
		if (r >= 0)
			r = put_row(p, seq->at.start + row->off, row->line);
	}
	p->end = pseudoimg_span_end(&seq->at);
	p->text = text;
	return r;
}

/* Sequences of routine records stand in their order, those of DST wherever they belong. */
static int put_line(void *ctx, struct pseudoimg_sink *s)
{
	const struct pseudoimg_dwarf *d = ctx;
	const struct pseudoimg_layout *l = d->layout;
	struct pseudoimg_model *m = d->model;
	struct program p = { .b = &s->b };
	uint64_t start = pseudoimg_sink_at(s);
	struct pseudoimg_loaded loaded;
	size_t dst = 0;
	int r = put_header(s, m);

	for (size_t i = 0; r >= 0 && i <= m->nodes.nr; i++) {
		bool last = i == m->nodes.nr;

		if (!last && !m->nodes.v[i].lines)
			continue;
		if (!last)
			r = pseudoimg_model_load_lines(m, &m->nodes.v[i], &loaded);
		for (; r >= 0 && dst < m->seqs.nr; dst++) {
			struct pseudoimg_seq seq = pseudoimg_model_seq(m, dst);

			if (!last && pseudoimg_span_compare(&seq.at, &loaded.seq.at) > 0)
				break;
			r = put_seq(&p, m, l, &seq);
		}
		if (r >= 0 && !last)
			r = put_seq(&p, m, l, &loaded.seq);
		if (r >= 0)
			r = pseudoimg_sink_drain(s);
	}
	if (r >= 0)
		r = end_sequence(&p);
	return r < 0 ? r : put_length(s, start);
}

/* ---- the sections ---------------------------------------------------------------------------- */

int pseudoimg_dwarf_add(struct pseudoimg_dwarf *d, struct pseudoimg_elf *e)
{
	const struct {
		const char *name;
		int (*put)(void *ctx, struct pseudoimg_sink *s);
	} made[] = {
		{ ".debug_info", put_info },
		{ ".debug_aranges", put_aranges },
		{ ".debug_ranges", put_ranges },
		{ ".debug_line", put_line },
	};
	size_t nr = d->model->names.files.nr ? 4 : 3;
	int r;

	if (!d->layout->text.nr)
		return 0;
	r = pseudoimg_elf_add(e, &(struct pseudoimg_section){ .name = ".debug_abbrev",
							      .type = SHT_PROGBITS,
							      .align = 1,
							      .data = pseudoimg_abbrevs,
							      .len = pseudoimg_abbrevs_len });
	for (size_t i = 0; r >= 0 && i < nr; i++)
		r = pseudoimg_elf_add(e, &(struct pseudoimg_section){ .name = made[i].name,
								      .type = SHT_PROGBITS,
								      .align = 1,
								      .put = made[i].put,
								      .ctx = d,
								      .compress = true });
	return r;
}
