/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of chain.h. */
#ifndef CHAIN_INTERNAL_H
#define CHAIN_INTERNAL_H

#include "chain.h"

/* Behind the nodes stands one for each group: what left it, to come in again. */
struct chain {
	const struct chain_input *in;
	uint32_t nr_all;
	struct chain_edge *edges; /* ascending by from, to */
	size_t nr_edges;
	double *count;	 /* by edge */
	size_t *edge_of; /* by move: where it leaves its node by; SIZE_MAX: nowhere */
	size_t *come_of; /* by move: where it comes into a group by; SIZE_MAX: it does not */
	size_t *first;	 /* by node: in @into; one more than there are */
	size_t *into;	 /* edges by where they lead to */
	bool *is_after;	 /* by node: a call comes back to it */
	double *visits, *ends, *left, *answer; /* by node */
	double *seen;			       /* by node: unweighed visits */
	double *begun;			       /* by node: walks that begin there */
	double *kept;		  /* by node: of walks in it, those that go on behind it */
	double *total[2];	  /* by group: of visits, of the answer */
	double *windows, *weight; /* by start: how many begin there; by what each counts */
	double damping;
};

static inline double chain_counted(const struct chain_move *m, const bool half[2])
{
	return (half[0] ? (double)m->count[0] : 0) + (half[1] ? (double)m->count[1] : 0);
}

static inline struct chain_edge chain_edge(uint32_t from, uint32_t to)
{
	return (struct chain_edge){ .from = from, .to = to };
}

/* chain_edges.c */

/* 0, or -EINVAL. */
int chain_check(const struct chain_input *in, struct base_err *err);
/* Fill edges, edge_of, come_of, first, into and is_after. */
void chain_list(struct chain *c);
/* SIZE_MAX: there is none. */
size_t chain_edge_find(const struct chain *c, const struct chain_edge *key);
/* Does it end with no branch? */
bool chain_falls(const struct chain_input *in, uint32_t node);
/* On from a node, where the code leaves no choice; else CHAIN_OUTSIDE. */
uint32_t chain_only_way(const struct chain_input *in, uint32_t node);
/* Of its group; there it comes in where nobody saw that. */
bool chain_is_first(const struct chain_input *in, uint32_t node);

/* chain_weights.c */

/* How many windows begin at each start. */
void chain_count_windows(struct chain *c, const bool half[2]);
/* By the last answer. 0 or -ENOMEM. */
int chain_weigh(struct chain *c, enum chain_weight how);
/* Only those count from now on. 0 or -ENOMEM. */
int chain_choose(struct chain *c, enum chain_starts which);

#endif
