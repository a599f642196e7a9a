/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between dcpid (values.c) and the process that runs value profilers (dcpid-values.c): messages
 * over a sequenced-packet socket. dcpid sends blocks, traces that name them, and now and then that
 * all blocks are to be forgotten; back come one READY or FAILED, then one TUPLES for each trace
 * and profiler that is loaded, in order.
 */
#ifndef DCPI_VALUES_WIRE_H
#define DCPI_VALUES_WIRE_H

#include "profiler.h"
#include "values.h"

enum values_type {
	VALUES_BLOCK = 1,
	VALUES_FORGET,
	VALUES_TRACE,
	VALUES_READY,
	VALUES_FAILED,
	VALUES_TUPLES,
};

/* Descriptors the process starts with: the socket, and a memfd in which it keeps, as its first
 * byte, which profiler is at work (1 on; 0: none). */
enum { VALUES_SOCKET_FD = 3, VALUES_WHO_FD = 4 };

enum {
	VALUES_MESSAGE_MAX = 48u << 10,
	VALUES_PROFILERS_MAX = 32,
	VALUES_BLOCKS_MAX = 1 << 14, /* that the process is to know */
	VALUES_IDS_MAX = 1 << 20,
};

/* Behind it block.nr_uops micro-ops, block.nr_insns instructions. */
struct values_block {
	uint32_t type;
	uint32_t pad;
	struct vtrace_block block;
};

/* Behind it insn_trace_words(&w) words. */
struct values_trace {
	uint32_t type;
	uint32_t pad;
	uint64_t ticket;
	struct insn_trace w;
};

/* The name of each profiler; "": it is not loaded. */
struct values_ready {
	uint32_t type;
	uint32_t log; /* enum vtrace_log: what it needs of traces */
	char names[VALUES_PROFILERS_MAX][VTRACE_PROFILER_NAME];
};

struct values_failed {
	uint32_t type;
	uint32_t profiler; /* number of the profiler at fault, from 0 on */
	struct base_err err;
};

/* Behind it nr tuples. */
struct values_tuples {
	uint32_t type;
	uint32_t profiler;
	uint64_t ticket;
	uint32_t nr, wild;
	uint32_t bad; /* the trace's words and blocks did not fit together */
	uint32_t pad;
};

#endif
