/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A window as the sampler hands it on: which blocks ran and, where values are wanted, what is
 * needed to run it once more elsewhere (registers at its start, what its loads read). Shared by BPF
 * and user space. Behind the head stand nr_words words of a trace (interp_state.h).
 */
#ifndef DCPI_VTRACE_WINDOW_H
#define DCPI_VTRACE_WINDOW_H

#include "uop.h"

enum {
	VTRACE_WINDOW_REGS = 34,  /* r[] up to VTRACE_TLS */
	VTRACE_WINDOW_FAILED = 8, /* VTRACE_NR_WORDS / 64 */
	VTRACE_WINDOW_CODE = 64,  /* bytes of what nobody has translated */
};

enum {
	VTRACE_WINDOW_VALUES = 1,  /* it can be run again: regs, failed and reads are there */
	VTRACE_WINDOW_TIMES = 2,   /* and how long each read took */
	VTRACE_WINDOW_KERNEL = 4,  /* kernel mode */
	VTRACE_WINDOW_STEPPED = 8, /* run by the processor, step by step: struct vtrace_fix */
};

/*
 * What an interpreter cannot tell, or tells otherwise: what register @reg holds, all of it, before
 * the instruction of that number (from 0 on; the first ones: at the start).
 */
struct vtrace_fix {
	uint16_t before;
	uint8_t reg; /* or: */
	uint8_t pad[5];
	uint64_t value;
};

enum {
	VTRACE_FIX_FLAGS = 35, /* all flags, as @reg */
	VTRACE_NR_FIXES = 768,
};

struct vtrace_window {
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	uint64_t instance; /* which life of tgid: as in counts */
	uint64_t pc;	   /* of the sampled instruction */
	uint64_t end_pc;   /* where the next block stands; of an untranslated one that is it */
	uint32_t tgid, tid;
	uint32_t generation; /* of the code at pc; 0 where it has none */
	uint16_t event;
	uint16_t nr_words, nr_insns;
	uint8_t end; /* enum vtrace_end */
	uint8_t has; /* VTRACE_WINDOW_… */
	uint8_t flags, flags_unknown;
	uint8_t code_len; /* VTRACE_UNTRANSLATED, VTRACE_CODE: bytes of code[], at end_pc */
	uint8_t pad;
	uint32_t end_generation; /* of the code at end_pc, as generation */
	uint8_t code[VTRACE_WINDOW_CODE];
	uint16_t nr_fixes; /* VTRACE_WINDOW_STEPPED: they stand behind the words */
	uint16_t pad2;
	/* Only with VTRACE_WINDOW_VALUES; without, the record ends here. Registers that have no
	 * place here were unknown at the start; all others were known. */
	uint64_t failed[VTRACE_WINDOW_FAILED]; /* as in the trace */
	uint64_t r[VTRACE_WINDOW_REGS];
};

/* How long a record is, by its @has. */
#define VTRACE_WINDOW_LEN(has)                                                                     \
	((has)&VTRACE_WINDOW_VALUES ? sizeof(struct vtrace_window)                                 \
				    : __builtin_offsetof(struct vtrace_window, failed))

#ifndef __bpf__
/* Of eight bytes each, all that stands behind the head. */
static inline uint32_t vtrace_window_words(const struct vtrace_window *w)
{
	return w->nr_words + (w->has & VTRACE_WINDOW_STEPPED ? 2u * w->nr_fixes : 0);
}
#endif

#endif
