/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often nodes ran in proportion to one another, from windows: stretches of some dozen
 * instructions each, of which is known where control went. A walk that goes on from each node as
 * windows were seen to go on is, in the long run, in each node as often as the program was, by the
 * flow equations alone, whatever made it go there. Each procedure is walked for itself, over and
 * over: a call comes back, and what leaves comes in again.
 *
 * A walk begins where windows do, and is given up as often at each instruction. So parts of a
 * procedure between which no window went have instructions as they had time, however early their
 * windows end.
 *
 * Windows begin where time is spent, and tell too much of what is slow. So each counts by how often
 * its start is executed (as found without this) to how many windows begin there: by the root of it,
 * for in full it brings in more chance than it takes away of time.
 *
 * Knows no images. docs/decisions/frequencies.md says what was tried and what it measured.
 */
#ifndef DCPI_CHAIN_H
#define DCPI_CHAIN_H

#include "base.h"

#define CHAIN_OUTSIDE UINT32_MAX
#define CHAIN_LOST    (UINT32_MAX - 1) /* of a start: nobody knows */

/* A stretch of code that is entered at its first instruction, or begun in by a window, and left
 * behind its last one. */
struct chain_node {
	uint32_t insns; /* above 0 */
	uint32_t group; /* which procedure; its nodes stand together */
	uint32_t after; /* where the call that it ends with comes back to, or CHAIN_OUTSIDE */
	bool falls;	/* ends with no branch: it goes on into the next node */
	bool returns;
};

/* What all windows together did that began at one place. */
struct chain_move {
	uint32_t start;	   /* which place; CHAIN_OUTSIDE: in other code; CHAIN_LOST */
	uint32_t from;	   /* node; CHAIN_OUTSIDE: the window begins, or comes in, at @to */
	uint32_t to;	   /* node; CHAIN_OUTSIDE: the window ends, or goes out, in @from */
	uint64_t count[2]; /* windows of even and of odd number */
};

struct chain_input {
	const struct chain_node *nodes;
	uint32_t nr_nodes, nr_groups;
	const uint32_t *starts; /* by place: the node that it is in */
	uint32_t nr_starts;
	const struct chain_move *moves;
	size_t nr_moves;
};

/* By what a window counts: */
enum chain_weight {
	CHAIN_EVEN,	/* nothing: each is one */
	CHAIN_ROOT,	/* the root of the next */
	CHAIN_BY_NODE,	/* executions of its start's node by windows that begin in it */
	CHAIN_BY_START, /* executions of its start by windows that begin there */
};

/* By where in its procedure a window begins: */
enum chain_starts {
	CHAIN_ALL,
	CHAIN_SLOW, /* the half of them that begin at instructions with most windows by executions
		     */
	CHAIN_FAST, /* the other half */
};

struct chain_how {
	enum chain_weight weight;
	double damping;		  /* by instruction, at least; more where windows are few */
	bool half[2];		  /* the windows to take */
	enum chain_starts starts; /* not with CHAIN_EVEN; those from elsewhere count always */
};

struct chain_edge {
	uint32_t from, to;
	double part; /* of what leaves @from */
};

struct chain;

/* -EINVAL (a number is not as said here), -ENOMEM. @in is needed until chain_free. */
int chain_new(const struct chain_input *in, struct chain **out, struct base_err *err);
void chain_free(struct chain *c);
/* Executions in proportion to one another into @node, by node; -ENOMEM. */
int chain_solve(struct chain *c, const struct chain_how *how, double *node);
/* Of the last chain_solve: part of what leaves a node that goes to the other; 0: none. */
double chain_part(const struct chain *c, uint32_t from, uint32_t to);
/* How often windows were in the node, in the last chain_solve without weights. */
double chain_visits(const struct chain *c, uint32_t node);

#endif
