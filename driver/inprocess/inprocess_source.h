/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source "inprocess" from within (source.c): agents in the program and its children (program/)
 * fill rings in a folder (inprocess_ring.h); here they are found, read, taken apart, put in order
 * of time and handed on. Which of their processes live, /proc tells.
 */
#ifndef DCPI_INPROCESS_SOURCE_H
#define DCPI_INPROCESS_SOURCE_H

#include "source.h"
#include "program/inprocess_ring.h"

/* ---- records --------------------------------------------------------------------------------- */

/* Head of a ring file of @file_len bytes. 0, -EAGAIN: not written yet, -DCPI_EFORMAT. */
int inprocess_head_parse(const void *bytes, size_t len, uint64_t file_len,
			 struct inprocess_head *out);

/* A copy of the units at positions [from, to), without the wrap. */
struct inprocess_span {
	const uint8_t *bytes;
	uint64_t from, to;
};

struct inprocess_record {
	enum inprocess_type type;
	uint64_t time_ns;
	struct driver_count count; /* SAMPLE; pid 0 */
	struct driver_load load;   /* MAP; pid 0 */
	char path[INPROCESS_PATH_MAX + 1];
};

/*
 * The record at *@pos, which moves behind it. 0: none is left. -EAGAIN: it is not written yet,
 * *@pos stays. -DCPI_EFORMAT: it makes no sense, *@pos moves on. 1: @out is filled.
 */
int inprocess_record_next(const struct inprocess_span *span, uint64_t *pos,
			  struct inprocess_record *out);

/* ---- processes ------------------------------------------------------------------------------- */

/* Inode of our PID namespace, 0: not known. */
uint64_t inprocess_own_space(void);
/* Is the process that had @pid at @at_ns (CLOCK_MONOTONIC) still running a program, for all we
 * know? */
bool inprocess_alive(int32_t pid, uint64_t at_ns);

/* ---- the source ------------------------------------------------------------------------------ */

/*
 * CPU time between samples for a wish of @frequency a second (0: as many as there can be): whole
 * ticks of the kernel's, which looks at CPU timers no oftener.
 */
uint64_t inprocess_period_ns(uint64_t frequency);

/* As driver_open. Samples what agents in @config->pid and its children write in @config->run_dir.
 */
int inprocess_open(const struct driver_config *config, struct driver **out, struct base_err *err);

#endif
