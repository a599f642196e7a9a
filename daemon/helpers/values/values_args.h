/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The value profiles "values.arg0" and on (dcpid -vprof): what the registers that carry arguments
 * held where procedures begin, as calls of the trace led there. One profile for each register,
 * in the order of the machine's calling convention for C.
 */
#ifndef DCPI_VALUES_ARGS_H
#define DCPI_VALUES_ARGS_H

#include <string.h>

#include "replay.h"

#define VALUES_ARG "values.arg" /* and the number, from 0 */

#if defined(__aarch64__)
#define VALUES_ARCH VTRACE_AARCH64
#else
#define VALUES_ARCH VTRACE_X86_64
#endif

enum {
	VALUES_NR_ARGS = VALUES_ARCH == VTRACE_AARCH64 ? 8 : 6,
	/* Instructions of a stub before it jumps to where it leads. */
	VALUES_STUB = 4,
};

/* The last call; zero-initialize for each trace. */
struct values_args {
	uint64_t target; /* where a procedure is to begin now; 0: nowhere */
	uint64_t ret;	 /* where it returns to; 0: there was none */
	uint32_t since;	 /* instructions ago */
	uint64_t r[VALUES_NR_ARGS];
	bool known[VALUES_NR_ARGS];
};

/* The number in a profile's name, or -1: it is another one. */
static inline int values_arg_of(const char *profiler)
{
	const char *digit = profiler + strlen(VALUES_ARG);

	if (strncmp(profiler, VALUES_ARG, strlen(VALUES_ARG)) != 0 || !*digit || digit[1] ||
	    *digit < '0' || *digit >= '0' + VALUES_NR_ARGS)
		return -1;
	return *digit - '0';
}
/* Does a procedure begin with the next instruction, by the call before it, or by the jump of a stub
 * that the call led to? Then the rest tells with what, and where it returns to. */
bool values_args_begin(const struct values_args *a, const struct vtrace_entry *e);
/* It has been looked at. */
void values_args_next(struct values_args *a, const struct vtrace_entry *e);

#endif
