/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares one procedure in two sets of samples, by block or line: samples, costs, frequencies,
 * stalls. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "code.h"
#include "compare.h"
#include "estimate.h"

/* ---- samples --------------------------------------------------------------------------------- */

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

/* Sets @row to the block over @off from the start of the procedure @first, whose graph is @f;
 * without such a block it stays. */
static void parts_name_block(const struct flow *f, const struct analysis_listing *first,
			     uint64_t off, struct parts_row *row)
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
			row->line[0] = row->line[1] = u->line;
		}
	}
}

static void name_line(const struct align *align, const struct analysis_listing *own, int set,
		      const struct analysis_unit *u, struct parts_row *row)
{
	row->file = own->files[u->file];
	row->line[set] = u->line;
	row->line[!set] = align ? align_other(align, set, u) : u->line;
}

static int count_set(struct parts *p, const struct analysis_listing *const l[2], int set,
		     size_t event, const struct flow *f, const struct align *align)
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
			name_line(align, own, set, u, &row);
		}
		r = add(p, &row);
	}
	return r;
}

/* Rows of A alone stand before the others of that number. */
static int by_file(const struct parts_row *a, const struct parts_row *b)
{
	int r = strcmp(a->file ? base_path_name(a->file) : "",
		       b->file ? base_path_name(b->file) : "");

	unsigned int line_a = a->line[!a->line[0]], line_b = b->line[!b->line[0]];

	if (r || line_a != line_b)
		return r ? r : line_a < line_b ? -1 : 1;
	if (a->line[0] != b->line[0])
		return a->line[0] > b->line[0] ? -1 : 1;
	return (a->line[1] > b->line[1]) - (a->line[1] < b->line[1]);
}

/* Compares places: source lines by the file's base name, or blocks. */
static int parts_by_place(const struct parts_row *a, const struct parts_row *b, bool by_line)
{
	if (by_line)
		return by_file(a, b);
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->end > b->end) - (a->end < b->end);
}

static int by_count_place(const void *a, const void *b, void *ctx)
{
	const struct parts *p = ctx;

	return parts_by_place(a, b, p->by_line);
}

static int by_count_range(const void *pa, const void *pb, void *ctx)
{
	const struct parts_row *a = pa, *b = pb;
	uint64_t sum_a = a->count[0] + a->count[1], sum_b = b->count[0] + b->count[1];

	if (a->range != b->range)
		return a->range > b->range ? -1 : 1;
	if (sum_a != sum_b)
		return sum_a > sum_b ? -1 : 1;
	return by_count_place(pa, pb, ctx);
}

