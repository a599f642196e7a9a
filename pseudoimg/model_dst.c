/* SPDX-License-Identifier: BSD-2-Clause */
/* Turn DST ranges into routines and lines of the model, within the owned code ranges. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "pseudoimg_internal.h"

/* Above every place in a job: what a record brings goes before what DST says. */
#define DST_ORDER (UINT64_C(1) << 62)

/* The facility's first code range is the one with the lowest image offset. */
static uint64_t first_base(const struct pseudoimg_model *m, uint32_t facility)
{
	const struct pseudoimg_span *run;
	uint64_t base = 0, lowest = UINT64_MAX, off;

	for (size_t i = 0; i < m->ranges.nr; i++) {
		const struct pseudoimg_range *range = &m->ranges.v[i];

		run = pseudoimg_runs_find(m, range->range_base);
		if (range->facility != facility || !run)
			continue;
		off = run->img_off + (range->range_base - run->start);
		if (off < lowest) {
			lowest = off;
			base = range->range_base;
		}
	}
	return base;
}

static bool lies_in_range(const struct pseudoimg_model *m, uint32_t facility,
			  const struct pseudoimg_dst_routine *r)
{
	size_t at = BASE_UPPER_BOUND(m->ranges.v, m->ranges.nr, range_base, r->addr);
	const struct pseudoimg_range *range = &m->ranges.v[at ? at - 1 : 0];

	return at && range->facility == facility &&
	       r->addr - range->range_base <= range->range_len &&
	       r->len <= range->range_len - (r->addr - range->range_base);
}

static size_t nr_in_ranges(const struct pseudoimg_model *m, uint32_t facility,
			   const struct pseudoimg_dst *dst)
{
	size_t nr = 0;

	for (size_t i = 0; i < dst->routines.nr; i++)
		nr += lies_in_range(m, facility, &dst->routines.v[i]);
	return nr;
}

/*
 * Addresses are offsets (include/dbgdyn_vms.h). A literal port from OpenVMS writes addresses,
 * though, if its code lies below 4 GB: so they are read if more routines lie in code ranges then. A
 * BASE record has no place there.
 */
static int decode_either(const struct pseudoimg_model *m, struct pseudoimg_dst_range *d, size_t len)
{
	struct pseudoimg_dst absolute;
	size_t nr;
	int r;

	r = pseudoimg_dst_decode(d->copy, len, first_base(m, d->facility), &d->dst);
	nr = r < 0 ? 0 : nr_in_ranges(m, d->facility, &d->dst);
	if (r < 0 || d->dst.absolute.nr || nr == d->dst.routines.nr)
		return r;
	r = pseudoimg_dst_decode(d->copy, len, 0, &absolute);
	if (r < 0)
		return r;
	if (nr_in_ranges(m, d->facility, &absolute) > nr) {
		pseudoimg_dst_release(&d->dst);
		d->dst = absolute;
	} else {
		pseudoimg_dst_release(&absolute);
	}
	return 0;
}

/* An address's place in the image says the same of every run of the program. */
static void mask_absolute(const struct pseudoimg_model *m, struct pseudoimg_dst_range *d)
{
	const struct pseudoimg_span *run;

	for (size_t i = 0; i < d->dst.absolute.nr; i++) {
		const struct pseudoimg_str *s = &d->dst.absolute.v[i];
		uint8_t *at = d->copy + (s->p - (const char *)d->copy);
		uint64_t addr = 0;

		memcpy(&addr, at, s->len);
		run = pseudoimg_runs_find(m, addr);
		addr = run ? run->img_off + (addr - run->start) : UINT64_MAX;
		memcpy(at, &addr, s->len);
	}
}

