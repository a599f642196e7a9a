/* SPDX-License-Identifier: BSD-2-Clause */
/* Instruction samples are added up by image, procedure or instruction. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "insn.h"
#include "listing.h"
#include "told.h"

/* ---- values ---------------------------------------------------------------------------------- */

double told_value(const struct isample_columns *c, const struct told_values *v, size_t column)
{
	return isample_column_value(&c->v[column], &v->of[column], &v->by[column]);
}

static void add_insn(const struct isample_columns *c, const struct profdb_insn *m,
		     struct told_values *v)
{
	v->count += m->count;
	for (size_t i = 0; i < c->nr; i++) {
		isample_value_add(&v->of[i], &c->v[i].of, m->known, m->bits, m->count, m->sum);
		if (c->v[i].ratio)
			isample_value_add(&v->by[i], &c->v[i].by, m->known, m->bits, m->count,
					  m->sum);
	}
}

static void add_value(struct isample_value *to, const struct isample_value *v)
{
	if (base_add_overflow(to->value, v->value, &to->value))
		to->value = UINT64_MAX;
	to->told += v->told;
}

void told_join(const struct isample_columns *c, const struct told_values *v, struct told_values *to)
{
	to->count += v->count;
	for (size_t i = 0; i < c->nr; i++) {
		add_value(&to->of[i], &v->of[i]);
		add_value(&to->by[i], &v->by[i]);
	}
}

/* Its event was chosen. */
static bool is_wanted(const struct analysis_image *ai, const struct profdb_insn *m)
{
	return ai->event_of[m->event] != SIZE_MAX;
}

void told_add(const struct isample_columns *c, const struct analysis_image *ai, uint64_t from,
	      uint64_t to, struct told_values *v)
{
	const struct profdb_profile *p = ai->profile;
	size_t nr = profdb_profile_nr_insns(p);

	for (size_t i = BASE_BOUND(k, nr, profdb_profile_insn(p, k)->off < from); i < nr; i++) {
		const struct profdb_insn *m = profdb_profile_insn(p, i);

		if (m->off > to)
			break;
		told_add_entry(c, ai, m, v);
	}
}

void told_add_entry(const struct isample_columns *c, const struct analysis_image *ai,
		    const struct profdb_insn *m, struct told_values *v)
{
	if (m->off != PROFDB_OUTSIDE && is_wanted(ai, m))
		add_insn(c, m, v);
}

void told_add_unit(const struct isample_columns *c, const struct analysis_listing *l,
		   const struct analysis_unit *u, struct told_values *v)
{
	for (size_t i = u ? analysis_told_at(l, u->vaddr) : 0; i < l->nr_told; i++) {
		if (u && l->told[i].vaddr != u->vaddr)
			break;
		add_insn(c, l->told[i].insn, v);
	}
}

struct told_event told_event(const struct analysis *a, size_t event)
{
	struct told_event t = { 0 };

	for (size_t i = 0; i < a->nr_images; i++) {
		const struct analysis_image *ai = a->images[i];

		for (size_t k = 0; k < profdb_profile_nr_insns(ai->profile); k++) {
			const struct profdb_insn *m = profdb_profile_insn(ai->profile, k);

			if (ai->event_of[m->event] != event)
				continue;
			if (m->off == PROFDB_OUTSIDE)
				t.roomless += m->count;
			else
				t.told += m->count;
		}
	}
	return t;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* An image whose samples are being added. */
struct adding {
	struct told_rows *rows;
	struct analysis_image *ai;
	enum told_by by;
	struct image *img;	    /* NULL: it cannot be opened */
	struct insn_disasm *disasm; /* or NULL */
	struct base_map by_start;   /* start of a procedure: index of its row + 1 */
	size_t last;		    /* index of the row before + 1; 0: none */
	uint64_t last_off;
};

static struct told_row *make_row(struct adding *x)
{
	struct told_rows *rows = x->rows;

