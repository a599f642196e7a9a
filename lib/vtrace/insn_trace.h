/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace as the sampler hands it on: which blocks ran and, where values are wanted, what is
 * needed to run it once more elsewhere (registers at its start, what its loads read). Shared by BPF
 * and user space. Behind the head stand nr_words words of a trace (interp_state.h).
 */
#ifndef DCPI_VTRACE_TRACE_H
#define DCPI_VTRACE_TRACE_H

#include "uop.h"

enum {
	INSN_TRACE_REGS = 34,  /* r[] up to VTRACE_TLS */
	INSN_TRACE_FAILED = 8, /* VTRACE_NR_WORDS / 64 */
	INSN_TRACE_CODE = 64,  /* bytes of what nobody has translated */
};

enum {
	INSN_TRACE_VALUES = 1,	/* it can be run again: regs, failed and reads are there */
	INSN_TRACE_TIMES = 2,	/* and how long each read took */
	INSN_TRACE_KERNEL = 4,	/* kernel mode */
	INSN_TRACE_STEPPED = 8, /* run by the processor, step by step: struct vtrace_fix */
};

/*
 * A correction of an interpreted trace: the whole value of register @reg before the instruction of
 * that number (from 0 on; the first ones: at the start).
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

struct insn_trace {
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	uint64_t instance; /* which life of tgid: as in counts */
	uint64_t pc;	   /* address of the sampled instruction */
	uint64_t end_pc;   /* where the next block stands; of an untranslated one that is it */
	uint32_t tgid, tid;
	uint32_t generation; /* generation of the code at pc; 0: it has none */
	uint16_t event;
	uint16_t nr_words, nr_insns;
	uint8_t end; /* enum vtrace_end */
	uint8_t has; /* INSN_TRACE_… */
	uint8_t flags, flags_unknown;
	uint8_t code_len; /* VTRACE_UNTRANSLATED, VTRACE_CODE: bytes of code[], at end_pc */
	uint8_t pad;
	uint32_t end_generation; /* generation of the code at end_pc */
	uint8_t code[INSN_TRACE_CODE];
	uint16_t nr_fixes; /* INSN_TRACE_STEPPED: they stand behind the words */
	uint16_t pad2;
	/* Only with INSN_TRACE_VALUES; without, the record ends here. Registers that have no
	 * place here were unknown at the start; all others were known. */
	uint64_t failed[INSN_TRACE_FAILED]; /* as in the trace */
	uint64_t r[INSN_TRACE_REGS];
};

/* How long a record is, by its @has. */
#define INSN_TRACE_LEN(has)                                                                        \
	((has)&INSN_TRACE_VALUES ? sizeof(struct insn_trace)                                       \
				 : __builtin_offsetof(struct insn_trace, failed))

#ifndef __bpf__
/* Length of everything behind the head, in words of eight bytes. */
static inline uint32_t insn_trace_words(const struct insn_trace *w)
{
	return w->nr_words + (w->has & INSN_TRACE_STEPPED ? 2u * w->nr_fixes : 0);
}
#endif

#endif
