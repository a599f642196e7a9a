/* SPDX-License-Identifier: BSD-2-Clause */
/* What DST ranges say becomes routines and lines of the model, within the owned code ranges. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* A base is an address: its place in the image says the same of every run of the program. */
static void mask_bases(const struct pseudoimg_model *m, struct pseudoimg_dst_range *d)
{
	const struct pseudoimg_span *run;
	uint64_t base;

	for (size_t i = 0; i < d->dst.bases.nr; i++) {
		uint8_t *at = d->copy + d->dst.bases.v[i];

		memcpy(&base, at, sizeof(base));
		run = pseudoimg_runs_find(m, base);
		base = run ? run->img_off + (base - run->start) : UINT64_MAX;
		memcpy(at, &base, sizeof(base));
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
	r = pseudoimg_dst_decode(d->copy, len, first_base(m, d->facility), &d->dst);
	if (r < 0)
		return r;
	while (len > d->dst.used && !d->copy[len - 1])
		len--;
	d->len = len;
	m->nr_bad += d->dst.nr_bad;
	mask_bases(m, d);
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

/* ---- routines -------------------------------------------------------------------------------- */

static int add_routines(struct pseudoimg_model *m, const struct areas *areas,
			const struct pseudoimg_dst *dst)
{
	for (size_t i = 0; i < dst->routines.nr; i++) {
		const struct pseudoimg_dst_routine *from = &dst->routines.v[i];
		struct pseudoimg_span at = { .start = from->addr,
					     .len = from->len,
					     .order = DST_ORDER + m->routines.nr };
		struct pseudoimg_routine *to;

		if (from->len > WIRE_CODE_MAX || !areas_hold(areas, &at) ||
		    !pseudoimg_runs_place(m, &at)) {
			m->nr_bad++;
			continue;
		}
		to = PSEUDOIMG_PUSH(&m->routines);
		if (!to)
			return -ENOMEM;
		*to = (struct pseudoimg_routine){ .at = at, .name = from->name };
	}
	return 0;
}

/* @inner begins within @outer. Lexical nesting of two routines of DST is no overlap. */
static bool nests(const struct pseudoimg_routine *outer, const struct pseudoimg_routine *inner)
{
	return !outer->rec && !inner->rec && inner->at.len < outer->at.len &&
	       pseudoimg_span_end(&inner->at) <= pseudoimg_span_end(&outer->at);
}

/* Of routines that overlap without nesting, refuse those that DST brought later. */
static int refuse_overlaps(struct pseudoimg_model *m)
{
	struct pseudoimg_routine *v = m->routines.v;
	size_t *open = calloc(m->routines.nr + 1, sizeof(*open)), depth = 0, kept = 0;
	bool good;

	if (!open)
		return -ENOMEM;
	if (m->routines.nr)
		qsort(v, m->routines.nr, sizeof(*v), pseudoimg_span_compare);
	for (size_t i = 0; i < m->routines.nr; i++) {
		while (depth && pseudoimg_span_end(&v[open[depth - 1]].at) <= v[i].at.start)
			depth--;
		/* A record stays; the routines of DST that it begins in go. */
		for (; depth && v[i].rec && !v[open[depth - 1]].rec; depth--)
			v[open[depth - 1]].at.len = 0;
		good = !depth || nests(&v[open[depth - 1]], &v[i]);
		if (good) {
			v[kept] = v[i];
			open[depth++] = kept++;
		}
	}
	free(open);
	m->nr_bad += (uint32_t)(m->routines.nr - kept);
	m->routines.nr = kept;
	kept = 0;
	for (size_t i = 0; i < m->routines.nr; i++)
		if (v[i].at.len)
			v[kept++] = v[i];
	m->nr_bad += (uint32_t)(m->routines.nr - kept);
	m->routines.nr = kept;
	return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Rows [@first, @end) become a sequence; row @end closes it. */
static int add_seq(struct pseudoimg_model *m, const struct areas *areas,
		   const struct pseudoimg_dst *dst, const uint32_t *files, size_t first, size_t end)
{
	const struct pseudoimg_dst_row *v = dst->rows.v;
	struct pseudoimg_span at = { .start = v[first].addr,
				     .len = v[end].addr - v[first].addr,
				     .order = DST_ORDER + m->seqs.nr };
	struct pseudoimg_seq *seq;
	struct pseudoimg_row *row;

	if (!at.len)
		return 0;
	if (at.len > UINT32_MAX || !areas_hold(areas, &at) || !pseudoimg_runs_place(m, &at)) {
		m->nr_bad++;
		return 0;
	}
	seq = PSEUDOIMG_PUSH(&m->seqs);
	if (!seq)
		return -ENOMEM;
	*seq = (struct pseudoimg_seq){ .at = at, .first_row = m->rows.nr };
	for (size_t i = first; i < end && v[i].addr < v[end].addr; i++, seq->nr_rows++) {
		uint32_t file = v[i].line ? files[v[i].file] : PSEUDOIMG_NO_FILE;

		row = PSEUDOIMG_PUSH(&m->rows);
		if (!row)
			return -ENOMEM;
		*row = (struct pseudoimg_row){ .off = (uint32_t)(v[i].addr - at.start) };
		if (file != PSEUDOIMG_NO_FILE) {
			row->line = v[i].line;
			row->file = file;
		}
	}
	return 0;
}

static int add_seqs(struct pseudoimg_model *m, const struct areas *areas,
		    const struct pseudoimg_dst *dst)
{
	uint32_t *files = calloc(dst->files.nr + 1, sizeof(*files));
	size_t first = 0;
	int r = files ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < dst->files.nr; i++) {
		int64_t file = PSEUDOIMG_NO_FILE;

		if (dst->files.v[i].len)
			file = pseudoimg_model_file(m, dst->files.v[i].p, dst->files.v[i].len);
		r = file < 0 ? (int)file : 0;
		files[i] = (uint32_t)file;
	}
	for (size_t i = 0; r >= 0 && i < dst->rows.nr; i++) {
		if (!dst->rows.v[i].end)
			continue;
		r = add_seq(m, areas, dst, files, first, i);
		first = i + 1;
	}
	free(files);
	return r;
}

int pseudoimg_model_dst(struct pseudoimg_model *m)
{
	struct areas areas = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < m->dst.nr; i++)
		r = decode(m, &m->dst.v[i]);
	if (r < 0 || !m->dst.nr)
		return r;
	/* Ranges stand at addresses that differ from run to run: only what they hold can order
	 * them. */
	qsort(m->dst.v, m->dst.nr, sizeof(*m->dst.v), by_contents);
	r = areas_make(&areas, m);
	for (size_t i = 0; r >= 0 && i < m->dst.nr; i++)
		r = add_routines(m, &areas, &m->dst.v[i].dst);
	if (r >= 0)
		r = refuse_overlaps(m);
	for (size_t i = 0; r >= 0 && i < m->dst.nr; i++)
		r = add_seqs(m, &areas, &m->dst.v[i].dst);
	free(areas.v.v);
	return r;
}
