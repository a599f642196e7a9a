/* SPDX-License-Identifier: BSD-2-Clause */
/* Part of interp.h: what a trace has, and its registers. */
#ifndef DCPI_VTRACE_INTERP_STATE_H
#define DCPI_VTRACE_INTERP_STATE_H

#include "uop.h"

enum {
	VTRACE_NR_STORES = 128, /* number of stores, each of eight bytes; a power of two */
	VTRACE_STORE_PROBES = 4,
	VTRACE_NR_WORDS = 512, /* words of a trace; a power of two */
};

/*
 * Contents of a trace: a head for each block that was entered, and behind it, if asked for, the
 * memory that its loads read (not their results: the trace's own stores lie over it).
 */
enum vtrace_log {
	VTRACE_LOG_PATH,
	VTRACE_LOG_READS,
	VTRACE_LOG_TIMES, /* before each of these, how many ns it took */
};

/* A block's head: its id, how many words of reads follow, how many of its instructions ran; the pc
 * of the first of these, which may be any of the block; where VTRACE_WORD_TAGGED is set the
 * generation of the code there. */
enum { VTRACE_HEAD_MAX = 3 };
#define VTRACE_WORD_TAGGED   (1ull << 63)
#define VTRACE_WORD(id)	     ((uint64_t)(id) << 24)
#define VTRACE_WORD_HEAD(w)  (2 + (uint32_t)((w) >> 63))
#define VTRACE_WORD_ID(word) ((uint32_t)((word) >> 24))
#define VTRACE_WORD_READS(w) ((uint32_t)((w) >> 8 & 0xffff))
#define VTRACE_WORD_INSNS(w) ((uint32_t)((w)&0xff))
#define VTRACE_WORD_ONE_READ 0x100

/* The aligned eight bytes at @addr: which of them were stored, which of these are unknown. */
struct vtrace_store {
	uint64_t addr;
	uint64_t value;
	uint8_t written, unknown;
	uint8_t pad[6];
};

struct vtrace_state {
	uint64_t r[VTRACE_NR_REGS];
	uint8_t unknown[VTRACE_NR_REGS]; /* a bit for each of their bytes */
	uint64_t pc;			 /* where the next block stands */
	uint64_t block_pc;		 /* where this one does */
	uint8_t flags, flags_unknown;
	bool memory_unknown; /* a store went to an unknown address */
	uint16_t nr_insns, max_insns;
	uint32_t nr_stores;
	uint64_t used[VTRACE_NR_STORES / 64]; /* a bit for each of the stores */
	uint64_t lost_start, lost_end;	      /* memory whose content is unknown */
	struct vtrace_store stores[VTRACE_NR_STORES];
	uint8_t log; /* enum vtrace_log */
	uint32_t nr_words, block_word;
	uint64_t failed[VTRACE_NR_WORDS / 64]; /* bit i: what word i stands for could not be read */
	uint64_t words[VTRACE_NR_WORDS];
};

/* ---- stores ---------------------------------------------------------------------------------- */

VTRACE_INLINE bool vtrace_has_store(const struct vtrace_state *s, uint32_t slot)
{
	return s->used[slot / 64 % (VTRACE_NR_STORES / 64)] >> (slot & 63) & 1;
}

VTRACE_INLINE void vtrace_forget_stores(struct vtrace_state *s)
{
#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (uint32_t i = 0; i < VTRACE_NR_STORES / 64; i++)
		s->used[i] = 0;
	s->nr_stores = 0;
}

/* ---- registers ------------------------------------------------------------------------------- */

VTRACE_INLINE bool vtrace_is_unknown(const struct vtrace_state *s, uint8_t reg)
{
	return s->unknown[reg];
}

/* @unknown: a bit for each byte. */
VTRACE_INLINE void vtrace_put(struct vtrace_state *s, uint8_t reg, uint64_t value, uint8_t unknown)
{
	if (reg == VTRACE_ZERO)
		return;
	s->r[reg] = value;
	s->unknown[reg] = unknown;
}

/* A bit for each of the @w bytes from @at on, within eight and behind. */
VTRACE_INLINE uint32_t vtrace_bytes(uint8_t w, uint32_t at)
{
	return ((1u << w) - 1) << at;
}

/* All bits of the bytes in @bytes. */
VTRACE_INLINE uint64_t vtrace_spread(uint64_t bytes)
{
	uint64_t v = (bytes & 0x7f) * 0x02040810204081ull & 0x0101010101010101ull;

	v |= (bytes & 0x80) << 49;
	return v * 0xff;
}

VTRACE_INLINE uint64_t vtrace_mask(uint8_t w)
{
	return ~0ull >> ((64 - 8 * w) & 63);
}

VTRACE_INLINE uint64_t vtrace_sign(uint64_t v, uint8_t w)
{
	unsigned int shift = (64 - 8 * w) & 63;

	return (uint64_t)((int64_t)(v << shift) >> shift);
}

#endif
