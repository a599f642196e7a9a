/* SPDX-License-Identifier: BSD-2-Clause */
/* .debug_line, version 4: one program over everything. */
#include <string.h>

#include "pseudoimg_internal.h"

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
	return r < 0 ? r : pseudoimg_sink_put_length(s, length_at);
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
int pseudoimg_dwarf_line(struct pseudoimg_sink *s, struct pseudoimg_model *m,
			 const struct pseudoimg_layout *l)
{
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
	return r < 0 ? r : pseudoimg_sink_put_length(s, start);
}
