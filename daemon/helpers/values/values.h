/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Value profilers in a process of their own (dcpid-values): traces go there, tuples come back.
 * That process has no rights; one that crashes or does not answer for a second is replaced, at most
 * once a second, and costs the traces that it had.
 */
#ifndef DCPI_VALUES_H
#define DCPI_VALUES_H

#include "base.h"
#include "replay.h"

struct values;

/* A value at pc; c0 is the return address of the procedure, c1 of its caller; 0: not known. */
struct values_tuple {
	uint64_t pc, c0, c1, value;
};

struct values_profiler_stats {
	uint64_t tuples; /* handed on */
	uint64_t wild;	 /* that it gave of no instruction of its trace, or too many: lost */
	uint64_t crashes, hangs;
	bool given_up; /* too many of these: it is not loaded any more */
};

struct values_stats {
	uint64_t sent;	   /* traces taken by values_send */
	uint64_t answered; /* traces answered by all loaded profilers */
	uint64_t lost; /* traces whose process ended or was ended; sent = answered + lost + pending
			*/
	uint64_t busy; /* that values_send refused */
	uint64_t bad;  /* answered ones whose words and blocks did not fit together to their end */
	uint64_t starts; /* processes begun */
};

/*
 * Start the process from @helper_dir and have it load @profilers: "values", "values.arg0" …,
 * "values.replay", or the absolute path of a shared object (vtrace_profiler_check). @context:
 * tuples have contexts. Waits for it, ten seconds at most. Negative with @err, which names the one
 * at fault: -DCPI_EFORMAT, -EACCES, -EEXIST (one name twice), -ETIMEDOUT (it loops), -DCPI_EHELPER
 * (it crashed).
 */
int values_open(const char *helper_dir, const char *const *profilers, size_t nr, bool context,
		struct values **out, struct base_err *err);
void values_close(struct values *v);

/* The built-in profilers that make up -vprof, for @profilers: "values", and "values.arg0" and on
 * (values_args.h). NULL past the end. */
const char *values_of_vprof(size_t index);

/* vp_name of @profilers[index]. */
const char *values_name(const struct values *v, size_t index);
/* The contents of traces that the loaded profilers need. */
enum vtrace_log values_log(const struct values *v);

/*
 * Send a trace. Never blocks. 0: taken; -EAGAIN: busy, or nobody runs there now; -DCPI_EFORMAT: it
 * has no values, or names a block that @get does not have; -DCPI_EHELPER: all profilers are given
 * up.
 */
int values_send(struct values *v, uint64_t ticket, const struct insn_trace *w,
		const uint64_t *words, vtrace_block_fn *get, void *ctx);

/*
 * Hand on what has come, and replace a process that does not answer. Never blocks. @fn is called
 * once for each ticket and profiler, in the order of tickets sent, whatever became of it: @nr is 0
 * where there is nothing. Returns how often, or what @fn returned where that was negative.
 */
int values_receive(struct values *v,
		   int (*fn)(void *ctx, uint64_t ticket, size_t profiler,
			     const struct values_tuple *t, size_t nr),
		   void *ctx);

/* Readable when values_receive has something to do; -1: nobody runs there now. Call that every
 * second besides. */
int values_poll_fd(const struct values *v);

void values_stats_get(const struct values *v, struct values_stats *out);
void values_profiler_stats_get(const struct values *v, size_t index,
			       struct values_profiler_stats *out);

#endif
