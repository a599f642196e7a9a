/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often the blocks of a procedure ran, from its samples: the flow graph, the samples of an
 * event and what is known of the blocks' costs, brought together for freq.h.
 */
#ifndef DCPI_ESTIMATE_H
#define DCPI_ESTIMATE_H

#include "base.h"
#include "flow.h"
#include "freq.h"
#include "paths.h"
#include "profdb.h"

/* A cost measured by fewer samples is not used. */
#define ESTIMATE_MIN_SAMPLES 25

/* ---- events ---------------------------------------------------------------------------------- */

/*
 * Is @event the one of that @name, whatever stands around it: modifiers ("cycles:p"), and of those
 * that perf named its PMU, terms, and a number where several are the same ("cpu_core/cycles/P",
 * "cycles/period=1000/u", "cycles#2")?
 */
bool estimate_event_is(const char *event, const char *name);
/* What the samples of an event are in proportion to, or -ENOENT where it is neither. */
int estimate_model(const char *event);
/* Is its unit a cycle? Of the other events of time (clocks) it is a nanosecond. */
bool estimate_is_cycles(const char *event);

/* ---- frequencies ----------------------------------------------------------------------------- */

/* Of one block, where @by_insn has been filled. */
double estimate_samples_of(const struct flow *f, uint32_t block, const double *by_insn);

struct estimate_input {
	const struct flow *flow;
	const double *by_insn;	 /* samples of each instruction */
	const char *event;	 /* what they are of; else than time or instructions: -EINVAL */
	double period;		 /* units of the event in a sample */
	const struct image *img; /* with @costs: whose offsets these are */
	const struct profdb_costs *costs; /* of that event, or NULL */
	const struct paths *paths;	  /* what windows saw of the image, or NULL */
};

struct estimate {
	struct freq_result freq; /* by block and edge of the graph */
	/*
	 * True: executions. False, where samples are of time and no costs of blocks were measured:
	 * what they would be if each instruction took one unit of the event (a cycle, a
	 * nanosecond); right in proportion to one another at best.
	 */
	bool absolute;
	/*
	 * Above 0: the frequencies are of so many windows, and the samples only say how they
	 * compare with other procedures' (paths.h).
	 */
	uint64_t windows;
	double *units;	/* by block, of the event: samples * period */
	bool *measured; /* by block: its cost is a measured one */
	uint32_t nr_blocks;
};

/*
 * 0, -EINVAL, -ENOMEM; @out is released with estimate_release, also after a failure. A block
 * without a measured cost counts as its number of instructions, each of which costs what the
 * measured ones of the procedure do.
 *
 * Samples of time stand one instruction behind the one that waited. Moving them back was tried and
 * helped frequencies no more than it harmed (docs/decisions/frequencies.md): they stay.
 */
int estimate_frequencies(const struct estimate_input *in, struct estimate *out,
			 struct base_err *err);
void estimate_release(struct estimate *e);

/* What estimates from samples of @event are; @absolute and @windows as above. */
void estimate_text(const char *event, bool absolute, uint64_t windows, char *buf, size_t buf_len);

#endif
