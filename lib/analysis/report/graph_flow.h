/* SPDX-License-Identifier: BSD-2-Clause */
/* A procedure's flow and its samples, as a flow graph. */
#ifndef DCPI_GRAPH_FLOW_H
#define DCPI_GRAPH_FLOW_H

#include "flow.h"
#include "graph.h"
#include "listing.h"

/* A procedure with all that is known before anything is estimated. Zero-initialize. */
struct graph_flow {
	struct flow *flow;
	struct analysis_listing **parts; /* the procedure; then parts that stand elsewhere */
	size_t nr_parts, cap_parts;
};

/*
 * Build the flow of the listed procedure, and list its parts that stand elsewhere (name.cold).
 * Takes over @l, also on failure. Errors: those of flow_build and analysis_listing_open.
 */
int graph_flow_open(struct analysis_listing *l, struct graph_flow *out, struct base_err *err);
void graph_flow_close(struct graph_flow *f);
/* Samples of @event by instruction of the flow, which the caller frees; NULL where memory lacks. */
double *graph_flow_samples(const struct graph_flow *f, size_t event);
/*
 * Add the procedure to @g: block i of the graph is block i of the flow, edges stand in the flow's
 * order; instructions with @event's samples (none where the analysis has no such event), lines, and
 * notes of what is not known. 0 or negative
 * with @err; the procedure is the last in @g.
 */
int graph_flow_add(const struct graph_flow *f, size_t event, struct graph *g, struct base_err *err);

#endif
