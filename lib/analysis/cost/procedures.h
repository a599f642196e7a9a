/* SPDX-License-Identifier: BSD-2-Clause */
/* An image's samples, or exact counts, laid to the instructions of its procedures' flow graphs. */
#ifndef DCPI_COST_PROCEDURES_H
#define DCPI_COST_PROCEDURES_H

#include "estimate.h"
#include "exact.h"
#include "samples.h"

/*
 * The event that tells most of frequencies: one of instructions, else of time with the most
 * samples in @ai, or in all that was chosen (NULL, or where @ai has none). Its index in @a, or
 * -ENOENT.
 */
int estimate_event(const struct analysis *a, const struct analysis_image *ai);

/* ---- samples --------------------------------------------------------------------------------- */

struct estimate_sample {
	uint64_t vaddr, count;
};

/* The samples of one event in an image. Zero-initialize; release with estimate_samples_release. */
struct estimate_samples {
	struct estimate_sample *v; /* ascending by vaddr */
	size_t nr, cap;
	double period; /* units of the event that a sample stands for; 1 where that is unknown */
	char event[PROFDB_EVENT_NAME];
};

/* 0 or -ENOMEM. Samples at offsets where the image has no address are left out. */
int estimate_samples_gather(struct estimate_samples *s, const struct analysis *a,
			    const struct analysis_image *ai, const struct image *img, size_t event);
/*
 * Executions of instructions instead, as @truth has them of the image that profiles know by @id: 0,
 * -ENOMEM, or -ENOENT where it has none.
 */
int estimate_samples_count(struct estimate_samples *s, const struct exact *truth, struct image *img,
			   const struct base_id *id);
void estimate_samples_release(struct estimate_samples *s);
/* Add to @by_insn (f->nr_insns) what lies in the graph's instructions. Returns how many samples. */
uint64_t estimate_samples_place(const struct estimate_samples *s, const struct flow *f,
				double *by_insn);

typedef int estimate_visit(void *context, const struct image_symbol *symbol, const struct flow *f,
			   const double *by_insn, struct base_err *err);
/* Samples that are in no visited procedure's instructions. */
struct estimate_rest {
	uint64_t no_procedure; /* in none */
	uint64_t no_code;      /* its bytes are not in the image */
	uint64_t no_block;     /* outside of its blocks */
};

/*
 * Visit each procedure of the image that has samples, once; cold parts with the procedure that
 * leads to them. Where procedures share instructions, the innermost has their samples, of such as
 * do not lie inside of one another the first; each is in one @by_insn, or in @rest (may be NULL).
 * Returns the first negative of @visit, those of flow_build, or 0.
 */
int estimate_procedures(struct image *img, const struct estimate_samples *s, estimate_visit *visit,
			void *context, struct estimate_rest *rest, struct base_err *err);

#endif
