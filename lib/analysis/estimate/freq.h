/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frequencies of blocks and edges from samples, as the solution of all flow equations at once. The
 * flow into a block equals the flow out of it, so each block's samples inform about its neighbours
 * too. This module knows no images: its input is a graph, samples and costs.
 *
 * docs/decisions/frequencies.md has the alternatives and their measurements.
 */
#ifndef DCPI_FREQ_H
#define DCPI_FREQ_H

#include "base.h"

#define FREQ_OUTSIDE UINT32_MAX /* the end of an edge outside of this graph */

enum freq_model {
	/*
	 * Samples are in proportion to time. The time of a block is only roughly in proportion to
	 * any cost known beforehand. The solution minimizes the sum of relative deviations, so that
	 * an outlier pulls no more than other blocks, and a long block pulls more than a short one.
	 */
	FREQ_TIME,
	/* Samples are in proportion to cost times executions, apart from noise: the solution is
	 * the likeliest one. */
	FREQ_INSTRUCTIONS,
};

enum freq_confidence {
	FREQ_NONE, /* no sample determines it */
	FREQ_LOW,
	FREQ_MEDIUM, /* within a factor of two in three of four cases */
	FREQ_HIGH,   /* within 10 % in nine of ten cases (docs/decisions/frequencies.md) */
};

struct freq_block {
	double samples; /* 0 or more */
	double cost;	/* cost of one execution, above 0: samples / cost is in the result's unit */
	uint32_t insns; /* number of instructions, above 0 */
	bool measured;	/* the cost comes from an exact count of this block */
};

struct freq_edge {
	uint32_t from, to; /* a block, or FREQ_OUTSIDE */
};

struct freq_result {
	double *block, *edge; /* executions; the flow into a block equals the flow out of it */
	enum freq_confidence *confidence; /* indexed by block */
	/* The deviation of the result from the samples: the mean of |ln(F * cost / samples)|,
	 * weighted by samples. 0: none, as where no equation connects the blocks. */
	double disagreement;
	bool unfinished; /* the graph is too large for the optimum; this is a feasible solution */
};

/*
 * Estimates frequencies and their confidence. The confidence of a block is
 * - *high* where the cost is measured, or samples count instructions, and the flow equations
 *   confirm it: nine in ten of the graph's samples are in such blocks, the disagreement of these is
 *   at most 0.05, that of the block at most 0.1, and it has 100 samples. Frequencies from time
 *   alone are never high.
 * - *medium* where the disagreement of all is at most 0.5, that of the block at most a factor of
 *   two, and it has 25 samples.
 *
 * 0, or with @err -EINVAL (an edge or a number breaks the rules above) or -ENOMEM. @out is released
 * by freq_release, also after a failure. A block that cannot be reached from outside, or cannot
 * reach it, gets frequency 0 whatever its samples: the caller adds edges from and to outside.
 */
int freq_solve(enum freq_model model, const struct freq_block *blocks, uint32_t nr_blocks,
	       const struct freq_edge *edges, uint32_t nr_edges, struct freq_result *out,
	       struct base_err *err);
void freq_release(struct freq_result *r);
const char *freq_confidence_text(enum freq_confidence c); /* "none", "low", … */

#endif
