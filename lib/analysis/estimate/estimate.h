/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Execution counts of a procedure's blocks from its samples: the flow graph, the samples of an
 * event and the known costs of blocks are brought together for freq.h.
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
 * Is @event the event @name, apart from additions? These are modifiers ("cycles:p"), and, in names
 * by perf, the PMU, terms, and a number where several are the same ("cpu_core/cycles/P",
 * "cycles/period=1000/u", "cycles#2").
 */
bool estimate_event_is(const char *event, const char *name);
/* Returns the freq_model of an event, or -ENOENT if its samples are in proportion neither to
 * time nor to instructions. */
int estimate_model(const char *event);
/* Is the event's unit a cycle? The unit of other events of time (clocks) is a nanosecond. */
bool estimate_is_cycles(const char *event);
/* Is it one of dcpid -wait? Its counts are nanoseconds of threads that were measured, and tell
 * nothing about instructions. */
bool estimate_is_measured(const char *event);
/* Are its counts times its period nanoseconds: a clock, or one that was measured? */
bool estimate_is_ns(const char *event);

/* ---- frequencies ----------------------------------------------------------------------------- */

/* The sum of @by_insn over the instructions of the block. */
static inline double estimate_samples_of(const struct flow *f, uint32_t block,
					 const double *by_insn)
{
	const struct flow_block *b = &f->blocks[block];
	double sum = 0;

	for (uint32_t i = 0; i < b->nr_insns; i++)
		sum += by_insn[b->insn + i];
	return sum;
}

struct estimate_input {
	const struct flow *flow;
	const double *by_insn; /* samples of each instruction */
	const char *event; /* the event of the samples; neither time nor instructions: -EINVAL */
	/* @by_insn are retired instruction samples, chosen by a count of all operations: they are
	 * in proportion to executions, whatever the event. */
	bool retired;
	double period;			  /* units of the event in a sample */
	const struct image *img;	  /* the image whose offsets @costs has */
	const struct profdb_costs *costs; /* costs of that event, or NULL */
	const struct paths *paths;	  /* instruction traces of the image, or NULL */
};

struct estimate {
	struct freq_result freq; /* indexed by block and edge of the graph */
	/*
	 * True: the frequencies are executions. False: samples are of time and no costs of blocks
	 * are measured, so that they are executions under the assumption that each instruction
	 * takes one unit of the event (a cycle, a nanosecond); at best they are right in proportion
	 * to one another.
	 */
	bool absolute;
	/*
	 * Above 0: the frequencies come from so many traces, and samples only scale the procedure
	 * against others (paths.h).
	 */
	uint64_t traces;
	double *units;	/* indexed by block: samples * period */
	bool *measured; /* indexed by block: its cost was measured */
	uint32_t nr_blocks;
};

/*
 * Estimates the frequencies. 0, or with @err -EINVAL or -ENOMEM; @out is released with
 * estimate_release, also after a failure. The cost of a block without a measured cost is its number
 * of instructions times the mean cost of an instruction in the measured blocks of the procedure.
 *
 * Samples of time lie one instruction behind the one that waited. Moving them back helps
 * frequencies no more than it harms them (docs/decisions/frequencies.md), so they stay.
 */
int estimate_frequencies(const struct estimate_input *in, struct estimate *out,
			 struct base_err *err);
void estimate_release(struct estimate *e);

/* Writes a description of estimates from samples of @event; @absolute and @traces as above. An
 * event of neither time nor instructions is one whose instruction samples were used. */
void estimate_text(const char *event, bool absolute, uint64_t traces, char *buf, size_t buf_len);
/* Tells what to turn on where frequencies are known of too little; @traces as above. */
const char *estimate_remedy(uint64_t traces);

#endif
