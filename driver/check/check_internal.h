/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of the check: events (events_linux.c), sources, rights, limits and the cost on an idle CPU
 * (check_linux.c), the cost of samples on a busy one (cost_linux.c).
 */
#ifndef DCPI_CHECK_INTERNAL_H
#define DCPI_CHECK_INTERNAL_H

#include <sched.h>

#include "check.h"
#include "event.h"

/* ---- events (events_linux.c) ----------------------------------------------------------------- */

enum check_reach {
	CHECK_SYSTEM, /* on a CPU, whatever runs there */
	CHECK_OWN,    /* with these rights one's own programs alone, user mode */
	CHECK_REFUSED,
};

/* Try to open @e as a sampled event, so often (driver_config). *@error: errno of a refusal, of
 * CHECK_OWN why not more. */
enum check_reach check_event_try(const struct event_spec *e, uint64_t frequency, int *error);
/* The same of a text; CHECK_REFUSED with EINVAL where it means nothing here. */
enum check_reach check_text_try(const char *text, uint64_t frequency, int *error);
/* Whether a source can be opened with this event (NULL: its own choice); @err says why not. */
int check_source_try(const char *source, const char *event, uint64_t frequency, char *describe,
		     size_t describe_len, struct base_err *err);
/* Why an event was refused. @all: so were all of its kind. */
const char *check_cause(int error, bool hardware, bool all);

/* ---- costs ----------------------------------------------------------------------------------- */

struct check_cost {
	bool measured;
	uint64_t gap_ns;    /* delay of a busy program by a sample's interrupt, median */
	uint64_t gap_90_ns; /* nine of ten are shorter */
	size_t nr;	    /* interrupts seen */
	bool own;	    /* only this process could be sampled, user mode */
};

/* One second of a spinning loop, half of it sampled by cpu-clock. 0 or -errno. */
int check_cost_measure(struct check_cost *out);

struct check_program {
	uint64_t ns;	/* run time for each sample, empty programs' taken off */
	uint64_t empty; /* an empty program's run */
	uint64_t nr;	/* samples */
	uint64_t runs;	/* more than samples: the tick's program sees other timers too */
};

/* Whether the kernel takes a BPF program at all. 0 or -errno. */
int check_bpf_load(void);
/* Run time of the source bpf's programs with @event, over half a second on a busy CPU. 0, -errno,
 * or -DCPI_ENOEVENTS: the source cannot be opened. */
int check_bpf_measure(const char *event, struct check_program *out);

#endif
