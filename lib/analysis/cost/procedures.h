/* SPDX-License-Identifier: BSD-2-Clause */
/* The samples of an image, or its exact counts, attributed to the instructions of its
 * procedures' flow graphs. */
#ifndef DCPI_COST_PROCEDURES_H
#define DCPI_COST_PROCEDURES_H

#include "estimate.h"
#include "exact.h"
#include "samples.h"

/*
 * Returns the index in @a of the event that determines frequencies best: one of neither time nor
 * instructions for its retired instruction samples, if these are 25, else one of instructions, else
 * the event of time with the most samples in @ai, or in all images (@ai NULL, or without such
 * samples). -ENOENT: there is none.
 */
int estimate_event(const struct analysis *a, const struct analysis_image *ai);
/* Was this one, which that returned, chosen for its instruction samples? */
bool estimate_by_retired(const struct analysis *a, size_t event);
/* True if these retired and were chosen by a count of all operations: then their number times the
 * period is how often the instruction ran. */
static inline bool estimate_is_retired(const struct profdb_insn *m)
{
	uint64_t want = ISAMPLE_BIT(ISAMPLE_RETIRED) | ISAMPLE_BIT(ISAMPLE_BYCOUNT);

	return (m->known & m->bits & want) == want;
}

/* ---- samples --------------------------------------------------------------------------------- */

struct estimate_sample {
	uint64_t vaddr, count;
};

/* The samples of one event in an image. Zero-initialize; release with estimate_samples_release. */
struct estimate_samples {
	struct estimate_sample *v; /* ascending by vaddr */
	size_t nr, cap;
	double period; /* units of the event that a sample stands for; 1: not known */
	char event[PROFDB_EVENT_NAME];
};

/* Gathers the samples of @event in the image. Samples at offsets without an address are left
 * out. 0 or -ENOMEM. */
int estimate_samples_gather(struct estimate_samples *s, const struct analysis *a,
			    const struct analysis_image *ai, const struct image *img, size_t event);
/* The same of an event that estimate_event returned; its retired instruction samples alone, where
 * it was chosen for these. */
int estimate_runs_gather(struct estimate_samples *s, const struct analysis *a,
			 const struct analysis_image *ai, const struct image *img, size_t event);
void estimate_samples_release(struct estimate_samples *s);
/* Adds the samples in the graph's instructions to @by_insn, which has f->nr_insns elements.
 * Returns the number of samples added. */
uint64_t estimate_samples_place(const struct estimate_samples *s, const struct flow *f,
				double *by_insn);

typedef int estimate_visit(void *context, const struct image_symbol *symbol, const struct flow *f,
			   const double *by_insn, struct base_err *err);
/* Samples outside of the instructions of visited procedures. */
struct estimate_rest {
	uint64_t no_procedure; /* in no procedure */
	uint64_t no_code;      /* in a procedure whose bytes are not in the image */
	uint64_t no_block;     /* in a procedure, outside of its blocks */
};

/*
 * Visits each procedure of the image that has samples, once; cold parts are visited with the
 * procedure that leads to them. If procedures share instructions, the innermost gets the samples,
 * and among procedures that overlap without nesting the first. Each sample is in one @by_insn, or
 * in @rest (may be NULL). Returns the first negative result of @visit, an error of flow_build, or
 * 0.
 */
int estimate_procedures(struct image *img, const struct estimate_samples *s, estimate_visit *visit,
			void *context, struct estimate_rest *rest, struct base_err *err);

#endif
