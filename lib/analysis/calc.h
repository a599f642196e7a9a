/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What dcpicalc adds to a flow graph with samples: how often its blocks and edges ran, what one
 * execution of them cost, what they may have waited for, and how much of the samples that rests on.
 */
#ifndef DCPI_CALC_H
#define DCPI_CALC_H

#include "exact.h"
#include "freq.h"
#include "graph_flow.h"
#include "stall.h"

struct calc_options {
	enum freq_confidence least; /* estimates below it are not shown */
	double cutoff; /* percent of the procedure's samples; blocks with less are left out */
	bool opcodes;  /* put the instructions' bytes before their text */
	const struct exact *exact; /* counts to take instead of estimates, or NULL */
	enum stall_outside outside;
};

/*
 * Add the procedure to @g with all of this. @event: whose samples are shown; frequencies are of the
 * event that tells most of them (estimate_event), and of the costs of blocks that the database
 * keeps. An event of neither time nor instructions has no costs, and where no event tells
 * frequencies there are none: a note says so. 0 or negative with @err: those of graph_flow_add;
 * -ENOENT: @exact has nothing of this procedure.
 */
int calc_add(const struct graph_flow *f, size_t event, const struct calc_options *o,
	     struct graph *g, struct base_err *err);

#endif
