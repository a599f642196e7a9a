/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Relative execution counts of nodes of code from instruction traces: stretches of some dozen
 * instructions each, with the edges that control took. A random walk that continues from each node
 * as the traces do visits each node, in the long run, in proportion to the program's executions;
 * this follows from the flow equations alone. Each procedure is walked by itself: a call returns at
 * once, and a walk that leaves the procedure enters it again.
 *
 * A walk begins where traces do, and ends with the same probability at each instruction. So parts
 * of a procedure that no trace connects have instructions in proportion to their time, however
 * early their traces end.
 *
 * Traces begin where time is spent, so slow code has too many. Each trace is therefore weighted by
 * the executions of its start (found without weights) for each trace that begins there; the square
 * root of that is used, as the full weight adds more variance than it removes bias.
 *
 * This module knows no images. docs/decisions/frequencies.md has the alternatives and their
 * measurements.
 */
#ifndef DCPI_CHAIN_H
#define DCPI_CHAIN_H

#include "base.h"

#define CHAIN_OUTSIDE UINT32_MAX
#define CHAIN_LOST    (UINT32_MAX - 1) /* a start that is not known */

/* A stretch of code that control, or a trace, enters at its first instruction or anywhere
 * within, and that control leaves behind its last instruction. */
struct chain_node {
	uint32_t insns; /* above 0 */
	uint32_t group; /* number of the procedure; its nodes are adjacent */
	uint32_t after; /* the node to which its final call returns, or CHAIN_OUTSIDE */
	bool falls;	/* it ends without a branch: control falls through into the next node */
	bool returns;
};

/* The traces that begin at one place and take one edge. */
struct chain_edge_count {
	uint32_t
		start; /* index of the place; CHAIN_OUTSIDE: in other code; CHAIN_LOST: not known */
	uint32_t from; /* node; CHAIN_OUTSIDE: the trace begins at, or enters, @to */
	uint32_t to;   /* node; CHAIN_OUTSIDE: the trace ends in, or leaves, @from */
	uint64_t count[2]; /* number of traces with even and with odd index */
};

struct chain_input {
	const struct chain_node *nodes;
	uint32_t nr_nodes, nr_groups;
	const uint32_t *starts; /* indexed by place: its node */
	uint32_t nr_starts;
	const struct chain_edge_count *edge_counts;
	size_t nr_edge_counts;
};

/* The weight of a trace: */
enum chain_weight {
	CHAIN_EVEN,	/* each trace counts as one */
	CHAIN_ROOT,	/* the square root of the next one */
	CHAIN_BY_NODE,	/* executions of its start's node for each trace that begins in that node */
	CHAIN_BY_START, /* executions of its start for each trace that begins there */
};

/* The traces to use, by the place where they begin: */
enum chain_starts {
	CHAIN_ALL,
	CHAIN_SLOW, /* half of the traces: those that begin at instructions with the most traces for
		       each execution */
	CHAIN_FAST, /* the other half */
};

struct chain_how {
	enum chain_weight weight;
	double damping; /* minimum for each instruction; more is used where traces are few */
	bool half[2];	/* which halves of the traces to use */
	enum chain_starts starts; /* not with CHAIN_EVEN; traces from elsewhere always count */
};

struct chain_edge {
	uint32_t from, to;
	double part; /* the part of @from's flow that takes this edge */
};

struct chain;

/* Creates a solver, released with chain_free; @in is used until then. 0, -EINVAL with @err (@in
 * is inconsistent), or -ENOMEM. */
int chain_new(const struct chain_input *in, struct chain **out, struct base_err *err);
void chain_free(struct chain *c);
/* Writes relative execution counts to @node, by node. 0 or -ENOMEM. */
int chain_solve(struct chain *c, const struct chain_how *how, double *node);
/* The part of @from's flow that goes to @to, in the last chain_solve; 0: none. */
double chain_part(const struct chain *c, uint32_t from, uint32_t to);
/* The number of trace visits of the node, in the last chain_solve without weights. */
double chain_visits(const struct chain *c, uint32_t node);

#endif
