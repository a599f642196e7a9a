/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds up, for each row of a report, the samples on call paths with it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inclusive.h"

struct inclusive {
	const struct callpath_tree *t;
	struct analysis_rows *rows;
	uint32_t *class; /* by procedure: its row, or UINT32_MAX */
	uint64_t *total; /* by row, of one event */
};

static const char *facility_of(const struct analysis_row *row)
{
	return row->facility ? row->facility->name : NULL;
}

/* ---- the rows of procedures ------------------------------------------------------------------ */

static void class_procedures(struct inclusive *x)
{
	for (size_t i = 0; i < x->rows->nr; i++) {
		const struct analysis_row *row = &x->rows->v[i];
		int64_t p = callpath_procedure_find(x->t, row->image, facility_of(row),
						    row->procedure, row->vaddr);

		if (p >= 0)
			x->class[p] = (uint32_t)i;
	}
}

static bool is_sampled(const struct callpath_procedure *p, size_t nr_events)
{
	while (nr_events && !p->flat[nr_events - 1])
		nr_events--;
	return nr_events;
}

/* Procedures without samples of their own; those have rows. */
static int add_callers(struct inclusive *x, struct analysis *a,
		       bool (*chosen)(void *ctx, struct analysis_image *ai), void *ctx)
{
	int r = 0;

	for (size_t i = CALLPATH_NR_ENDS; i < x->t->nr_procedures && r >= 0; i++) {
		const struct callpath_procedure *p = &x->t->procedures[i];
		const struct image_symbol s = { p->name, p->vaddr, p->len };

		if (is_sampled(p, a->nr_events) || p->kind == CALLPATH_INLINED ||
		    !chosen(ctx, p->image))
			continue;
		r = analysis_rows_add_unsampled(x->rows, a, p->image,
						p->kind == CALLPATH_PROCEDURE ? &s : NULL);
	}
	return r;
}

/* ---- the rows of images ---------------------------------------------------------------------- */

static bool is_of(const struct callpath_procedure *p, const struct analysis_row *row)
{
	const char *facility = facility_of(row);

	if (facility)
		return p->group->facility && strcmp(p->group->facility, facility) == 0;
	return p->image == row->image;
}

static void class_images(struct inclusive *x)
{
	for (size_t i = CALLPATH_NR_ENDS; i < x->t->nr_procedures; i++)
		for (size_t k = 0; k < x->rows->nr; k++)
			if (is_of(&x->t->procedures[i], &x->rows->v[k]))
				x->class[i] = (uint32_t)k;
}

/* ---- the sums -------------------------------------------------------------------------------- */

static int make_totals(struct inclusive *x, size_t nr_events)
{
	int r = 0;

	for (size_t i = 0; i < x->rows->nr && r >= 0; i++) {
		x->rows->v[i].total = calloc(nr_events + 1, sizeof(*x->rows->v[i].total));
		r = x->rows->v[i].total ? 0 : -ENOMEM;
	}
	for (size_t e = 0; e < nr_events && r >= 0; e++) {
		r = callpath_totals(x->t, e, x->class, x->rows->nr, x->total);
		for (size_t i = 0; i < x->rows->nr && r >= 0; i++)
			x->rows->v[i].total[e] = x->total[i];
	}
	return r;
}

int inclusive_add(const struct callpaths *paths, struct analysis_rows *rows, bool by_image,
		  bool (*chosen)(void *ctx, struct analysis_image *ai), void *ctx,
		  struct base_err *err)
{
	struct inclusive x = { .t = paths->tree, .rows = rows };
	int r = by_image ? 0 : add_callers(&x, paths->a, chosen, ctx);

	x.class = malloc(x.t->nr_procedures * sizeof(*x.class));
	x.total = calloc(rows->nr + 1, sizeof(*x.total));
	if (!x.class || !x.total)
		r = -ENOMEM;
	if (r >= 0) {
		memset(x.class, 0xff, x.t->nr_procedures * sizeof(*x.class));
		if (by_image)
			class_images(&x);
		else
			class_procedures(&x);
		r = make_totals(&x, paths->a->nr_events);
	}
	free(x.class);
	free(x.total);
	return r < 0 ? base_fail_errno(err, r, "cannot sum call paths") : 0;
}
