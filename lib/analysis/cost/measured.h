/* SPDX-License-Identifier: BSD-2-Clause */
/* Costs of blocks, measured in a run that both counted and sampled. */
#ifndef DCPI_COST_MEASURED_H
#define DCPI_COST_MEASURED_H

#include "procedures.h"

struct estimate_kept {
	uint64_t samples;   /* of the image */
	uint64_t blocks;    /* with enough samples for their cost to be used later */
	uint64_t in_blocks; /* samples in these */
};

/*
 * Of an image that @truth has: what each block cost in the run that both counted and sampled,
 * into the costs that @db keeps of it. 0; -ENOENT (a bucket), and other errors of
 * analysis_image_open; -DCPI_EOVERFLOW, -ENOMEM; those of profdb_costs_keep.
 */
int estimate_costs_keep(struct analysis *a, struct analysis_image *ai, size_t event,
			const struct exact *truth, struct profdb *db, struct estimate_kept *kept,
			struct base_err *err);

#endif
