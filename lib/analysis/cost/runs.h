/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Execution counts of the blocks of an image's procedures, counted by dcpix or estimated from
 * samples, for compilers and for other programs that show counts.
 */
#ifndef DCPI_RUNS_H
#define DCPI_RUNS_H

#include "procedures.h"

struct runs_procedure {
	const struct image_symbol *symbol;
	const struct flow *flow;
	const double *block; /* executions; below 0: not known, or of too low confidence */
	double entered;	     /* number of entries at its start; below 0: not known */
	const struct exact_view *view; /* NULL: estimated */
	double part; /* its part of runs.total; a double, as counts of several processes may not fit
		      */
};

typedef int runs_visit(void *context, const struct runs_procedure *p, struct base_err *err);

struct runs {
	struct image *img;
	const struct base_id *id; /* identity as in profiles */
	bool (*wanted)(void *context, const struct image_symbol *symbol); /* NULL: all are */
	runs_visit *visit;
	void *context; /* argument of both */
	/* The source is either exact counts, */
	const struct exact *exact;
	/* or samples of an event that determines frequencies. */
	const struct analysis *a;
	struct analysis_image *ai;
	size_t event;
	enum freq_confidence least; /* counts with lower confidence are not known */
	/* The results: */
	double total;	    /* executions of instructions, or samples, of the whole image */
	size_t nr_known;    /* procedures with a block that is known to have run */
	size_t nr_absolute; /* number of these with executions, not only proportions */
	uint64_t traces;    /* above 0: the proportions of some are from so many traces */
};

/*
 * Visits each procedure that has counts, or samples; cold parts with the procedure that leads to
 * them. Returns 0, the first negative result of @visit, or with @err: -ENOENT (nothing was
 * counted), errors of flow_build, estimate_frequencies and profdb_costs_read (except -ENOENT),
 * -ENOMEM.
 */
int runs_make(struct runs *r, struct base_err *err);
/* Returns how often control took an edge within the procedure; @from: executions of its source
 * block. */
double runs_edge(const struct exact_view *v, const struct flow *f, const struct flow_edge *e,
		 double from);

#endif
