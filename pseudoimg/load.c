/* SPDX-License-Identifier: BSD-2-Clause */
/* One routine of a model is loaded from the job: its record, its names, its lines. */
#include <errno.h>
#include <string.h>

#include "bound.h"
#include "pseudoimg_internal.h"

/* ---- CPython's tables of locations ----------------------------------------------------------- */

/*
 * Tables of CPython 3.11 and later become lines. An entry begins with a byte of its own, with bit
 * 7, the kind in bits 6 to 3, and one less than the number of instructions; what follows depends on
 * the kind. No byte is believed.
 */
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

/* ---- one routine ----------------------------------------------------------------------------- */

size_t pseudoimg_model_from(const struct pseudoimg_model *m, uint64_t vaddr)
{
	return BASE_LOWER_BOUND(m->nodes.v, m->nodes.nr, start, vaddr);
}

int pseudoimg_model_load(struct pseudoimg_model *m, const struct pseudoimg_node *node,
			 struct pseudoimg_loaded *out)
{
	const struct wire_head *rec;
	int r;

	*out = (struct pseudoimg_loaded){ 0 };
	if (node->ref >= PSEUDOIMG_DST_REF) {
		out->name = m->dst_names.v[node->ref - PSEUDOIMG_DST_REF];
		return 0;
	}
	r = pseudoimg_job_at(m->job, (uint64_t)node->ref * 8, &rec);
	if (r < 0)
		return r;
	/* A file may change under its reader, who then must not trip. */
	if (wire_routine_parse(rec, &out->view) < 0 || out->view.rec->addr != node->start ||
	    out->view.rec->code_len != node->len || !out->view.code != !node->code)
		return -DCPI_EFORMAT;
	out->name = (struct pseudoimg_str){ out->view.name, out->view.rec->name_len };
	return 0;
}

static bool has_locations(const struct wire_routine_view *v)
{
	return v->rec->head.flags & WIRE_ROUTINE_LOCATIONS && v->rec->nr_lines == 1 &&
	       v->rec->nr_files == 2 && !v->lines[0].file;
}

/* The record's files by their number there; those without a name stand for no source. */
static int load_names(struct pseudoimg_model *m, struct pseudoimg_loaded *l)
{
	uint32_t nr = l->view.rec->nr_files, *names;
	size_t pos = 0, len = 0;
	void *space;
	int r;

	base_buf_clear(&m->loaded_names);
	r = base_buf_extend(&m->loaded_names, nr * sizeof(*names), &space);
	if (r < 0)
		return r;
	names = space;
	for (uint32_t i = 0; i < nr; i++) {
		const char *name = wire_file_next(&l->view, &pos, &len);
		int64_t index = PSEUDOIMG_NO_FILE;

		if (i == nr - 1 && has_locations(&l->view)) {
			l->locations = (const uint8_t *)name;
			l->locations_len = len;
			name = NULL;
		}
		if (name && len && (index = pseudoimg_names_put(&m->names, name, len)) < 0)
			return (int)index;
		names[i] = (uint32_t)index;
	}
	l->names = names;
	return 0;
}

/* Lines of the record, from @first on. */
static int load_lines(struct pseudoimg_model *m, const struct pseudoimg_loaded *l, uint32_t first)
{
	uint32_t nr = l->view.rec->nr_lines;
	struct pseudoimg_row *rows;
	void *space;
	int r = base_buf_extend(&m->loaded_rows, nr * sizeof(*rows), &space);
	if (r < 0)
		return r;
	rows = space;
	for (uint32_t i = 0; i < nr; i++) {
		const struct wire_line *from = &l->view.lines[i];
		uint32_t file = from->line ? l->names[from->file] : PSEUDOIMG_NO_FILE;

		rows[i].off = from->code_off - first;
		if (file != PSEUDOIMG_NO_FILE) {
			rows[i].line = from->line;
			rows[i].file = file;
			rows[i].column = from->column;
			rows[i].discriminator = from->discriminator;
		}
	}
	return 0;
}

static int load_rows(struct pseudoimg_model *m, const struct pseudoimg_node *node,
		     struct pseudoimg_loaded *l)
{
	uint32_t first = l->view.rec->nr_lines ? l->view.lines[0].code_off : 0;
	int r;

	base_buf_clear(&m->loaded_rows);
	if (l->locations) {
		first = 0;
		r = pseudoimg_locations_read(l->locations, l->locations_len, l->view.lines[0].line,
					     node->len, l->names[0], &m->loaded_rows);
	} else {
		r = load_lines(m, l, first);
	}
	if (r < 0)
		return r;
	l->seq = (struct pseudoimg_seq){ .at = pseudoimg_node_span(node),
					 .rows = (const void *)m->loaded_rows.data,
					 .nr_rows = (uint32_t)(m->loaded_rows.len /
							       sizeof(struct pseudoimg_row)) };
	l->seq.at.start += first;
	l->seq.at.len -= first;
	pseudoimg_runs_place(m, &l->seq.at);
	return 0;
}

int pseudoimg_model_load_lines(struct pseudoimg_model *m, const struct pseudoimg_node *node,
			       struct pseudoimg_loaded *out)
{
	int r = pseudoimg_model_load(m, node, out);

	if (r < 0 || !out->view.rec)
		return r;
	r = load_names(m, out);
	return r < 0 ? r : load_rows(m, node, out);
}

struct pseudoimg_seq pseudoimg_model_seq(const struct pseudoimg_model *m, size_t index)
{
	struct pseudoimg_seq seq = m->seqs.v[index];

	seq.rows = m->rows.v + seq.first_row;
	return seq;
}
