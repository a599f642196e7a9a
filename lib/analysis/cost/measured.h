/* SPDX-License-Identifier: BSD-2-Clause */
/* Costs of blocks, measured in a run that both counted and sampled. */
#ifndef DCPI_COST_MEASURED_H
#define DCPI_COST_MEASURED_H

#include "procedures.h"

struct estimate_kept {
	uint64_t samples;   /* samples of the image */
	uint64_t blocks;    /* blocks with enough samples for their cost to be used */
	uint64_t in_blocks; /* samples in these */
};

/*
 * Computes what each block of the image cost in the run that both counted (@truth) and sampled, and
 * adds it to the costs that @db keeps of the image. 0; with @err: -ENOENT (a bucket), other errors
 * of analysis_image_open and of profdb_costs_keep, -DCPI_EOVERFLOW, -ENOMEM.
 */
int estimate_costs_keep(struct analysis *a, struct analysis_image *ai, size_t event,
			const struct exact *truth, struct profdb *db, struct estimate_kept *kept,
			struct base_err *err);

#endif
