/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces through value profilers: what dcpid-values does, without its process. */
#ifndef DCPI_VALUES_RUN_H
#define DCPI_VALUES_RUN_H

#include "values_wire.h"

struct values_run;

/* Entries at the beginning of a trace that no profiler gets: a slow or badly predicted path near
 * the sample would count too often (docs/decisions/instruction-traces.md). */
enum { VALUES_SKIP = 16 };

/* @at_work: set to the number (from 1) of the profiler that runs, 0 when it has come back. */
int values_run_new(bool context, volatile uint8_t *at_work, struct values_run **out);
/* Unloads all profilers. */
void values_run_free(struct values_run *r);

/* "values", "values.replay", a path, or "-": no profiler stands there. */
int values_run_add(struct values_run *r, const char *profiler, struct base_err *err);
/* Names, and what they need of traces. */
void values_run_ready(const struct values_run *r, struct values_ready *out);

/* A message of dcpid's. -DCPI_EFORMAT: it is none. */
int values_run_block(struct values_run *r, const void *message, size_t len);
void values_run_forget(struct values_run *r);
/* @answer is called for each profiler; negative ends it and is returned. */
int values_run_trace(struct values_run *r, const void *message, size_t len,
		     int (*answer)(void *ctx, const struct values_tuples *head,
				   const struct values_tuple *t),
		     void *ctx);

#endif