/* Merges equal places and sums their samples. */
static void settle_counts(struct parts *p)
{
	size_t kept = 0;

	if (!p->nr)
		return;
	qsort_r(p->v, p->nr, sizeof(*p->v), by_count_place, p);
	for (size_t i = 0; i < p->nr; i++) {
		if (kept && by_count_place(&p->v[kept - 1], &p->v[i], p) == 0) {
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
	qsort_r(p->v, p->nr, sizeof(*p->v), by_count_range, p);
}

int parts_compare(const struct analysis_listing *const l[2], const size_t event[2], bool by_line,
		  const struct align *align, struct parts *out, struct base_err *err)
{
	struct flow *f = NULL;
	int r = 0;

	out->by_line = by_line;
	if (!by_line)
		r = flow_build(l[0]->img, &l[0]->symbol, &f, err);
	for (int set = 0; set < 2 && r >= 0; set++)
		r = count_set(out, l, set, event[set], f, align);
	if (r >= 0)
		settle_counts(out);
	flow_free(f);
	return r < 0 ? base_fail_errno(err, r, "cannot compare '%s'", l[0]->symbol.name) : 0;
}

/* ---- costs, frequencies, stalls -------------------------------------------------------------- */

/* ---- places ---------------------------------------------------------------------------------- */

static bool is_known(const struct compare *c, enum freq_confidence confidence)
{
	return confidence >= c->least;
}

static void add_insn(const struct compare *c, struct compare_sum *s, const struct calc_insn *insn,
		     double period)
{
	s->stalled += insn->stalled;
	s->unexplained += insn->unexplained;
	if (!is_known(c, insn->confidence))
		return;
	s->runs += insn->freq;
	s->units += insn->samples * period;
	if (!is_known(c, s->confidence) || insn->freq > s->freq) {
		s->freq = insn->freq;
		s->confidence = insn->confidence;
	}
}

static void add_sum(const struct compare *c, struct compare_sum *to, const struct compare_sum *s)
{
	to->stalled += s->stalled;
	to->unexplained += s->unexplained;
	to->runs += s->runs;
	to->units += s->units;
	if (is_known(c, s->confidence) && (!is_known(c, to->confidence) || s->freq > to->freq)) {
		to->freq = s->freq;
		to->confidence = s->confidence;
	}
}

/* Finds the place of a unit, which is often the last one. */
static int find_place(struct compare *c, const struct graph_flow *const f[2], int set,
		      const struct analysis_unit *u, size_t begin)
{
	const struct analysis_listing *own = f[set]->parts[0], *first = f[0]->parts[0];
	uint64_t off = u->vaddr - own->symbol.vaddr;
	struct compare_place *last = c->nr > begin ? &c->v[c->nr - 1] : NULL;
	struct parts_row row = { 0 };
	int r;

	if (!c->by_line && last && off >= last->at.from && off < last->at.end)
		return 0;
	if (!c->by_line) {
		parts_name_block(f[0]->flow, first, off, &row);
	} else if (u->line) {
		name_line(c->align, own, set, u, &row);
	}
	if (last && parts_by_place(&last->at, &row, c->by_line) == 0)
		return 0;
	r = base_grow(&c->v, &c->cap, c->nr + 1, sizeof(*c->v));
	if (r >= 0)
		c->v[c->nr++] = (struct compare_place){ .at = row };
	return r;
}

static int add_set(struct compare *c, const struct graph_flow *const f[2], int set, size_t event,
		   const struct calc_insns *insns)
{
	const struct analysis_listing *own = f[set]->parts[0];
	size_t begin = c->nr;
	int r = 0;

	for (size_t i = 0; i < own->nr_units && r >= 0; i++) {
		const struct analysis_unit *u = &own->units[i];
		const struct insn *insn = flow_insn_at(f[set]->flow, u->vaddr);

		r = find_place(c, f, set, u, begin);
		if (r < 0)
			break;
		c->v[c->nr - 1].at.count[set] += u->count ? u->count[event] : 0;
		/* Samples inside an instruction already count for the instruction. */
		if (insn && insn->vaddr == u->vaddr)
			add_insn(c, &c->v[c->nr - 1].sum[set],
				 &insns->v[insn - f[set]->flow->insns], insns->period);
	}
	return r;
}

static bool in_cycles(const struct graph_flow *f, size_t event)
{
	const struct analysis *a = f->parts[0]->a;

	return event < a->nr_events && estimate_is_cycles(a->events[event].name);
}

static int by_place(const void *pa, const void *pb, void *ctx)
{
	const struct compare_place *a = pa, *b = pb;
	const struct compare *c = ctx;

	return parts_by_place(&a->at, &b->at, c->by_line);
}

/* Merges equal places. */
static void settle(struct compare *c)
{
	size_t kept = 0;

	if (!c->nr)
		return;
	qsort_r(c->v, c->nr, sizeof(*c->v), by_place, c);
	for (size_t i = 0; i < c->nr; i++) {
		if (!kept || by_place(&c->v[kept - 1], &c->v[i], c) != 0) {
			c->v[kept++] = c->v[i];
			continue;
		}
		for (int set = 0; set < 2; set++) {
			c->v[kept - 1].at.count[set] += c->v[i].at.count[set];
			add_sum(c, &c->v[kept - 1].sum[set], &c->v[i].sum[set]);
		}
	}
	c->nr = kept;
}

/* Takes over the text. */
static void take_kind(struct compare *c, int set, struct calc_insns *insns)
{
	c->known[set] = insns->known;
	c->timed[set] = insns->timed;
	c->absolute[set] = insns->absolute;
	c->period[set] = insns->period;
	c->traces[set] = insns->traces;
	c->text[set] = insns->text;
	insns->text = NULL;
}

int compare_procedures(const struct graph_flow *const f[2], const size_t event[2],
		       const struct compare_options *o, struct compare *out, struct base_err *err)
{
	int r = 0;

	out->by_line = o->by_line;
	out->align = o->align;
	out->least = o->least;
	out->apart = in_cycles(f[0], event[0]) != in_cycles(f[1], event[1]);
	for (int set = 0; set < 2 && r >= 0; set++) {
		struct calc_insns insns = { 0 };

		r = calc_insns(f[set], event[set], o->outside, &insns, err);
		take_kind(out, set, &insns);
		if (r >= 0 && add_set(out, f, set, event[set], &insns) < 0)
			r = base_fail_errno(err, -ENOMEM, "cannot compare '%s'",
					    f[set]->parts[0]->symbol.name);
		calc_insns_release(&insns);
	}
	if (r >= 0)
		settle(out);
	return r;
}

void compare_release(struct compare *c)
{
	free(c->v);
	free(c->text[0]);
	free(c->text[1]);
	memset(c, 0, sizeof(*c));
}

/* ---- rows ------------------------------------------------------------------------------------ */

static double stalls_of(const struct compare_sum *s, enum compare_measure m)
{
	return m == COMPARE_STALLS   ? s->stalled
	       : m == COMPARE_STATIC ? s->unexplained
				     : fmax(0, s->stalled - s->unexplained);
}

static bool measure(const struct compare *c, int set, const struct compare_place *place,
		    enum compare_measure m, double *value)
{
	const struct compare_sum *s = &place->sum[set];

	if (m == COMPARE_FREQUENCY) {
		*value = s->freq;
		return is_known(c, s->confidence);
	}
	if (m == COMPARE_CPI) {
		*value = s->runs > 0 ? s->units / s->runs : 0;
		return s->runs > 0;
	}
	*value = stalls_of(s, m);
	if (!compare_absolute(c))
		return true;
	*value = s->freq > 0 ? *value * c->period[set] / s->freq : 0;
	return is_known(c, s->confidence) && s->freq > 0;
}

static int by_range(const void *pa, const void *pb, void *ctx)
{
	const struct compare_row *a = pa, *b = pb;
	const struct compare *c = ctx;
	const struct parts_row *x = &a->place->at, *y = &b->place->at;
	uint64_t sum_a = x->count[0] + x->count[1], sum_b = y->count[0] + y->count[1];

	if (a->range != b->range)
		return a->range > b->range ? -1 : 1;
	if (sum_a != sum_b)
		return sum_a > sum_b ? -1 : 1;
	return parts_by_place(x, y, c->by_line);
}

int compare_rows(const struct compare *c, enum compare_measure m, struct compare_row **out)
{
	struct compare_row *v = calloc(c->nr + 1, sizeof(*v));
	size_t nr = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < c->nr; i++) {
		struct compare_row row = { .place = &c->v[i], .range = -1 };

		for (int set = 0; set < 2; set++)
			row.known[set] = measure(c, set, row.place, m, &row.value[set]);
		if (!(row.known[0] && row.value[0] > 0) && !(row.known[1] && row.value[1] > 0))
			continue;
		if (row.known[0] && row.known[1])
			row.range =
				fabs(row.value[0] - row.value[1]) / (row.value[0] + row.value[1]);
		v[nr++] = row;
	}
	qsort_r(v, nr, sizeof(*v), by_range, (void *)c);
	*out = v;
	return (int)nr;
}
