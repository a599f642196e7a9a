/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cheapest circulation in a network: flow that each node passes on, at the least sum of cost
 * times flow. What freq.c reduces the flow equations to. In integers, so that the answer is exact
 * and the same everywhere.
 *
 * Primal network simplex over strongly feasible trees (Cunningham 1976; Ahuja, Magnanti, Orlin,
 * "Network Flows", chapter 11).
 */
#ifndef DCPI_CIRCULATION_H
#define DCPI_CIRCULATION_H

#include "base.h"

#define CIRCULATION_NO_LIMIT INT64_MAX

/* Several may join the same two nodes: a convex cost is an arc for each of its slopes. */
struct circulation_arc {
	uint32_t from, to;
	int64_t cap;  /* 0 or more; CIRCULATION_NO_LIMIT only where cost is 0 or more */
	int64_t cost; /* of a unit; its size times the number of nodes stays below 2^61 */
	int64_t flow; /* the answer: 0 to cap */
};

/*
 * Fill in every flow. @max_work bounds the time, in steps of a nanosecond or so: when it is used
 * up, the flow is a circulation within its capacities, but not the cheapest. Finite capacities of
 * arcs that cost less than nothing sum up to less than 2^62.
 *
 * 0: the cheapest; 1: out of work; -EINVAL: an arc is not as said here; -ENOMEM.
 */
int circulation_solve(uint32_t nr_nodes, struct circulation_arc *arcs, size_t nr_arcs,
		      uint64_t max_work, struct base_err *err);

#endif
