/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared between libtrace.a, which is a part of each profiler, and dcpid-values: a profiler may
 * have been linked with another release, so both state the layout.
 */
#ifndef DCPI_VTRACE_TRACE_INTERNAL_H
#define DCPI_VTRACE_TRACE_INTERNAL_H

#include <stdint.h>

#include "trace-parse.h"
#include "trace-vlist.h"

enum { TRACE_LAYOUT = 0x76740001 };
enum { TRACE_NR_REGISTERS = 128 };

struct trace_vlist {
	uint16_t values[TRACE_MAX_VALUES];
	uint8_t nr;
	uint8_t wanted;	  /* 0: the instruction is ignored */
	uint8_t too_many; /* the profiler added an eighth */
	uint8_t unknown;  /* or what is no value */
};

struct trace_vlist_table {
	uint32_t layout;
	struct trace_vlist lists[TRACE_NR_OPS][TRACE_NR_FUNCS];
};

/* An instruction with the values that its list asks for. */
struct trace_item {
	uint64_t pc, c0, c1;
	uint64_t values[TRACE_MAX_VALUES]; /* 0 where not known */
	uint8_t known;			   /* a bit for each of them */
	uint8_t nr;
	uint8_t opc, func, len;
	uint8_t bytes[16];
	uint32_t inst;
};

struct trace_parser {
	uint32_t layout;
	uint32_t pid;
	uint32_t nr, next;
	uint8_t has_context, give_unknown;
	const struct trace_item *items;
};

#endif