static int decode(struct pseudoimg_model *m, struct pseudoimg_dst_range *d)
{
	uint64_t rest = d->range_len - d->sent.len;
	size_t len;
	int r;

	/* The last record may end in zeros that were not sent. */
	if (rest > PSEUDOIMG_DST_RECORD_MAX)
		rest = PSEUDOIMG_DST_RECORD_MAX;
	len = d->sent.len + rest;
	d->copy = calloc(1, len + 1);
	if (!d->copy)
		return -ENOMEM;
	if (d->sent.len)
		memcpy(d->copy, d->sent.data, d->sent.len);
	r = decode_either(m, d, len);
	if (r < 0)
		return r;
	while (len > d->dst.used && !d->copy[len - 1])
		len--;
	d->len = len;
	m->nr_bad += d->dst.nr_bad;
	mask_absolute(m, d);
	return 0;
}

static int by_contents(const void *a, const void *b)
{
	const struct pseudoimg_dst_range *x = a, *y = b;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->copy, y->copy, x->len);
}

/* ---- owned areas ----------------------------------------------------------------------------- */

struct areas {
	PSEUDOIMG_ARRAY(struct pseudoimg_span) v;
};

static int areas_make(struct areas *a, const struct pseudoimg_model *m)
{
	for (size_t i = 0; i < m->ranges.nr; i++) {
		struct pseudoimg_span *s = PSEUDOIMG_PUSH(&a->v);

		if (!s)
			return -ENOMEM;
		*s = (struct pseudoimg_span){ .start = m->ranges.v[i].range_base,
					      .len = m->ranges.v[i].range_len,
					      .order = m->ranges.v[i].at.order };
	}
	a->v.nr = pseudoimg_span_disjoint(a->v.v, a->v.nr, sizeof(*a->v.v));
	return 0;
}

static bool areas_hold(const struct areas *a, const struct pseudoimg_span *s)
{
	const struct pseudoimg_span *area = pseudoimg_span_find(a->v.v, a->v.nr, s->start);

	return area && s->start - area->start <= area->len &&
	       s->len <= area->len - (s->start - area->start);
}

/* ---- changed code -----------------------------------------------------------------------------
 *
 * A page of an owned range that was changed after it was read stands as a range of its own: a place
 * ties it to where it stood. What DST says of those addresses is said of each of them.
 */

struct copies {
	PSEUDOIMG_ARRAY(struct wire_place) v; /* ordered by vaddr */
	uint64_t longest;
};

static int by_vaddr(const void *a, const void *b)
{
	const struct wire_place *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->elf < y->elf ? -1 : x->elf > y->elf;
}

static bool is_range(const struct pseudoimg_model *m, uint64_t base, uint64_t len)
{
	size_t lo = BASE_LOWER_BOUND(m->ranges.v, m->ranges.nr, range_base, base);

	return lo < m->ranges.nr && m->ranges.v[lo].range_base == base &&
	       m->ranges.v[lo].range_len == len;
}

static int copies_make(struct copies *c, const struct pseudoimg_model *m)
{
	const struct wire_head *rec;
	size_t pos = 0;

	while ((rec = wire_next(m->notes.data, m->notes.len, &pos))) {
		const struct wire_place *place = (const void *)rec;
		struct wire_place *to;

		if (rec->type != WIRE_PLACE || place->len > UINT64_MAX - place->vaddr ||
		    !is_range(m, place->elf, place->len))
			continue;
		to = PSEUDOIMG_PUSH(&c->v);
		if (!to)
			return -ENOMEM;
		*to = *place;
		if (place->len > c->longest)
			c->longest = place->len;
	}
	if (c->v.nr)
		qsort(c->v.v, c->v.nr, sizeof(*c->v.v), by_vaddr);
	return 0;
}

/* The first that may overlap what begins at @vaddr. */
static size_t copies_from(const struct copies *c, uint64_t vaddr)
{
	uint64_t least = vaddr > c->longest ? vaddr - c->longest : 0;
	return BASE_LOWER_BOUND(c->v.v, c->v.nr, vaddr, least);
}

/* The part of [*start, *start + *len) that @place holds. */
static bool clip(const struct wire_place *place, uint64_t *start, uint64_t *len)
{
	uint64_t end = *start + *len, last = place->vaddr + place->len;

	if (*start < place->vaddr)
		*start = place->vaddr;
	if (end > last)
		end = last;
	*len = end > *start ? end - *start : 0;
	return *len != 0;
}

/* ---- routines -------------------------------------------------------------------------------- */

