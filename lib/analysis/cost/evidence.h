/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Evidence for the causes of stalls from samples of hardware events: misses of caches and
 * translation buffers, and mispredicted branches, under the driver's names. Each event has a
 * maximal time (a miss that goes to the memory of another socket, a walk of all page tables), so
 * its samples limit the time of its cause; mostly it takes less.
 *
 * Untested on hardware: tested with synthetic samples only.
 */
#ifndef DCPI_EVIDENCE_H
#define DCPI_EVIDENCE_H

#include "samples.h"
#include "stall.h"

struct evidence {
	struct stall_evidence v[ANALYSIS_NR_EVENTS];
	size_t event[ANALYSIS_NR_EVENTS]; /* indexed by element of v: the event's index in the
					     analysis */
	size_t nr;
};

/* The input of evidence_gather. */
struct evidence_input {
	const struct analysis *a;
	const struct analysis_image *ai;
	const struct flow *flow;
	size_t time; /* the event of time; the others were sampled beside it */
	/* Executions by block, or NULL if not known; then misses of the last cache are no
	 * evidence, as hits in it may take long too. */
	const double *runs;
	/* Returns an event's samples by instruction, which evidence_release frees; NULL where
	 * memory lacks. */
	double *(*samples)(const void *context, size_t event);
	const void *context;
};

/* Is the event evidence for a cause? */
bool evidence_speaks(const char *event);
/* Gathers evidence into @out, which the caller zero-initializes and releases, also on failure. 0
 * or -ENOMEM. */
int evidence_gather(const struct evidence_input *in, struct evidence *out);
void evidence_release(struct evidence *e);

#endif
