/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace run once more in user space from its record (trace.h), with the registers it began
 * with and what its loads read then: memory itself is not looked at. The record may say anything;
 * blocks must be sound (vtrace_uop_is_sound), which is checked again.
 */
#ifndef DCPI_VTRACE_REPLAY_H
#define DCPI_VTRACE_REPLAY_H

#include "vtrace.h"
#include "insn_trace.h"

/* The block of an id; NULL: there is none. It stays until the replay has ended. */
typedef const struct vtrace_code *vtrace_block_fn(void *ctx, uint32_t id);

/* Bytes in memory that an instruction read or wrote. width 0: none. */
struct vtrace_access {
	uint64_t addr;	 /* address of the lowest byte */
	uint64_t value;	 /* value of the first eight bytes at most */
	uint8_t width;	 /* bytes; of a vector 16 or 32 */
	uint8_t unknown; /* a bit for each byte of value */
	bool has_addr;	 /* false: its address is unknown */
};

/* An instruction that ran to its end. */
struct vtrace_entry {
	uint64_t pc;
	const struct vtrace_state *after; /* registers behind it; until the next */
	const struct vtrace_code *code;	  /* its block, and which of it: */
	uint8_t index;
	uint8_t len, class;
	struct vtrace_access load, store;
	/* The operand in memory: what was loaded, else what was stored; of one that was loaded,
	 * changed and stored that stands there now. */
	bool has_addr;
	uint64_t addr;
	uint8_t addr_width;
	uint64_t memory;
	uint8_t memory_unknown;
	uint64_t target; /* where it went on */
	bool taken;	 /* that is not behind it */
	uint32_t ns;	 /* that its loads took; 0 without INSN_TRACE_TIMES */
};

struct vtrace_replay {
	struct vtrace_state s;
	const struct insn_trace *w;
	const uint64_t *words;
	vtrace_block_fn *get;
	void *ctx;
	const struct vtrace_code *code;
	uint32_t at, reads_end;	    /* words: the next, behind the block's reads */
	uint32_t nr_done, nr_insns; /* instructions of the block: those before the next one, those
				       before the trace left it */
	uint32_t uop;
	uint32_t ns;
	uint32_t nr_ran, nr_fixed; /* instructions; fixes */
	bool torn;		   /* a load found no word */
};

/* Begin. @w, @words (insn_trace_words of them) are kept. 0; -DCPI_EFORMAT: the record has no
 * values, or is none. */
int vtrace_replay_init(struct vtrace_replay *r, const struct insn_trace *w, const uint64_t *words,
		       vtrace_block_fn *get, void *ctx);
/* The next instruction: 1; 0 behind the last; -DCPI_EFORMAT where words and blocks do not fit
 * together, or a block is missing. What it gave before is right. */
int vtrace_replay_next(struct vtrace_replay *r, struct vtrace_entry *out);

#endif
