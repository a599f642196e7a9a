/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes execution counts of a listing's instructions, and the cost of each execution. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "listing_freq.h"
#include "procedures.h"

struct work {
	const struct analysis_listing *l;
	struct flow *flow;
	double *by_insn;
	struct profdb_costs costs;
	struct estimate estimate;
	struct estimate_samples samples;
};

/* A listing of several places has the sums of their samples. A listing of a single place lacks
 * the samples of its cold parts, but the image has them. */
static int place_samples(struct work *w, const struct listing_freq *out)
{
	const struct analysis_listing *l = w->l;
	const struct insn *insn;
	int r;

	if (l->nr_places <= 1) {
		r = estimate_runs_gather(&w->samples, l->a, l->ai, l->img, out->event);
		if (r >= 0)
			estimate_samples_place(&w->samples, w->flow, w->by_insn);
		return r;
	}
	for (size_t i = 0; i < l->nr_units; i++) {
		const struct analysis_unit *u = &l->units[i];

		insn = u->count ? flow_insn_at(w->flow, u->vaddr) : NULL;
		if (insn)
			w->by_insn[insn - w->flow->insns] +=
				(double)analysis_unit_runs(l, u, out->event);
	}
	return 0;
}

static int estimate(struct work *w, const struct listing_freq *out, struct base_err *err)
{
	const struct analysis_event *ev = &w->l->a->events[out->event];
	struct estimate_input in = { .flow = w->flow,
				     .by_insn = w->by_insn,
				     .event = ev->name,
				     .retired = estimate_by_retired(w->l->a, out->event),
				     .period = analysis_sample_units(w->l->a, w->l->ai, out->event),
				     .img = w->l->img };
	int r = profdb_costs_read(w->l->a->db, image_id(w->l->img), ev->name, &w->costs, err);

	if (r < 0 && r != -ENOENT)
		return r;
	in.costs = r >= 0 ? &w->costs : NULL;
	r = analysis_image_paths(w->l->ai, w->l->img, &in.paths, err);
	return r < 0 ? r : estimate_frequencies(&in, &w->estimate, err);
}

static void tell(const struct work *w, struct listing_freq *out)
{
	double each = analysis_sample_units(w->l->a, w->l->ai, out->cost_event);

	for (size_t i = 0; i < w->l->nr_units; i++) {
		const struct analysis_unit *u = &w->l->units[i];
		uint32_t b = flow_block_at(w->flow, u->vaddr);
		struct listing_freq_unit *to = &out->v[i];

		if (u->kind == ANALYSIS_UNIT_INSN && b != FLOW_OUTSIDE) {
			to->confidence = w->estimate.freq.confidence[b];
			to->freq = w->estimate.freq.block[b];
		}
		if (out->has_cost && u->count)
			to->units = (double)u->count[out->cost_event] * each;
	}
	out->absolute = w->estimate.absolute;
	out->traces = w->estimate.traces;
	out->nr_unresolved = w->flow->nr_unresolved;
}

static int choose_events(const struct analysis_listing *l, struct listing_freq *out,
			 struct base_err *err)
{
	const struct analysis *a = l->a;
	int event = estimate_event(a, l->ai);

	if (event < 0)
		return base_fail(err, -ENOENT, "no event here tells how often code ran");
	out->event = (size_t)event;
	out->cost_event = analysis_event_default(a);
	out->has_cost = estimate_model(a->events[out->cost_event].name) == FREQ_TIME;
	return 0;
}

int listing_freq_make(const struct analysis_listing *l, struct listing_freq *out,
		      struct base_err *err)
{
	struct work w = { .l = l };
	int r = choose_events(l, out, err);

	if (r >= 0)
		r = flow_build(l->img, &l->symbol, &w.flow, err);
	if (r < 0)
		return r;
	out->v = calloc(l->nr_units + 1, sizeof(*out->v));
	w.by_insn = calloc((size_t)w.flow->nr_insns + 1, sizeof(*w.by_insn));
	r = out->v && w.by_insn ? place_samples(&w, out) : -ENOMEM;
	if (r >= 0)
		r = estimate(&w, out, err);
	if (r >= 0)
		tell(&w, out);
	else
		base_fail_errno(err, r, "cannot estimate how often '%s' ran", l->symbol.name);
	estimate_samples_release(&w.samples);
	estimate_release(&w.estimate);
	profdb_costs_release(&w.costs);
	free(w.by_insn);
	flow_free(w.flow);
	return r;
}

void listing_freq_release(struct listing_freq *f)
{
	free(f->v);
	memset(f, 0, sizeof(*f));
}
