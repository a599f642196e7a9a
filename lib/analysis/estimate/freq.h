/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often blocks and edges ran, from samples: the flow equations solved as a whole. What goes
 * into a block comes out of it, so each block's samples speak for its neighbours too. Knows no
 * images: a graph, samples, costs.
 *
 * docs/decisions/frequencies.md says what was tried and what it measured.
 */
#ifndef DCPI_FREQ_H
#define DCPI_FREQ_H

#include "base.h"

#define FREQ_OUTSIDE UINT32_MAX /* an edge's end that is not in this graph */

enum freq_model {
	/*
	 * Samples in proportion to time. The time of a block is not in proportion to a cost that
	 * can be known beforehand, only roughly: so the least sum of relative deviations, where a
	 * block that is far off pulls no more than others, and a long one more than a short one.
	 */
	FREQ_TIME,
	/* Samples in proportion to cost times executions but for chance: the likeliest answer. */
	FREQ_INSTRUCTIONS,
};

enum freq_confidence {
	FREQ_NONE, /* no sample had a say in it */
	FREQ_LOW,
	FREQ_MEDIUM, /* within a factor of two, three times in four */
	FREQ_HIGH,   /* within 10 %, nine times in ten (docs/decisions/frequencies.md) */
};

struct freq_block {
	double samples; /* 0 or more */
	double cost;	/* of one execution, above 0: samples / cost is in the result's unit */
	uint32_t insns; /* instructions in it, above 0 */
	bool measured;	/* the cost comes from an exact run of this very block */
};

struct freq_edge {
	uint32_t from, to; /* a block, or FREQ_OUTSIDE */
};

struct freq_result {
	double *block, *edge;		  /* executions; what goes into a block comes out of it */
	enum freq_confidence *confidence; /* by block */
	/* How far the flow equations moved what the samples say: the mean of |ln(F * cost /
	 * samples)|, weighted by samples. 0: not at all, as where nothing ties the blocks. */
	double disagreement;
	bool unfinished; /* the graph was too large for the best answer: this is some answer */
};

/*
 * The confidence of a block: *high* where cost is measured, or samples count instructions, and
 * flow bears it out: of the graph's samples nine in ten are in such blocks, their disagreement is
 * at most 0.05, the block's own at most 0.1, and it has 100 samples. *Medium*: the disagreement of
 * all is at most 0.5, the block's own a factor of two, and it has 25 samples. Frequencies of time
 * alone are never high.
 *
 * 0, -EINVAL (an edge or a number is not as said here), -ENOMEM. @out is released by freq_release,
 * also after a failure. A block that nothing leads to, or from, has frequency 0 whatever its
 * samples: give it edges from and to outside.
 */
int freq_solve(enum freq_model model, const struct freq_block *blocks, uint32_t nr_blocks,
	       const struct freq_edge *edges, uint32_t nr_edges, struct freq_result *out,
	       struct base_err *err);
void freq_release(struct freq_result *r);
const char *freq_confidence_text(enum freq_confidence c); /* "none", "low", … */

#endif
