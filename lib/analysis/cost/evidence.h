/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What samples of hardware events say of stalls: misses of caches and translation buffers, branches
 * predicted wrongly, by the names that the driver knows. Each event may have taken so long at most
 * (a miss that goes to the memory of another socket, a walk of all page tables), which makes its
 * samples a limit of what its cause took; mostly it takes less.
 *
 * Untested on hardware: seen on made samples only.
 */
#ifndef DCPI_EVIDENCE_H
#define DCPI_EVIDENCE_H

#include "samples.h"
#include "stall.h"

struct evidence {
	struct stall_evidence v[ANALYSIS_NR_EVENTS];
	size_t event[ANALYSIS_NR_EVENTS]; /* of each: its index in the analysis */
	size_t nr;
};

/* What evidence is gathered of. */
struct evidence_input {
	const struct analysis *a;
	const struct analysis_image *ai;
	const struct flow *flow;
	size_t time; /* an event of time; the others are those sampled beside it */
	/* Executions by block, or NULL: not known; then misses of the last cache say nothing, as
	 * hits in it may take long too. */
	const double *runs;
	/* An event's samples by instruction, to be freed; NULL where memory lacks. */
	double *(*samples)(const void *context, size_t event);
	const void *context;
};

/* Does it tell of a cause? */
bool evidence_speaks(const char *event);
/* Zero-initialize @out; release it also on failure. 0 or -ENOMEM. */
int evidence_gather(const struct evidence_input *in, struct evidence *out);
void evidence_release(struct evidence *e);

#endif
