/* SPDX-License-Identifier: BSD-2-Clause */
/* A procedure's control flow and its samples, as a flow graph. */
#ifndef DCPI_GRAPH_FLOW_H
#define DCPI_GRAPH_FLOW_H

#include "flow.h"
#include "graph.h"
#include "listing.h"

/* A procedure with its flow and samples, before any estimate. Zero-initialize. */
struct graph_flow {
	struct flow *flow;
	struct analysis_listing **parts; /* the procedure, then its cold parts */
	size_t nr_parts, cap_parts;
};

/*
 * Builds the flow of the listed procedure, and lists its cold parts (name.cold). Takes over @l,
 * also on failure. Errors: those of flow_build and analysis_listing_open.
 */
int graph_flow_open(struct analysis_listing *l, struct graph_flow *out, struct base_err *err);
void graph_flow_close(struct graph_flow *f);
/*
 * Adds the procedure to @g as the last one: block i of the graph is block i of the flow, edges are
 * in the flow's order, and instructions have @event's samples (none if the analysis does not have
 * the event), lines, and notes on facts that are not known. 0 or negative with @err.
 */
int graph_flow_add(const struct graph_flow *f, size_t event, struct graph *g, struct base_err *err);

#endif
