/* SPDX-License-Identifier: BSD-2-Clause */
/* Costs of an image's blocks, from a run that both counted and sampled. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measured.h"

static int measure_block(const struct flow_block *b, double samples, double period,
			 const struct exact_view *view, const struct image *img,
			 struct profdb_costs *costs)
{
	struct profdb_cost cost = { .len = b->end - b->vaddr };
	int r;

	cost.executions = exact_view_executions(view, b->vaddr);
	if (!(samples > 0) || !cost.executions || image_off(img, b->vaddr, &cost.off) < 0)
		return 0;
	if (samples * period >= 0x1p63)
		return -DCPI_EOVERFLOW;
	cost.samples = (uint64_t)llround(samples);
	cost.units = (uint64_t)llround(samples * period);
	r = profdb_costs_add(costs, &cost);
	return r < 0 ? r : 1;
}

/* The costs of one image while they are collected. */
struct measure {
	const struct exact *truth;
	const struct base_id *id;
	struct image *img;
	double period;
	struct profdb_costs costs;
	struct estimate_kept *kept;
};

static int measure_procedure(void *context, const struct image_symbol *symbol, const struct flow *f,
			     const double *by_insn, struct base_err *err)
{
	struct measure *m = context;
	struct exact_view view;

	if (exact_view(m->truth, m->img, m->id, symbol, &view) < 0)
		return 0;

	for (uint32_t i = 0; i < f->nr_blocks; i++) {
		double samples = estimate_samples_of(f, i, by_insn);
		int r = measure_block(&f->blocks[i], samples, m->period, &view, m->img, &m->costs);

		if (r < 0)
			return base_fail_errno(err, r, "cannot measure '%s'", symbol->name);
		if (r && samples >= ESTIMATE_MIN_SAMPLES) {
			m->kept->blocks++;
			m->kept->in_blocks += (uint64_t)samples;
		}
	}
	return 0;
}

static int measure_image(struct measure *m, const struct analysis_image *ai,
			 const struct estimate_samples *s, struct profdb *db, struct base_err *err)
{
	const char *path = profdb_profile_path(ai->profile, 0);
	int r = estimate_procedures(m->img, s, measure_procedure, m, NULL, err);

	for (size_t i = 0; i < s->nr; i++)
		m->kept->samples += s->v[i].count;
	if (r < 0 || !m->costs.nr)
		return r;
	m->costs.image = *m->id;
	snprintf(m->costs.event, sizeof(m->costs.event), "%s", s->event);
	m->costs.path = strdup(path ? path : ai->name);
	return m->costs.path ? profdb_costs_keep(db, &m->costs, err) : -ENOMEM;
}

int estimate_costs_keep(struct analysis *a, struct analysis_image *ai, size_t event,
			const struct exact *truth, struct profdb *db, struct estimate_kept *kept,
			struct base_err *err)
{
	struct measure m = { .truth = truth,
			     .id = profdb_profile_image(ai->profile),
			     .kept = kept };
	struct estimate_samples s = { 0 };
	int r;

	memset(kept, 0, sizeof(*kept));
	r = analysis_image_open(a, ai, &m.img, err);
	if (r >= 0)
		r = estimate_samples_gather(&s, a, ai, m.img, event);
	if (r >= 0) {
		m.period = s.period;
		r = measure_image(&m, ai, &s, db, err);
	}
	if (r == -ENOMEM)
		base_fail_errno(err, r, "cannot measure '%s'", ai->name);
	profdb_costs_release(&m.costs);
	estimate_samples_release(&s);
	image_close(m.img);
	return r;
}
