/* SPDX-License-Identifier: BSD-2-Clause */
/* The sum of the stalls of all procedures of whole images. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "evidence.h"
#include "stalls.h"

#define ROUNDING 1e-6 /* samples; smaller values are rounding errors */

/* One image while it is analysed. */
struct walk {
	struct stalls *s;
	struct analysis_image *ai;
	struct image *img;
	const struct stalls_options *o;
	const struct analysis *a;
	size_t freq;		     /* the event that determines frequencies */
	struct estimate_samples *of; /* indexed by event; empty for events that are not needed */
	struct profdb_costs costs;
	bool has_costs;
	const struct paths *paths;
	double unsure; /* samples in blocks whose frequency has too low a confidence */
};

static int add_part(struct stalls *s, const char *what, double samples)
{
	int r;

	if (!(samples > 0))
		return 0;
	for (size_t i = 0; i < s->nr_parts; i++) {
		if (strcmp(s->parts[i].what, what) != 0)
			continue;
		s->parts[i].samples += samples;
		return 0;
	}
	r = base_grow(&s->parts, &s->cap_parts, s->nr_parts + 1, sizeof(*s->parts));
	if (r >= 0)
		s->parts[s->nr_parts++] = (struct stalls_part){ what, samples };
	return r;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static void insn_release(struct stalls_insn *insn)
{
	free(insn->procedure);
	free(insn->file);
}

static int by_stall(const void *pa, const void *pb)
{
	const struct stalls_insn *a = pa, *b = pb;
	int r;

	if (a->stalled != b->stalled)
		return a->stalled > b->stalled ? -1 : 1;
	r = strcmp(a->image->name, b->image->name);
	return r ? r : (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

static void drop(struct stalls *s, size_t max)
{
	if (s->nr_insns)
		qsort(s->insns, s->nr_insns, sizeof(*s->insns), by_stall);
	for (; s->nr_insns > max; s->nr_insns--) {
		insn_release(&s->insns[s->nr_insns - 1]);
		s->nr_others++;
	}
}

/* Keeps up to twice the wanted number, and drops the lesser half when that is full. */
static int keep_insn(struct walk *w, const struct stalls_insn *insn, const char *procedure)
{
	struct stalls *s = w->s;
	int r;

	if (s->nr_insns >= 2 * w->o->max_insns)
		drop(s, w->o->max_insns);
	r = base_grow(&s->insns, &s->cap_insns, s->nr_insns + 1, sizeof(*s->insns));
	if (r < 0)
		return r;
	s->insns[s->nr_insns] = *insn;
	s->insns[s->nr_insns].procedure = strdup(procedure);
	if (!s->insns[s->nr_insns].procedure)
		return -ENOMEM;
	s->nr_insns++;
	return 0;
}

static int add_insn(struct walk *w, const struct image_symbol *symbol, const struct flow *f,
		    uint32_t block, uint32_t at, const struct stall *stall,
		    const struct estimate *e)
{
	struct stalls_insn insn = { .image = w->ai,
				    .vaddr = f->insns[at].vaddr,
				    .stalled = stall->stalled[at],
				    .count = e->freq.block[block],
				    .causes = stall->candidates[at],
				    .unexplained =
					    stall->unexplained[at] >= stall->stalled[at] / 10,
				    .confidence = e->freq.confidence[block],
				    .absolute = e->absolute };
	double each;

	if (insn.stalled < ROUNDING)
		return 0;
	each = analysis_sample_units(w->a, w->ai, w->o->event);
	insn.length = insn.count > 0 ? insn.stalled * each / insn.count : -1;
	if ((insn.length >= 0 && insn.length < STALLS_LEAST) || !w->o->max_insns) {
		w->s->nr_others++;
		return 0;
	}
	return keep_insn(w, &insn, symbol->name);
}

/* Finds the lines of this image's instructions, while it is open. */
static int find_lines(struct walk *w)
{
	struct image_line line;

	for (size_t i = 0; i < w->s->nr_insns; i++) {
		struct stalls_insn *insn = &w->s->insns[i];

		if (insn->image != w->ai || image_line_at(w->img, insn->vaddr, &line) < 0)
			continue;
		insn->line = line.line;
		insn->file = strdup(line.file);
		if (!insn->file)
			return -ENOMEM;
	}
	return 0;
}

/* ---- procedures ------------------------------------------------------------------------------ */

static int add_blocks(struct walk *w, const struct image_symbol *symbol, const struct flow *f,
		      const struct stall *stall, const struct estimate *e,
		      struct stall_tally *tally)
{
	int r = 0;

	for (uint32_t b = 0; b < f->nr_blocks && r >= 0; b++) {
		const struct flow_block *block = &f->blocks[b];

		if (e->freq.confidence[b] < w->o->least) {
			w->unsure += stall->block[b].samples;
			continue;
		}
		stall_tally_add(tally, &stall->block[b]);
		for (uint32_t i = 0; i < block->nr_insns && r >= 0; i++)
			r = add_insn(w, symbol, f, b, block->insn + i, stall, e);
	}
	return r;
}

static int add_proc(struct walk *w, const struct image_symbol *symbol,
		    const struct stall_tally *tally, const struct estimate *e)
{
	struct stalls *s = w->s;
	int r = base_grow(&s->procs, &s->cap_procs, s->nr_procs + 1, sizeof(*s->procs));
	char *name = r < 0 ? NULL : strdup(symbol->name);

	if (!name)
		return -ENOMEM;
	s->procs[s->nr_procs++] = (struct stalls_proc){
		.image = w->ai, .name = name, .vaddr = symbol->vaddr, .tally = *tally
	};
	stall_tally_add(&s->total, tally);
	if (e->absolute)
		s->nr_absolute++;
	else if (e->traces)
		s->nr_traced++;
	else
		s->nr_relative++;
	return 0;
}

/* An event's samples in a procedure. */
struct placing {
	const struct walk *w;
	const struct flow *f;
};

static double *place(const void *context, size_t event)
{
	const struct placing *p = context;
	double *by_insn = calloc((size_t)p->f->nr_insns + 1, sizeof(*by_insn));

	if (by_insn)
		estimate_samples_place(&p->w->of[event], p->f, by_insn);
	return by_insn;
}

static int find_stalls(struct walk *w, const struct flow *f, const struct estimate *e,
		       struct stall_input *in, struct stall *out)
{
	const struct placing placing = { w, f };
	struct evidence evidence = { 0 };
	int r = evidence_gather(&(struct evidence_input){ .a = w->a,
							  .ai = w->ai,
							  .flow = f,
							  .time = w->o->event,
							  .runs = e->absolute ? in->block : NULL,
							  .samples = place,
							  .context = &placing },
				&evidence);

	in->evidence = evidence.v;
	in->nr_evidence = evidence.nr;
	if (r >= 0)
		r = stall_find(in, out);
	for (size_t i = 0; i < evidence.nr; i++)
		w->s->limited[evidence.event[i]] = true;
	evidence_release(&evidence);
	return r;
}

static int tally(struct walk *w, const struct image_symbol *symbol, const struct flow *f,
		 const double *by_insn, const struct estimate *e)
{
	struct stall_input in = { .flow = f,
				  .samples = by_insn,
				  .block = e->freq.block,
				  .edge = e->freq.edge,
				  .outside = w->o->outside,
				  .machine = image_machine(w->img) };
	struct stall_tally sum = { 0 };
	struct stall stall;
	int r = find_stalls(w, f, e, &in, &stall);

	if (r < 0)
		return r;
	r = add_blocks(w, symbol, f, &stall, e, &sum);
	if (r >= 0 && sum.samples > 0)
		r = add_proc(w, symbol, &sum, e);
	if (w->o->progress)
		w->o->progress(w->ai, symbol->name, stall.total.samples);
	stall_release(&stall);
	return r;
}

static int estimate(struct walk *w, const struct flow *f, const double *by_insn, struct estimate *e,
		    struct base_err *err)
{
	struct estimate_input in = { .flow = f,
				     .by_insn = by_insn,
				     .event = w->a->events[w->freq].name,
				     .retired = estimate_by_retired(w->a, w->freq),
				     .period = analysis_sample_units(w->a, w->ai, w->freq),
				     .img = w->img,
				     .costs = w->has_costs ? &w->costs : NULL,
				     .paths = w->paths };
	double *placed = NULL;
	int r;

	if (w->freq != w->o->event) {
		in.by_insn = placed = place(&(struct placing){ w, f }, w->freq);
		if (!placed)
			return -ENOMEM;
	}
	r = estimate_frequencies(&in, e, err);
	free(placed);
	return r;
}

static int visit(void *context, const struct image_symbol *symbol, const struct flow *f,
		 const double *by_insn, struct base_err *err)
{
	struct walk *w = context;
	struct estimate e = { 0 };
	int r = f->nr_blocks ? estimate(w, f, by_insn, &e, err) : 0;

	if (r >= 0 && f->nr_blocks)
		r = tally(w, symbol, f, by_insn, &e);
	estimate_release(&e);
	return r < 0 ? base_fail_errno(err, r, "cannot analyse '%s'", symbol->name) : 0;
}

/* ---- images ---------------------------------------------------------------------------------- */

static int add_parts(struct walk *w, double all, const struct estimate_rest *rest)
{
	double gathered = 0;
	int r;

	for (size_t i = 0; i < w->of[w->o->event].nr; i++)
		gathered += (double)w->of[w->o->event].v[i].count;
	w->s->unsure += w->unsure;
	r = add_part(w->s, "in blocks of lower confidence", w->unsure);
	if (r >= 0)
		r = add_part(w->s, "in no block", (double)rest->no_block);
	if (r >= 0)
		r = add_part(w->s, "in procedures without code", (double)rest->no_code);
	return r < 0 ? r
		     : add_part(w->s, "in no procedure",
				(double)rest->no_procedure + all - gathered);
}

static int gather(struct walk *w, struct analysis *a, struct base_err *err)
{
	int event = estimate_event(a, w->ai), r = 0;

	w->freq = event < 0 ? w->o->event : (size_t)event;
	w->of = calloc(a->nr_events + 1, sizeof(*w->of));
	if (!w->of)
		return -ENOMEM;
	for (size_t i = 0; i < a->nr_events && r >= 0; i++)
		if (i == w->freq)
			r = estimate_runs_gather(&w->of[i], a, w->ai, w->img, i);
		else if (i == w->o->event || evidence_speaks(a->events[i].name))
			r = estimate_samples_gather(&w->of[i], a, w->ai, w->img, i);
	if (r >= 0)
		r = profdb_costs_read(a->db, image_id(w->img), a->events[w->freq].name, &w->costs,
				      err);
	w->has_costs = r >= 0;
	if (r >= 0 || r == -ENOENT)
		r = analysis_image_paths(w->ai, w->img, &w->paths, err);
	if (r >= 0 && w->paths)
		w->s->traces += paths_traces(w->paths);
	return r;
}

static int add_opened(struct walk *w, struct analysis *a, struct base_err *err)
{
	double all = (double)w->ai->count[w->o->event];
	struct estimate_rest rest = { 0 };
	struct insn_decoder *d = NULL;
	int r = insn_decoder_open(image_machine(w->img), &d, NULL);

	insn_decoder_close(d);
	if (r == -DCPI_EUNSUPPORTED)
		return add_part(w->s, "(code of a machine that is not known)", all);
	if (r >= 0)
		r = gather(w, a, err);
	if (r >= 0)
		r = estimate_procedures(w->img, &w->of[w->o->event], visit, w, &rest, err);
	if (r >= 0)
		r = add_parts(w, all, &rest);
	drop(w->s, w->o->max_insns);
	return r < 0 ? r : find_lines(w);
}

int stalls_add_image(struct stalls *s, struct analysis *a, struct analysis_image *ai,
		     const struct stalls_options *o, struct base_err *err)
{
	struct walk w = { .s = s, .a = a, .ai = ai, .o = o };
	int r;

	s->samples += (double)ai->count[o->event];
	if (!ai->count[o->event])
		return 0;
	if (analysis_image_open(a, ai, &w.img, NULL) < 0)
		r = add_part(s, analysis_image_label(ai), (double)ai->count[o->event]);
	else
		r = add_opened(&w, a, err);
	for (size_t i = 0; w.of && i < a->nr_events; i++)
		estimate_samples_release(&w.of[i]);
	free(w.of);
	profdb_costs_release(&w.costs);
	image_close(w.img);
	return r < 0 ? base_fail_errno(err, r, "cannot analyse '%s'", ai->name) : 0;
}

static int by_samples(const void *pa, const void *pb)
{
	const struct stalls_part *a = pa, *b = pb;

	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return strcmp(a->what, b->what);
}

void stalls_finish(struct stalls *s, const struct stalls_options *o)
{
	if (s->nr_parts)
		qsort(s->parts, s->nr_parts, sizeof(*s->parts), by_samples);
	drop(s, o->max_insns);
}

void stalls_release(struct stalls *s)
{
	for (size_t i = 0; i < s->nr_procs; i++)
		free(s->procs[i].name);
	for (size_t i = 0; i < s->nr_insns; i++)
		insn_release(&s->insns[i]);
	free(s->procs);
	free(s->insns);
	free(s->parts);
	memset(s, 0, sizeof(*s));
}
