/* SPDX-License-Identifier: BSD-2-Clause */
/* Part of interp.h: what a window has, and its registers. */
#ifndef DCPI_VTRACE_INTERP_STATE_H
#define DCPI_VTRACE_INTERP_STATE_H

#include "uop.h"

enum {
	VTRACE_NR_STORES = 64, /* of eight bytes; a power of two */
	VTRACE_STORE_PROBES = 4,
	VTRACE_STORES_INSN = 8, /* so many may be needed by one instruction */
	VTRACE_NR_WORDS = 512,	/* of a trace; a power of two */
};

/* The aligned eight bytes at @addr: which of them were stored, which of these are unknown. */
struct vtrace_store {
	uint64_t addr;
	uint64_t value;
	uint8_t written, unknown;
	uint8_t pad[6];
};

struct vtrace_state {
	uint64_t r[VTRACE_NR_REGS];
	uint64_t unknown[VTRACE_NR_REGS / 64]; /* a bit for each of them */
	uint64_t pc;			       /* where the next block stands */
	uint64_t addr;			       /* of the last load or store */
	uint8_t flags, flags_unknown;
	bool addr_unknown;
	bool memory_unknown; /* somebody stored who knows where */
	uint16_t nr_insns, max_insns;
	uint32_t nr_stores;
	uint64_t used;		       /* stores */
	uint64_t lost_start, lost_end; /* memory whose content is unknown */
	struct vtrace_store stores[VTRACE_NR_STORES];
	/* The trace (trace.h). */
	uint32_t nr_words, block_word;
	uint64_t words[VTRACE_NR_WORDS];
	uint64_t words_unknown[VTRACE_NR_WORDS / 64];
};
/* ---- registers ------------------------------------------------------------------------------- */

VTRACE_INLINE bool vtrace_is_unknown(const struct vtrace_state *s, uint8_t reg)
{
	return s->unknown[reg / 64] >> (reg % 64) & 1;
}

VTRACE_INLINE void vtrace_put(struct vtrace_state *s, uint8_t reg, uint64_t value, bool unknown)
{
	uint64_t bit = 1ull << (reg % 64);

	if (reg == VTRACE_ZERO)
		return;
	s->r[reg] = value;
	if (unknown)
		s->unknown[reg / 64] |= bit;
	else
		s->unknown[reg / 64] &= ~bit;
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
