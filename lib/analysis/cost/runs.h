/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often the blocks of an image's procedures ran, counted by dcpix or estimated from samples:
 * what is handed on to compilers and to other programs that show counts.
 */
#ifndef DCPI_RUNS_H
#define DCPI_RUNS_H

#include "procedures.h"

struct runs_procedure {
	const struct image_symbol *symbol;
	const struct flow *flow;
	const double *block;	       /* executions; below 0: not known, or not surely enough */
	double entered;		       /* at its start, from outside; below 0: not known */
	const struct exact_view *view; /* NULL: estimated */
	double part; /* of runs.total; double, for counts of several processes may not fit */
};

typedef int runs_visit(void *context, const struct runs_procedure *p, struct base_err *err);

struct runs {
	struct image *img;
	const struct base_id *id;					  /* as profiles have it */
	bool (*wanted)(void *context, const struct image_symbol *symbol); /* NULL: all are */
	runs_visit *visit;
	void *context; /* of both */
	/* Either counts, */
	const struct exact *exact;
	/* or samples of an event that tells frequencies. */
	const struct analysis *a;
	struct analysis_image *ai;
	size_t event;
	enum freq_confidence least; /* what is less sure is not known */
	/* Set: */
	double total;	    /* executions of instructions, or samples, of the whole image */
	size_t nr_known;    /* procedures of which a block is known to have run */
	size_t nr_absolute; /* of these: executions, not only in proportion */
	uint64_t windows;   /* above 0: of some, the proportions are of so many windows */
};

/*
 * Visit each procedure that has counts, or samples; cold parts with the procedure that leads to
 * them. The first negative of @visit; -ENOENT (nothing was counted), those of flow_build and
 * estimate_frequencies, of profdb_costs_read but for its -ENOENT; -ENOMEM.
 */
int runs_make(struct runs *r, struct base_err *err);
/* How often control went along an edge within the procedure; @from: executions of its block. */
double runs_edge(const struct exact_view *v, const struct flow *f, const struct flow_edge *e,
		 double from);

#endif
