/* SPDX-License-Identifier: BSD-2-Clause */
/* The client's parts: the process's life (life.c), traces and tuples (values.c). */
#ifndef DCPI_VALUES_INTERNAL_H
#define DCPI_VALUES_INTERNAL_H

#include "helper.h"
#include "values_wire.h"

enum values_state { VALUES_DEAD, VALUES_STARTING, VALUES_RUNNING };

enum {
	VALUES_PENDING_MAX = 64,    /* traces that the process has at once */
	VALUES_FAULTS_MAX = 3,	    /* a profiler is given up after so many faults */
	VALUES_START_PATIENCE = 10, /* times that of an answer: files are read, on a busy machine */
};

struct values_profiler {
	char *given; /* as values_open was told */
	char name[VTRACE_PROFILER_NAME];
	struct values_profiler_stats stats;
};

struct values {
	struct helper helper;
	struct values_profiler *profilers;
	uint32_t nr_profilers;
	bool context;
	enum vtrace_log log;
	uint64_t patience_ns; /* for an answer */
	uint64_t pause_ns;    /* from one beginning to the next, at least */

	enum values_state state;
	int who; /* memory in which it notes the profiler at work, or -1 */
	uint64_t started_ns, looked_ns, waited_ns;

	/* The state of the process: a hash of each block by its id, 0: not there; and traces. */
	uint64_t *known;
	size_t nr_known, cap_known;
	struct {
		uint64_t ticket;
		uint32_t next; /* profiler that has not answered */
	} pending[VALUES_PENDING_MAX];
	uint32_t first, nr_pending;
	struct values_stats stats;
};

/* As values_open; @patience_ns instead of a second, and for the beginning ten times that. */
int values_open_timeout(const char *helper_dir, const char *const *profilers, size_t nr,
			bool context, uint64_t patience_ns, struct values **out,
			struct base_err *err);

/* Begin a process, which will say when it is ready. 0 or -errno. */
int values_start(struct values *v);
/* It has not answered, or is at its end: end it, and note whose fault it was. Traces stay pending,
 * though nobody has them. */
void values_end_hung(struct values *v);
void values_end_crashed(struct values *v);
/* End it and note nothing. */
void values_dismiss(struct values *v);
/* The last trace was: profilers come to their ends, for a second at most. */
void values_finish(struct values *v);
/* A profiler is not to be loaded again. */
void values_give_up(struct values *v, uint32_t profiler, const char *why);
/* Is a profiler left that is not given up? */
bool values_any_left(const struct values *v);

/* The next message, at most VALUES_MESSAGE_MAX bytes of it, never waiting: its length, 0: it has
 * ended, -EAGAIN: there is none, -errno. */
ssize_t values_next_message(const struct values *v, void *to);

#endif
