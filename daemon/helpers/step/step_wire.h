/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between dcpid (step.c) and the process that single-steps a program (dcpid-step.c): messages over
 * a sequenced-packet socket, all of them to dcpid. First READY or FAILED; then blocks, windows that
 * name them, and at last ENDED. A socket that dcpid closes ends the process.
 */
#ifndef DCPI_STEP_WIRE_H
#define DCPI_STEP_WIRE_H

#include "base.h"
#include "vtrace.h"
#include "window.h"

enum step_type {
	STEP_READY = 1,
	STEP_FAILED,
	STEP_BLOCK,
	STEP_WINDOW,
	STEP_ENDED,
};

/* The socket, as the process finds it. */
enum { STEP_SOCKET_FD = 3 };

enum {
	STEP_INSNS = 64, /* of a burst */
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

/* Behind it the words (vtrace_window_words). */
struct step_window {
	uint32_t type;
	uint32_t pad;
	uint64_t stopped_ns; /* how long its thread stood */
	struct vtrace_window w;
};

/*
 * What the process said: outside bytes, for it works on what an application holds. 0, or
 * -DCPI_EFORMAT: it is no such message.
 */
int step_window_check(const void *message, size_t len);
/* The block in it, which the caller frees, with as many micro-ops as it has. */
int step_block_take(const void *message, size_t len, struct vtrace_code **out);

#endif
