/* SPDX-License-Identifier: BSD-2-Clause */
/* Execution counts of the blocks of an image's procedures, from exact counts or from samples. */
#include <errno.h>
#include <stdlib.h>

#include "runs.h"

struct making {
	struct runs *r;
	struct estimate_samples samples;
	struct profdb_costs costs;
	bool has_costs;
	const struct paths *paths;
};

static int by_vaddr(const void *pa, const void *pb)
{
	const struct estimate_sample *a = pa, *b = pb;

	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* Add the counts at offsets [@from, @end), at the addresses that @v gives them. */
static int add_counts(struct estimate_samples *s, const struct exact_view *v, uint64_t from,
		      uint64_t end)
{
	int r = 0;

	for (size_t i = 0; i < v->image->nr_counts && r >= 0; i++) {
		const struct exact_count *c = &v->image->counts[i];
		struct estimate_sample sample = { c->off - v->move, c->count };

		if (c->off < from || c->off >= end ||
		    (v->img && image_vaddr(v->img, c->off, &sample.vaddr) < 0))
			continue;
		r = base_grow(&s->v, &s->cap, s->nr + 1, sizeof(*s->v));
		if (r >= 0)
			s->v[s->nr++] = sample;
	}
	return r;
}

/* The view of one symbol is that of the whole image, or each routine has to be found. */
static int count_symbol(struct estimate_samples *s, const struct exact *truth, struct image *img,
			const struct base_id *id, const struct image_symbol *symbol, bool *whole)
{
	struct exact_view v;
	int r = exact_view(truth, img, id, symbol, &v);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	*whole = v.img != NULL;
	return *whole ? add_counts(s, &v, 0, UINT64_MAX)
		      : add_counts(s, &v, symbol->vaddr + v.move,
				   symbol->vaddr + v.move + symbol->len);
}

/*
 * Gather executions of instructions, as @truth has them of the image with the identity @id. 0,
 * -ENOMEM, or -ENOENT where it has none.
 */
static int count_samples(struct estimate_samples *s, const struct exact *truth, struct image *img,
			 const struct base_id *id)
{
	size_t nr = image_nr_symbols(img);
	bool whole = false;
	int r = 0;

	s->period = 1;
	for (size_t i = 0; i < nr && r >= 0 && !whole; i++)
		r = count_symbol(s, truth, img, id, image_symbol(img, i), &whole);
	if (r >= 0 && s->nr)
		qsort(s->v, s->nr, sizeof(*s->v), by_vaddr);
	return r < 0 ? r : s->nr ? 0 : -ENOENT;
}

static const struct insn *last_insn(const struct flow *f, uint32_t block)
{
	const struct flow_block *b = &f->blocks[block];

	return &f->insns[b->insn + b->nr_insns - 1];
}

double runs_edge(const struct exact_view *v, const struct flow *f, const struct flow_edge *e,
		 double from)
{
	const struct insn *last = last_insn(f, e->from);
	uint64_t to = f->blocks[e->to].vaddr;

	if (e->kind != FLOW_FALL)
		return (double)exact_view_taken(v, last->vaddr, to);
	/* Control continues behind a call when the call returns; that is no counted edge. */
	if (last->flow == INSN_CALL || last->flow == INSN_INDIRECT_CALL)
		return from;
	return (double)exact_view_fall(v, last->vaddr, to);
}

/* ---- counted --------------------------------------------------------------------------------- */

/* The number of entries is the difference that the edges within the procedure leave. */
static double entered(const struct exact_view *v, const struct flow *f, const double *block)
{
	const struct flow_block *b = &f->blocks[f->entry];
	double rest = block[f->entry];

	for (uint32_t i = 0; i < b->nr_in; i++) {
		const struct flow_edge *e = &f->edges[f->into[b->in + i]];

		if (e->from != FLOW_OUTSIDE)
			rest -= runs_edge(v, f, e, block[e->from]);
	}
	return rest > 0 ? rest : 0;
}

static int count(struct making *m, struct runs_procedure *p, double *block, struct base_err *err)
{
	const struct flow *f = p->flow;
	struct exact_view view;

	if (exact_view(m->r->exact, m->r->img, m->r->id, p->symbol, &view) < 0)
		return 0;
	for (uint32_t i = 0; i < f->nr_blocks; i++)
		block[i] = (double)exact_view_executions(&view, f->blocks[i].vaddr);
	p->view = &view;
	if (f->entry != FLOW_OUTSIDE)
		p->entered = entered(&view, f, block);
	return m->r->visit(m->r->context, p, err);
}

/* ---- estimated ------------------------------------------------------------------------------- */

static void take(const struct making *m, const struct estimate *e, struct runs_procedure *p,
		 double *block)
{
	const struct flow *f = p->flow;

	for (uint32_t i = 0; i < f->nr_blocks; i++) {
		bool sure =
			e->freq.confidence[i] >= m->r->least && e->freq.confidence[i] > FREQ_NONE;

		block[i] = sure ? e->freq.block[i] : -1;
	}
	if (f->entry == FLOW_OUTSIDE || block[f->entry] < 0)
		return;
	p->entered = 0;
	for (uint32_t i = 0; i < f->nr_edges; i++)
		if (f->edges[i].from == FLOW_OUTSIDE && f->edges[i].to == f->entry)
			p->entered += e->freq.edge[i];
}

/* A count of 0 needs no unit. */
static void note_unit(struct runs *r, const struct estimate *e, const double *block)
{
	for (uint32_t i = 0; i < e->nr_blocks; i++) {
		if (block[i] <= 0)
			continue;
		r->nr_known++;
		r->nr_absolute += e->absolute;
		r->traces = e->traces ? e->traces : r->traces;
		return;
	}
}

static int estimate(struct making *m, struct runs_procedure *p, const double *by_insn,
		    double *block, struct base_err *err)
{
	struct estimate_input in = { .flow = p->flow,
				     .by_insn = by_insn,
				     .event = m->samples.event,
				     .retired = estimate_by_retired(m->r->a, m->r->event),
				     .period = m->samples.period,
				     .img = m->r->img,
				     .costs = m->has_costs ? &m->costs : NULL,
				     .paths = m->paths };
	struct estimate e = { 0 };
	int r = estimate_frequencies(&in, &e, err);

	if (r >= 0) {
		take(m, &e, p, block);
		note_unit(m->r, &e, block);
		r = m->r->visit(m->r->context, p, err);
	}
	estimate_release(&e);
	return r;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int visit(void *context, const struct image_symbol *symbol, const struct flow *f,
		 const double *by_insn, struct base_err *err)
{
	struct making *m = context;
	struct runs_procedure p = { .symbol = symbol, .flow = f, .entered = -1 };
	double *block;
	int r;

	if (!f->nr_blocks || (m->r->wanted && !m->r->wanted(m->r->context, symbol)))
		return 0;
	block = calloc(f->nr_blocks, sizeof(*block));
	if (!block)
		return base_fail_errno(err, -ENOMEM, "cannot tell how often '%s' ran",
				       symbol->name);
	p.block = block;
	for (uint32_t i = 0; i < f->nr_insns; i++)
		p.part += by_insn[i];
	r = m->r->exact ? count(m, &p, block, err) : estimate(m, &p, by_insn, block, err);
	free(block);
	return r;
}

static int uncounted(const struct runs *r, struct base_err *err)
{
	base_fail(err, -ENOENT, "nothing of '%s' was counted", image_path(r->img));
	if (image_process(r->img))
		base_hint(err, "code made at run time is found by the table of dcpix: -tab FILE");
	return -ENOENT;
}

static int gather(struct making *m, struct base_err *err)
{
	struct runs *r = m->r;
	int rc;

	if (r->exact) {
		rc = count_samples(&m->samples, r->exact, r->img, r->id);
		return rc == -ENOENT ? uncounted(r, err) : rc;
	}
	rc = estimate_runs_gather(&m->samples, r->a, r->ai, r->img, r->event);
	if (rc >= 0)
		rc = profdb_costs_read(r->a->db, image_id(r->img), m->samples.event, &m->costs,
				       err);
	m->has_costs = rc >= 0;
	if (rc < 0 && rc != -ENOENT)
		return rc;
	return analysis_image_paths(r->ai, r->img, &m->paths, err);
}

int runs_make(struct runs *r, struct base_err *err)
{
	struct making m = { .r = r };
	bool sum;
	int rc;

	r->total = 0;
	r->nr_known = r->nr_absolute = 0;
	r->traces = 0;
	rc = gather(&m, err);
	sum = r->exact || estimate_by_retired(r->a, r->event);
	for (size_t i = 0; sum && i < m.samples.nr; i++)
		r->total += (double)m.samples.v[i].count;
	if (!sum)
		r->total = (double)r->ai->count[r->event];
	if (rc >= 0)
		rc = estimate_procedures(r->img, &m.samples, visit, &m, NULL, err);
	if (rc == -ENOMEM)
		base_fail_errno(err, rc, "cannot tell how often '%s' ran", image_path(r->img));
	profdb_costs_release(&m.costs);
	estimate_samples_release(&m.samples);
	return rc;
}
