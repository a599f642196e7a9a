/* SPDX-License-Identifier: BSD-2-Clause */
/* Execution counts of a listing's instructions, and the cost of each execution. */
#ifndef DCPI_LISTING_FREQ_H
#define DCPI_LISTING_FREQ_H

#include "estimate.h"
#include "listing.h"

struct listing_freq_unit {
	enum freq_confidence confidence; /* FREQ_NONE: not known */
	double freq;			 /* executions */
	double units;			 /* units of the cost event spent here: samples * period */
};

struct listing_freq {
	struct listing_freq_unit *v; /* indexed by unit of the listing */
	size_t event;		     /* the event that determines the frequencies */
	size_t cost_event;	     /* the event of the costs: a clock or cycles */
	bool has_cost;
	/*
	 * True: executions, and units / freq is the cost of one. False: at best proportions,
	 * without costs (see struct estimate).
	 */
	bool absolute;
	uint64_t traces;	/* above 0: proportions from so many traces (see struct estimate) */
	uint32_t nr_unresolved; /* number of indirect jumps with unknown targets */
};

/*
 * Fills @out, which the caller zero-initializes and releases, also on failure. Errors: -ENOENT (no
 * event determines frequencies), those of flow_build and estimate_frequencies.
 */
int listing_freq_make(const struct analysis_listing *l, struct listing_freq *out,
		      struct base_err *err);
void listing_freq_release(struct listing_freq *f);

#endif
