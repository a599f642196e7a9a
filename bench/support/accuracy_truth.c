/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "accuracy.h"
#include "procedures.h"

/* What the procedures of one image are made from. */
struct gather {
	struct program *p;
	const struct exact *truth;
	struct image *img;
	const struct base_id *id;
	struct estimate_samples samples;
	const struct profdb_costs *costs;
	const struct paths *paths;
};

static void release(struct procedure *pr)
{
	free(pr->name);
	free(pr->samples);
	free(pr->insns);
	free(pr->truth);
	free(pr->confidence);
	free(pr->edge_truth);
	for (int e = 0; e < NR_ESTIMATORS; e++) {
		free(pr->block[e]);
		free(pr->edge[e]);
	}
}

void program_release(struct program *p)
{
	for (size_t i = 0; i < p->nr; i++)
		release(&p->v[i]);
	free(p->v);
}

static int make(struct procedure *pr, const char *name, const struct flow *f)
{
	size_t blocks = (size_t)f->nr_blocks + 1, edges = (size_t)f->nr_edges + 1;
	bool ok;

	pr->nr_blocks = f->nr_blocks;
	pr->nr_edges = f->nr_edges;
	pr->name = strdup(name);
	pr->samples = calloc(blocks, sizeof(double));
	pr->insns = calloc(blocks, sizeof(double));
	pr->truth = calloc(blocks, sizeof(double));
	pr->confidence = calloc(blocks, sizeof(*pr->confidence));
	pr->edge_truth = calloc(edges, sizeof(double));
	ok = pr->name && pr->samples && pr->insns && pr->truth && pr->confidence && pr->edge_truth;
	for (int e = 0; e < NR_ESTIMATORS; e++) {
		pr->block[e] = calloc(blocks, sizeof(double));
		pr->edge[e] = calloc(edges, sizeof(double));
		ok = ok && pr->block[e] && pr->edge[e];
	}
	return ok ? 0 : -ENOMEM;
}

/* ---- the truth ------------------------------------------------------------------------------- */

static double edge_truth(const struct flow *f, const struct flow_edge *e,
			 const struct exact_view *view)
{
	const struct flow_block *from;
	const struct insn *last;
	uint64_t next;

	if (e->from == FLOW_OUTSIDE || e->to == FLOW_OUTSIDE)
		return -1;
	from = &f->blocks[e->from];
	last = &f->insns[from->insn + from->nr_insns - 1];
	next = f->blocks[e->to].vaddr;
	if (e->kind != FLOW_FALL)
		return (double)exact_view_taken(view, last->vaddr, next);
	if (last->flow == INSN_CALL || last->flow == INSN_INDIRECT_CALL)
		return (double)exact_view_executions(view, next);
	return (double)exact_view_fall(view, last->vaddr, next);
}

static void tell_truth(struct procedure *pr, const struct flow *f, const struct exact_view *view)
{
	for (uint32_t i = 0; i < f->nr_blocks; i++) {
		pr->insns[i] = f->blocks[i].nr_insns;
		pr->truth[i] = (double)exact_view_executions(view, f->blocks[i].vaddr);
	}
	for (uint32_t i = 0; i < f->nr_edges; i++)
		pr->edge_truth[i] = edge_truth(f, &f->edges[i], view);
}

/* ---- the estimates --------------------------------------------------------------------------- */

/* What is not known of an edge to outside must not make all others' parts nought. */
#define LITTLE 1e-9

static double rate_at(const struct procedure *pr, uint32_t block)
{
	return LITTLE + (block == FLOW_OUTSIDE ? 0 : pr->block[PLAIN][block]);
}

/* Samples by instructions; what leaves a block is split as its successors have it. */
static void estimate_plainly(struct procedure *pr, const struct flow *f)
{
	for (uint32_t i = 0; i < f->nr_blocks; i++)
		pr->block[PLAIN][i] = pr->samples[i] / pr->insns[i];
	for (uint32_t i = 0; i < f->nr_blocks; i++) {
		const uint32_t *out = f->out_of + f->blocks[i].out;
		double sum = 0;

		for (uint32_t k = 0; k < f->blocks[i].nr_out; k++)
			sum += rate_at(pr, f->edges[out[k]].to);
		for (uint32_t k = 0; k < f->blocks[i].nr_out; k++)
			pr->edge[PLAIN][out[k]] =
				pr->block[PLAIN][i] * rate_at(pr, f->edges[out[k]].to) / sum;
	}
}

