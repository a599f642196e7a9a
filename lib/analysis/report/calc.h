/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The additions of dcpicalc to a flow graph with samples: frequencies of blocks and edges, the cost
 * of one execution, possible causes of stalls, and the part of the samples on which this rests.
 */
#ifndef DCPI_CALC_H
#define DCPI_CALC_H

#include <stdlib.h>
#include <string.h>

#include "exact.h"
#include "freq.h"
#include "graph_flow.h"
#include "stall.h"

struct calc_how {
	enum freq_confidence least; /* estimates with lower confidence are not shown */
	double cutoff; /* percent of the procedure's samples; blocks with less are omitted */
	bool opcodes;  /* show the instructions' bytes before their text */
	const struct exact *exact; /* exact counts to use in place of estimates, or NULL */
	enum stall_outside outside;
};

/*
 * Adds the procedure to @g with all of this. @event: the event whose samples are shown; frequencies
 * are from the event that determines most of them (estimate_event), and from the costs of blocks
 * that the database keeps. An event of neither time nor instructions has no costs, and without any
 * event that determines frequencies there are none: a note says so. 0 or negative with @err: errors
 * of graph_flow_add; -ENOENT: @exact does not have this procedure.
 */
int calc_add(const struct graph_flow *f, size_t event, const struct calc_how *o, struct graph *g,
	     struct base_err *err);

/* The results for one instruction. Frequencies of low confidence are hints. */
struct calc_insn {
	double freq; /* executions, or proportions */
	enum freq_confidence confidence;
	double samples;	    /* samples of the event */
	double stalled;	    /* the part of these that is stall, not execution (see stall.h) */
	double unexplained; /* the part of these without a known cause */
};

struct calc_insns {
	struct calc_insn *v; /* in the flow's order */
	bool known;	     /* some event determines frequencies */
	bool absolute;	     /* the frequencies are executions */
	bool timed;	     /* @event is of time: samples and stalls exist */
	double period;	     /* units of @event in a sample; 1: not known */
	uint64_t traces;     /* as struct estimate */
	char *text; /* description of the frequencies and their source (estimate_text); or NULL */
};

/* Computes the same by instruction into @out, which the caller zero-initializes and releases,
 * also on failure. Errors: as calc_add. */
int calc_insns(const struct graph_flow *f, size_t event, enum stall_outside outside,
	       struct calc_insns *out, struct base_err *err);
static inline void calc_insns_release(struct calc_insns *c)
{
	free(c->v);
	free(c->text);
	memset(c, 0, sizeof(*c));
}

#endif
