/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of traces.h. */
#ifndef DCPI_DAEMON_TRACES_INTERNAL_H
#define DCPI_DAEMON_TRACES_INTERNAL_H

#include <stdlib.h>

#include "step.h"
#include "values.h"
#include "trace.h"

/* A trace that waits, with all that is needed to go on. */
struct trace_pending {
	struct process *p;
	struct insn_trace w;
	uint64_t number;
	uint64_t *words;   /* its own, where values are wanted; or NULL */
	uint64_t until_ns; /* base_now_ns up to which it waits for its registry; 0: not asked yet */
	uint64_t news;	   /* dyn_news when its places were looked up last; 0: they were not */
	bool unsettled;	   /* see struct attrib */
	struct trace_past *past; /* a reference, once the process's life is over; or NULL */
	size_t nr;
	struct trace_step steps[TRACE_STEPS]; /* of one that waits, @nr alone have memory */
};

/* A process's share of the places in one second. */
struct trace_share {
	uint64_t second_ns;
	uint32_t tgid;
	unsigned int nr_places;
};

/* A place that what was translated leads to. */
struct trace_ahead {
	uint64_t pc;
	uint32_t tgid;
};

enum { TRACE_NR_SHARES = 256, TRACE_NR_AHEAD = 1024, TRACE_NR_LOOKED = 8192 };

/* The code for which blocks were put. */
struct trace_code {
	struct base_map known; /* by struct vtrace_place */
	struct trace_share shares[TRACE_NR_SHARES];
	uint64_t missed;    /* traces that met what nobody had translated, up to the last turn */
	bool busy;	    /* there were many of them in that */
	uint64_t budget_ns; /* CPU time that may be spent on translating now */
	uint64_t refilled_ns;
	uint64_t until_ns;			  /* base_now_ns at which this turn of it is over */
	uint64_t full_ns;			  /* the driver had no room then; 0 */
	struct trace_ahead ahead[TRACE_NR_AHEAD]; /* to be looked at */
	size_t nr_ahead;
	uint64_t looked[TRACE_NR_LOOKED]; /* hashes of processes' such places */
	uint32_t fetched_tgid;
	uint64_t fetched_base;
	size_t fetched_len; /* 0: nothing is in code[] */
	uint8_t code[TRANSLATOR_CODE];
};

/* How often a sample gets a trace where that is ours to choose (pace.c). */
struct trace_pace {
	double every;	/* samples from one trace to the next */
	double left_ns; /* CPU time that was not spent; negative: it was spent too early */
	uint32_t nr_cpus;
	uint64_t looked_ns; /* time of the last look */
	uint64_t spent_ns;  /* CPU time spent up to then */
};

/* A trace whose values are wanted, where its blocks are. */
struct trace_ticket {
	struct trace_ticket *next; /* to be sent */
	uint64_t *words;	   /* until it was sent */
	struct insn_trace w;
	struct values_owner *owner; /* a reference, or NULL: nobody's */
	bool over;		    /* its process has ended, or runs another program … */
	struct trace_past *past;    /* … which had this; a reference, or NULL */
	uint32_t nr_answers;	    /* number of answers of profilers */
	size_t nr;
	struct trace_step steps[]; /* with references */
};

struct trace_values {
	struct values *client; /* NULL: nobody wants values */
	size_t nr_profilers;
	struct trace_ticket *first, *last; /* to be sent */
	size_t nr_queued;
	unsigned int thinned; /* times since nothing was queued: one of 2^thinned is taken */
	uint64_t random;      /* a number of base_random64 */
	struct base_map sent; /* struct trace_ticket by number, not yet answered by all */
	size_t nr_sent;
	uint64_t next_ticket;
	struct base_map owners; /* struct values_owner by tgid: of lives that go on */
	struct trace_values_stats stats;
};

/* A trace of single steps, for which its time has not come. */
struct trace_early {
	struct trace_early *next;
	struct insn_trace w;
	uint64_t words[];
};

struct trace_stepped {
	struct trace_stats stats;
	struct trace_early *first, *last; /* in the order of time */
	size_t nr;
};

struct traces {
	struct trace_config config;
	const struct trace_driver *calls;
	struct translator *translator;
	struct trace_stats stats; /* the daemon's part */
	uint64_t number;	  /* number of the next trace */
	uint64_t unsettled_ns;	  /* the first of known_ns of those that are; UINT64_MAX */
	struct trace_pending **waiting;
	size_t nr_waiting, cap_waiting, waiting_bytes;
	struct trace_code code;
	struct trace_pace pace; /* nr_cpus 0: it is fixed */
	uint64_t taken_ns;	/* CPU time for taking traces, by some of them */
	struct trace_values values;
	struct trace_stepped stepped;
};

/* The block of a word. */
const struct vtrace_code *trace_block(void *ctx, uint32_t id);

/* pace.c */

void trace_pace_begin(struct trace_pace *p, uint32_t every, uint32_t nr_cpus, uint64_t now_ns);
/* @spent_ns: CPU time of all traces so far. True: every has changed. */
bool trace_pace_look(struct trace_pace *p, uint64_t now_ns, uint64_t spent_ns);

/* trace.c */

/* Its blocks are where /proc listed, which no event up to then has contradicted. */
void trace_place_listed(const struct trace_config *c, struct trace_pending *k);

static inline void trace_code_release(struct trace_code *c)
{
	void *k;

	for (size_t pos = 0; base_map_next(&c->known, &pos, &k);)
		free(k);
	base_map_release(&c->known);
}

/* values.c */

void trace_past_put(struct trace_past *past);
void trace_values_release(struct trace_values *v);
/* All blocks of @k are placed or lost: its values are wanted. */
void trace_values_add(struct traces *t, const struct trace_pending *k, const uint64_t *words);
/* Before its trace comes in the order of time: a short life may be over then. */
void trace_values_met(struct traces *t, const struct insn_trace *w);

#endif