static int estimate_by_flow(struct gather *g, struct procedure *pr, const struct flow *f,
			    const double *by_insn, struct base_err *err)
{
	struct estimate_input in = { .flow = f,
				     .by_insn = by_insn,
				     .event = g->samples.event,
				     .period = g->samples.period,
				     .img = g->img,
				     .costs = g->costs,
				     .paths = g->paths };
	clock_t start = clock();
	struct estimate e;
	int r = estimate_frequencies(&in, &e, err);

	g->p->seconds += (double)(clock() - start) / CLOCKS_PER_SEC;
	if (r >= 0) {
		memcpy(pr->block[SOLVED], e.freq.block, f->nr_blocks * sizeof(double));
		memcpy(pr->edge[SOLVED], e.freq.edge, f->nr_edges * sizeof(double));
		memcpy(pr->confidence, e.freq.confidence, f->nr_blocks * sizeof(*pr->confidence));
	}
	estimate_release(&e);
	return r;
}

/* ---- procedures ------------------------------------------------------------------------------ */

static void count_samples(struct gather *g, struct procedure *pr, const struct flow *f,
			  const double *by_insn)
{
	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		pr->samples[b] = estimate_samples_of(f, b, by_insn);
		g->p->nowhere -= pr->samples[b];
		if (!(pr->truth[b] > 0))
			g->p->untrue += pr->samples[b];
	}
	g->p->blocks += f->nr_blocks;
}

static int add_procedure(void *context, const struct image_symbol *symbol, const struct flow *f,
			 const double *by_insn, struct base_err *err)
{
	struct gather *g = context;
	struct procedure pr = { 0 };
	struct exact_view view;
	int r = exact_view(g->truth, g->img, g->id, symbol, &view);

	if (r >= 0)
		r = make(&pr, symbol->name, f);
	if (r >= 0)
		r = base_grow(&g->p->v, &g->p->cap, g->p->nr + 1, sizeof(pr));
	if (r >= 0) {
		tell_truth(&pr, f, &view);
		count_samples(g, &pr, f, by_insn);
		estimate_plainly(&pr, f);
		r = estimate_by_flow(g, &pr, f, by_insn, err);
	}
	if (r >= 0)
		g->p->v[g->p->nr++] = pr;
	else
		release(&pr);
	return r;
}

static int add_image(struct gather *g, struct analysis *a, struct analysis_image *ai, size_t event,
		     struct base_err *err)
{
	int r = analysis_image_open(a, ai, &g->img, err);

	if (r >= 0)
		r = estimate_samples_gather(&g->samples, a, ai, g->img, event);
	for (size_t i = 0; r >= 0 && i < g->samples.nr; i++) {
		g->p->samples += (double)g->samples.v[i].count;
		g->p->nowhere += (double)g->samples.v[i].count;
	}
	if (r >= 0)
		r = analysis_image_paths(ai, g->img, &g->paths, err);
	if (g->paths)
		g->p->traces += paths_traces(g->paths);
	if (r >= 0)
		r = estimate_procedures(g->img, &g->samples, add_procedure, g, NULL, err);
	estimate_samples_release(&g->samples);
	image_close(g->img);
	return r;
}

int program_gather(struct program *p, struct analysis *a, size_t event, const struct exact *truth,
		   struct profdb *costs, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < a->nr_images && r >= 0; i++) {
		const struct base_id *id = profdb_profile_image(a->images[i]->profile);
		struct gather g = { .p = p, .truth = truth, .id = id };
		struct profdb_costs kept = { 0 };

		if (a->images[i]->kind != PROFDB_FILE || !exact_find(truth, id))
			continue;
		if (costs) {
			r = profdb_costs_read(costs, id, a->events[event].name, &kept, err);
			g.costs = r >= 0 ? &kept : NULL;
		}
		if (r >= 0 || r == -ENOENT)
			r = add_image(&g, a, a->images[i], event, err);
		profdb_costs_release(&kept);
	}
	return r;
}