	if (base_grow(&rows->v, &rows->cap, rows->nr + 1, sizeof(*rows->v)) < 0)
		return NULL;
	rows->v[rows->nr] = (struct told_row){ .image = x->ai };
	return &rows->v[rows->nr++];
}

static int describe_insn(struct adding *x, struct told_row *row)
{
	struct insn_line insn;
	struct image_line line;
	uint8_t code[16];
	char text[256] = "";
	size_t len;

	len = x->disasm && row->placed ? image_bytes(x->img, row->vaddr, code, sizeof(code)) : 0;
	if (len) {
		insn_disasm_one(x->disasm, code, len, row->vaddr, &insn);
		analysis_insn_text(x->img, &insn, text, sizeof(text));
	}
	row->text = strdup(text);
	if (row->placed && image_line_at(x->img, row->vaddr, &line) >= 0) {
		row->file = strdup(line.file);
		row->line = line.line;
	}
	return row->text ? 0 : -ENOMEM;
}

/* The row of samples at @off in procedure @s (may be NULL). */
static struct told_row *row_of(struct adding *x, uint64_t off, uint64_t vaddr, bool placed,
			       const struct image_symbol *s)
{
	uint64_t start = s ? s->vaddr : UINT64_MAX;
	struct told_row *row;
	void *known = NULL;

	if (x->last && (x->by == TOLD_BY_IMAGE || (x->by == TOLD_BY_INSN && x->last_off == off)))
		return &x->rows->v[x->last - 1];
	if (x->by == TOLD_BY_PROCEDURE)
		known = base_map_get(&x->by_start, &start, sizeof(start));
	if (known)
		return &x->rows->v[(uintptr_t)known - 1];
	row = make_row(x);
	if (!row)
		return NULL;
	x->last = x->rows->nr;
	x->last_off = off;
	if (x->by == TOLD_BY_IMAGE)
		return row;
	row->procedure = strdup(s ? s->name : analysis_image_label(x->ai));
	row->off = off;
	row->placed = placed;
	row->vaddr = x->by == TOLD_BY_INSN ? vaddr : start;
	row->into = s ? vaddr - s->vaddr : 0;
	if (!row->procedure || (x->by == TOLD_BY_INSN && describe_insn(x, row) < 0))
		return NULL;
	if (x->by == TOLD_BY_PROCEDURE &&
	    base_map_set(&x->by_start, &start, sizeof(start), (void *)(uintptr_t)x->rows->nr) < 0)
		return NULL;
	return row;
}

static bool is_in(const struct analysis_founds *in, const struct analysis_image *ai, uint64_t vaddr)
{
	for (size_t i = 0; i < in->nr; i++)
		if (in->v[i].image == ai && vaddr - in->v[i].vaddr < in->v[i].len)
			return true;
	return false;
}

static int add_one(struct adding *x, const struct isample_columns *c, const struct profdb_insn *m,
		   const struct analysis_founds *in)
{
	struct told_values one = { 0 };
	uint64_t vaddr = 0;
	bool placed = x->img && image_vaddr(x->img, m->off, &vaddr) >= 0;
	struct told_row *row;

	if (in && (!placed || !is_in(in, x->ai, vaddr)))
		return 0;
	row = row_of(x, m->off, vaddr, placed, placed ? image_symbol_at(x->img, vaddr) : NULL);
	if (!row)
		return -ENOMEM;
	add_insn(c, m, &one);
	told_join(c, &one, &row->values);
	told_join(c, &one, &x->rows->total);
	return 0;
}

int told_rows_add(struct told_rows *rows, const struct isample_columns *c, struct analysis *a,
		  struct analysis_image *ai, enum told_by by, const struct analysis_founds *in)
{
	struct adding x = { .rows = rows, .ai = ai, .by = by };
	size_t nr = profdb_profile_nr_insns(ai->profile);
	int r = 0;

	if (nr && (by != TOLD_BY_IMAGE || in) && analysis_image_open(a, ai, &x.img, NULL) < 0)
		x.img = NULL;
	if (x.img && by == TOLD_BY_INSN)
		insn_disasm_open(image_machine(x.img), &x.disasm, NULL);
	for (size_t i = 0; r >= 0 && i < nr; i++) {
		const struct profdb_insn *m = profdb_profile_insn(ai->profile, i);

		if (m->off != PROFDB_OUTSIDE && is_wanted(ai, m))
			r = add_one(&x, c, m, in);
	}
	base_map_release(&x.by_start);
	insn_disasm_close(x.disasm);
	image_close(x.img);
	return r;
}

/* ---- order ----------------------------------------------------------------------------------- */

struct key {
	double value;
	struct told_row *row;
};

static int by_address(const struct told_row *a, const struct told_row *b)
{
	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return (a->off > b->off) - (a->off < b->off);
}

static int by_value(const void *pa, const void *pb)
{
	const struct key *a = pa, *b = pb;
	int r;

	if (isnan(a->value) || isnan(b->value))
		r = isnan(a->value) - isnan(b->value);
	else
		r = (a->value < b->value) - (a->value > b->value);
	if (!r)
		r = (a->row->values.count < b->row->values.count) -
		    (a->row->values.count > b->row->values.count);
	if (!r)
		r = strcmp(a->row->image->name, b->row->image->name);
	return r ? r : by_address(a->row, b->row);
}

void told_rows_sort(struct told_rows *rows, const struct isample_columns *c)
{
	struct key *keys = calloc(rows->nr + 1, sizeof(*keys));
	struct told_row *v = calloc(rows->nr + 1, sizeof(*v));

	for (size_t i = 0; keys && i < rows->nr; i++)
		keys[i] = (struct key){ told_value(c, &rows->v[i].values, 0), &rows->v[i] };
	if (keys && v) {
		qsort(keys, rows->nr, sizeof(*keys), by_value);
		for (size_t i = 0; i < rows->nr; i++)
			v[i] = *keys[i].row;
		free(rows->v);
		rows->v = v;
		rows->cap = rows->nr + 1;
		v = NULL;
	}
	free(keys);
	free(v);
}

void told_rows_others(const struct told_rows *rows, const struct isample_columns *c, size_t first,
		      struct told_values *out)
{
	*out = (struct told_values){ 0 };
	for (size_t i = first; i < rows->nr; i++)
		told_join(c, &rows->v[i].values, out);
}

void told_rows_release(struct told_rows *rows)
{
	for (size_t i = 0; i < rows->nr; i++) {
		free(rows->v[i].procedure);
		free(rows->v[i].text);
		free(rows->v[i].file);
	}
	free(rows->v);
	*rows = (struct told_rows){ 0 };
}
