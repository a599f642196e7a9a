/* SPDX-License-Identifier: BSD-2-Clause */
/* How often the instructions of a listing ran, and what each run of them cost. */
#ifndef DCPI_LISTING_FREQ_H
#define DCPI_LISTING_FREQ_H

#include "estimate.h"
#include "listing.h"

struct listing_freq_unit {
	enum freq_confidence confidence; /* FREQ_NONE: nothing is known */
	double freq;			 /* executions */
	double units; /* of the cost event, that were spent here: samples * period */
};

struct listing_freq {
	struct listing_freq_unit *v; /* by the listing's units */
	size_t event;		     /* that tells the frequencies */
	size_t cost_event;	     /* in which costs are told; a clock or cycles */
	bool has_cost;
	/*
	 * True: executions, so that units / freq is the cost of one. False: they are right in
	 * proportion to one another at best, and there are no costs (see struct estimate).
	 */
	bool absolute;
	uint64_t
		windows; /* above 0: in proportion, as so many windows tell (see struct estimate) */
	uint32_t nr_unresolved; /* indirect jumps whose targets are not known */
};

/*
 * Zero-initialize @out; release it also on failure. Errors: -ENOENT (no event that tells
 * frequencies), those of flow_build and estimate_frequencies.
 */
int listing_freq_make(const struct analysis_listing *l, struct listing_freq *out,
		      struct base_err *err);
void listing_freq_release(struct listing_freq *f);

#endif
