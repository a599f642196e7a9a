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

/* Of one instruction. Frequencies of low confidence are hints, no more. */
struct calc_insn {
	double freq; /* executions, or in proportion to them */
	enum freq_confidence confidence;
	double samples;	    /* of the event */
	double stalled;	    /* of these, what was no execution (see stall.h) */
	double unexplained; /* of these, what no cause explains */
};

struct calc_insns {
	struct calc_insn *v; /* in the flow's order */
	bool known;	     /* some event tells frequencies */
	bool absolute;	     /* they are executions */
	bool timed;	     /* @event is of time, so that there are samples and stalls */
	double period;	     /* units of @event in a sample; 1 where that is unknown */
	uint64_t windows;    /* as struct estimate */
	char *text;	     /* what the frequencies are, and from what (estimate_text); or NULL */
};

/* The same by instruction. Zero-initialize @out; release it also on failure. Errors: as calc_add.
 */
int calc_insns(const struct graph_flow *f, size_t event, enum stall_outside outside,
	       struct calc_insns *out, struct base_err *err);
void calc_insns_release(struct calc_insns *c);

#endif
