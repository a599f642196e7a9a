/* SPDX-License-Identifier: BSD-2-Clause */
/* The client from within. */
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

/* Is a profiler left that is not given up? */
bool values_any_left(const struct values *v);

#endif
