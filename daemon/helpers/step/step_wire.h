/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between dcpid (step.c) and the process that single-steps a program (dcpid-step.c): messages over
 * a sequenced-packet socket, all of them to dcpid. First READY or FAILED; then blocks, traces that
 * name them, and at last ENDED. A socket that dcpid closes ends the process.
 */
#ifndef DCPI_STEP_WIRE_H
#define DCPI_STEP_WIRE_H

#include "base.h"
#include "vtrace.h"
#include "insn_trace.h"

enum step_type {
	STEP_READY = 1,
	STEP_FAILED,
	STEP_BLOCK,
	STEP_TRACE,
	STEP_ENDED,
};

/* The socket, as the process finds it. */
enum { STEP_SOCKET_FD = 3 };

enum {
	STEP_INSNS = 64, /* limits of a burst */
	STEP_MESSAGE_MAX = 24u << 10,
	/* Numbers of blocks: no driver gives these. */
	STEP_ID_FIRST = 1 << 19,
	STEP_ID_END = STEP_ID_FIRST + (1 << 16),
};

/* READY, FAILED (err says why) and ENDED (err.text likewise). */
struct step_word {
	uint32_t type;
	uint32_t pad;
	struct base_err err;
};

/* Behind it block.nr_uops micro-ops, block.nr_insns instructions. */
struct step_block {
	uint32_t type;
	uint32_t pad;
	struct vtrace_block block;
};

/* Behind it the words (insn_trace_words). */
struct step_trace {
	uint32_t type;
	uint32_t pad;
	uint64_t stopped_ns; /* how long its thread stood */
	struct insn_trace w;
};

/*
 * Check a message of the process. It is untrusted, since the process works on an application's
 * data. 0, or -DCPI_EFORMAT: no such message.
 */
int step_trace_check(const void *message, size_t len);
/* The block in it, which the caller frees, with as many micro-ops as it has. */
int step_block_take(const void *message, size_t len, struct vtrace_code **out);

#endif