static int add_routine(struct pseudoimg_model *m, const struct areas *areas, uint64_t start,
		       uint64_t len, const struct pseudoimg_str *from)
{
	struct pseudoimg_span at = { .start = start, .len = len };
	struct pseudoimg_node *to;
	struct pseudoimg_str *name;

	if (len > WIRE_CODE_MAX || !areas_hold(areas, &at) || !pseudoimg_runs_place(m, &at)) {
		m->nr_bad++;
		return 0;
	}
	to = PSEUDOIMG_PUSH(&m->nodes);
	name = PSEUDOIMG_PUSH(&m->dst_names);
	if (!to || !name)
		return -ENOMEM;
	*name = *from;
	*to = (struct pseudoimg_node){
		.start = start,
		.len = (uint32_t)len,
		.ref = PSEUDOIMG_DST_REF + (uint32_t)(m->dst_names.nr - 1),
	};
	return 0;
}

static int add_routines(struct pseudoimg_model *m, const struct areas *areas,
			const struct copies *copies, const struct pseudoimg_dst *dst)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < dst->routines.nr; i++) {
		const struct pseudoimg_dst_routine *from = &dst->routines.v[i];

		r = add_routine(m, areas, from->addr, from->len, &from->name);
		for (size_t k = copies_from(copies, from->addr); r >= 0 && k < copies->v.nr; k++) {
			const struct wire_place *place = &copies->v.v[k];
			uint64_t start = from->addr, len = from->len;

			if (place->vaddr >= from->addr + from->len)
				break;
			if (clip(place, &start, &len))
				r = add_routine(m, areas, place->elf + (start - place->vaddr), len,
						&from->name);
		}
	}
	return r;
}

static uint64_t end_of(const struct pseudoimg_node *n)
{
	return n->start + n->len;
}

static bool of_record(const struct pseudoimg_node *n)
{
	return n->ref < PSEUDOIMG_DST_REF;
}

/* @inner begins within @outer. Lexical nesting of two routines of DST is no overlap. */
static bool nests(const struct pseudoimg_node *outer, const struct pseudoimg_node *inner)
{
	return !of_record(outer) && !of_record(inner) && inner->len < outer->len &&
	       end_of(inner) <= end_of(outer);
}

