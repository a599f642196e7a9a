/* SPDX-License-Identifier: BSD-2-Clause */
/* How near frequencies come to the truth: what accuracy.c judges, accuracy_truth.c gathers. */
#ifndef DCPI_BENCH_ACCURACY_H
#define DCPI_BENCH_ACCURACY_H

#include "estimate.h"
#include "exact.h"
#include "samples.h"

enum { PLAIN, SOLVED, NR_ESTIMATORS }; /* samples / instructions; the flow equations */

/* A procedure that has samples. */
struct procedure {
	char *name;
	uint32_t nr_blocks, nr_edges;
	double *samples, *insns, *truth; /* by block */
	enum freq_confidence *confidence;
	double *edge_truth; /* by edge; below 0: leads in or out, not judged */
	double *block[NR_ESTIMATORS], *edge[NR_ESTIMATORS];
};

struct program {
	struct procedure *v;
	size_t nr, cap;
	double samples;	 /* in images that were counted */
	double nowhere;	 /* of them, those in no block of any procedure */
	double untrue;	 /* of them, those in blocks that never ran */
	uint64_t blocks; /* in all procedures */
	double seconds;	 /* spent on solving */
	uint64_t traces; /* that began in the images, or came into one */
};

/*
 * Every procedure of the counted images in which @a has samples of @event. @costs (may be NULL): a
 * database with measured costs of blocks. 0 or negative with @err.
 */
int program_gather(struct program *p, struct analysis *a, size_t event, const struct exact *truth,
		   struct profdb *costs, struct base_err *err);
void program_release(struct program *p);

#endif
