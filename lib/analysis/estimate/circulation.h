/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The minimum-cost circulation of a network: a flow that every node conserves, with the least sum
 * of cost times flow. estimate.c reduces the flow equations to it. It uses integers, so that the
 * answer is exact and the same on every machine.
 *
 * Primal network simplex over strongly feasible trees (Cunningham 1976; Ahuja, Magnanti, Orlin,
 * "Network Flows", chapter 11).
 */
#ifndef DCPI_CIRCULATION_H
#define DCPI_CIRCULATION_H

#include "base.h"

#define CIRCULATION_NO_LIMIT INT64_MAX

/* An arc. Several may join the same two nodes: a convex cost is one arc for each of its slopes. */
struct circulation_arc {
	uint32_t from, to;
	int64_t cap;  /* 0 or more; CIRCULATION_NO_LIMIT only where cost is 0 or more */
	int64_t cost; /* cost of a unit; its absolute value times the number of nodes stays below
			 2^61 */
	int64_t flow; /* the answer: 0 to cap */
};

/*
 * Computes every flow. @max_work bounds the time, in steps of about a nanosecond: when it is used
 * up, the flow is a circulation within its capacities, but not the cheapest. The finite capacities
 * of arcs with negative cost sum up to less than 2^62.
 *
 * 0: the cheapest; 1: out of work; -EINVAL with @err: an arc breaks these rules; -ENOMEM.
 */
int circulation_solve(uint32_t nr_nodes, struct circulation_arc *arcs, size_t nr_arcs,
		      uint64_t max_work, struct base_err *err);

#endif