/* Refuse routines that overlap without nesting, those that DST brought later. */
static int refuse_overlaps(struct pseudoimg_model *m)
{
	size_t *open = calloc(m->nodes.nr + 1, sizeof(*open)), depth = 0, kept = 0;
	struct pseudoimg_node *v = m->nodes.v;
	bool good;

	if (!open)
		return -ENOMEM;
	pseudoimg_nodes_sort(m);
	for (size_t i = 0; i < m->nodes.nr; i++) {
		while (depth && end_of(&v[open[depth - 1]]) <= v[i].start)
			depth--;
		/* A record stays; the routines of DST that it begins in go. */
		for (; depth && of_record(&v[i]) && !of_record(&v[open[depth - 1]]); depth--)
			v[open[depth - 1]].len = 0;
		good = !depth || nests(&v[open[depth - 1]], &v[i]);
		if (good) {
			v[kept] = v[i];
			open[depth++] = kept++;
		}
	}
	free(open);
	m->nr_bad += (uint32_t)(m->nodes.nr - kept);
	m->nodes.nr = kept;
	kept = 0;
	for (size_t i = 0; i < m->nodes.nr; i++)
		if (v[i].len)
			v[kept++] = v[i];
	m->nr_bad += (uint32_t)(m->nodes.nr - kept);
	m->nodes.nr = kept;
	return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/*
 * Make a sequence at @start from the rows [@first, @end) of the code in @from; row @end closes the
 * last one.
 */
static int put_seq(struct pseudoimg_model *m, const struct areas *areas,
		   const struct pseudoimg_dst_row *v, const uint32_t *files, size_t nr,
		   const struct pseudoimg_span *from, uint64_t start)
{
	struct pseudoimg_span at = { .start = start,
				     .len = from->len,
				     .order = DST_ORDER + m->seqs.nr };
	uint64_t end = from->start + from->len;
	struct pseudoimg_seq *seq;
	struct pseudoimg_row *row;

	if (at.len > UINT32_MAX || !areas_hold(areas, &at) || !pseudoimg_runs_place(m, &at)) {
		m->nr_bad++;
		return 0;
	}
	seq = PSEUDOIMG_PUSH(&m->seqs);
	if (!seq)
		return -ENOMEM;
	*seq = (struct pseudoimg_seq){ .at = at, .first_row = m->rows.nr };
	for (size_t i = 0; i < nr && v[i].addr < end; i++) {
		uint64_t addr = v[i].addr > from->start ? v[i].addr : from->start;
		uint32_t file = v[i].line ? files[v[i].file] : PSEUDOIMG_NO_FILE;

		if (v[i].addr < from->start && v[i + 1].addr <= from->start)
			continue;
		row = PSEUDOIMG_PUSH(&m->rows);
		if (!row)
			return -ENOMEM;
		*row = (struct pseudoimg_row){ .off = (uint32_t)(addr - from->start) };
		if (file != PSEUDOIMG_NO_FILE) {
			row->line = v[i].line;
			row->file = file;
		}
		seq->nr_rows++;
	}
	return 0;
}

/* The sequence of @nr rows, closed by the row behind them. */
static int add_seq(struct pseudoimg_model *m, const struct areas *areas,
		   const struct copies *copies, const struct pseudoimg_dst_row *v,
		   const uint32_t *files, size_t nr)
{
	struct pseudoimg_span all = { .start = v[0].addr, .len = v[nr].addr - v[0].addr };
	int r;

	if (!all.len)
		return 0;
	r = put_seq(m, areas, v, files, nr, &all, all.start);
	for (size_t k = copies_from(copies, all.start); r >= 0 && k < copies->v.nr; k++) {
		const struct wire_place *place = &copies->v.v[k];
		struct pseudoimg_span part = all;

		if (place->vaddr >= v[nr].addr)
			break;
		if (clip(place, &part.start, &part.len))
			r = put_seq(m, areas, v, files, nr, &part,
				    place->elf + (part.start - place->vaddr));
	}
	return r;
}
static int add_seqs(struct pseudoimg_model *m, const struct areas *areas,
		    const struct copies *copies, const struct pseudoimg_dst *dst)
{
	uint32_t *files = calloc(dst->files.nr + 1, sizeof(*files));
	size_t first = 0;
	int r = files ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < dst->files.nr; i++) {
		int64_t file = PSEUDOIMG_NO_FILE;

		if (dst->files.v[i].len)
			file = pseudoimg_names_put(&m->names, dst->files.v[i].p,
						   dst->files.v[i].len);
		r = file < 0 ? (int)file : 0;
		files[i] = (uint32_t)file;
	}
	for (size_t i = 0; r >= 0 && i < dst->rows.nr; i++) {
		if (!dst->rows.v[i].end)
			continue;
		r = add_seq(m, areas, copies, dst->rows.v + first, files, i - first);
		first = i + 1;
	}
	free(files);
	return r;
}

int pseudoimg_model_dst(struct pseudoimg_model *m)
{
	struct areas areas = { 0 };
	struct copies copies = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < m->dst.nr; i++)
		r = decode(m, &m->dst.v[i]);
	if (r < 0 || !m->dst.nr)
		return r;
	/* Ranges stand at addresses that differ from run to run: only what they hold can order
	 * them. */
	qsort(m->dst.v, m->dst.nr, sizeof(*m->dst.v), by_contents);
	r = areas_make(&areas, m);
	if (r >= 0)
		r = copies_make(&copies, m);
	for (size_t i = 0; r >= 0 && i < m->dst.nr; i++)
		r = add_routines(m, &areas, &copies, &m->dst.v[i].dst);
	if (r >= 0)
		r = refuse_overlaps(m);
	for (size_t i = 0; r >= 0 && i < m->dst.nr; i++)
		r = add_seqs(m, &areas, &copies, &m->dst.v[i].dst);
	free(areas.v.v);
	free(copies.v.v);
	return r;
}
