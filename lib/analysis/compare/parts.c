/* SPDX-License-Identifier: BSD-2-Clause */
/* One procedure in two sets of samples, by the samples of its blocks or lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code.h"
#include "parts.h"

bool parts_same_code(const struct analysis_listing *a, const struct analysis_listing *b)
{
	uint64_t hash_a, hash_b;

	return a->symbol.len == b->symbol.len &&
	       analysis_code_hash(a->img, &a->symbol, true, &hash_a) >= 0 &&
	       analysis_code_hash(b->img, &b->symbol, true, &hash_b) >= 0 && hash_a == hash_b;
}

static int add(struct parts *p, const struct parts_row *row)
{
	int r = base_grow(&p->v, &p->cap, p->nr + 1, sizeof(*p->v));

	if (r >= 0)
		p->v[p->nr++] = *row;
	return r;
}

void parts_name_block(const struct flow *f, const struct analysis_listing *first, uint64_t off,
		      struct parts_row *row)
{
	uint32_t b = flow_block_at(f, first->symbol.vaddr + off);

	if (b == FLOW_OUTSIDE)
		return;
	row->from = f->blocks[b].vaddr - first->symbol.vaddr;
	row->end = f->blocks[b].end - first->symbol.vaddr;
	for (size_t i = 0; i < first->nr_units; i++) {
		const struct analysis_unit *u = &first->units[i];

		if (u->vaddr == f->blocks[b].vaddr && u->line) {
			row->file = first->files[u->file];
			row->line = u->line;
		}
	}
}

static int add_set(struct parts *p, const struct analysis_listing *const l[2], int set,
		   size_t event, const struct flow *f)
{
	const struct analysis_listing *own = l[set];
	int r = 0;

	for (size_t i = 0; i < own->nr_units && r >= 0; i++) {
		const struct analysis_unit *u = &own->units[i];
		struct parts_row row = { 0 };

		if (!u->count || !u->count[event])
			continue;
		row.count[set] = u->count[event];
		p->total[set] += u->count[event];
		if (f) {
			parts_name_block(f, l[0], u->vaddr - own->symbol.vaddr, &row);
		} else if (u->line) {
			row.file = own->files[u->file];
			row.line = u->line;
		}
		r = add(p, &row);
	}
	return r;
}

static int by_file(const struct parts_row *a, const struct parts_row *b)
{
	int r = strcmp(a->file ? base_path_name(a->file) : "",
		       b->file ? base_path_name(b->file) : "");

	return r ? r : (a->line > b->line) - (a->line < b->line);
}

int parts_by_place(const struct parts_row *a, const struct parts_row *b, bool by_line)
{
	if (by_line)
		return by_file(a, b);
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->end > b->end) - (a->end < b->end);
}

static int by_place(const void *a, const void *b, void *ctx)
{
	const struct parts *p = ctx;

	return parts_by_place(a, b, p->by_line);
}

static int by_range(const void *pa, const void *pb, void *ctx)
{
	const struct parts_row *a = pa, *b = pb;
	uint64_t sum_a = a->count[0] + a->count[1], sum_b = b->count[0] + b->count[1];

	if (a->range != b->range)
		return a->range > b->range ? -1 : 1;
	if (sum_a != sum_b)
		return sum_a > sum_b ? -1 : 1;
	return by_place(pa, pb, ctx);
}

/* Each place once, with all its samples. */
static void settle(struct parts *p)
{
	size_t kept = 0;

	if (!p->nr)
		return;
	qsort_r(p->v, p->nr, sizeof(*p->v), by_place, p);
	for (size_t i = 0; i < p->nr; i++) {
		if (kept && by_place(&p->v[kept - 1], &p->v[i], p) == 0) {
			p->v[kept - 1].count[0] += p->v[i].count[0];
			p->v[kept - 1].count[1] += p->v[i].count[1];
		} else {
			p->v[kept++] = p->v[i];
		}
	}
	p->nr = kept;
	for (size_t i = 0; i < p->nr; i++) {
		double a = (double)p->v[i].count[0], b = (double)p->v[i].count[1];

		p->v[i].range = (a > b ? a - b : b - a) / (a + b);
	}
	qsort_r(p->v, p->nr, sizeof(*p->v), by_range, p);
}

int parts_compare(const struct analysis_listing *const l[2], const size_t event[2], bool by_line,
		  struct parts *out, struct base_err *err)
{
	struct flow *f = NULL;
	int r = 0;

	out->by_line = by_line;
	if (!by_line)
		r = flow_build(l[0]->img, &l[0]->symbol, &f, err);
	for (int set = 0; set < 2 && r >= 0; set++)
		r = add_set(out, l, set, event[set], f);
	if (r >= 0)
		settle(out);
	flow_free(f);
	return r < 0 ? base_fail_errno(err, r, "cannot compare '%s'", l[0]->symbol.name) : 0;
}

void parts_release(struct parts *p)
{
	free(p->v);
	memset(p, 0, sizeof(*p));
}
