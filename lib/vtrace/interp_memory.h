/* SPDX-License-Identifier: BSD-2-Clause */
/* Part of interp.h: loads, and stores that only the trace sees. */
#ifndef DCPI_VTRACE_INTERP_MEMORY_H
#define DCPI_VTRACE_INTERP_MEMORY_H

#include "interp_state.h"

/* Where the eight bytes at @addr are kept; NULL: nowhere. @make: they are, if there is room. */
VTRACE_INLINE struct vtrace_store *vtrace_store_find(struct vtrace_state *s, uint64_t addr,
						     bool make)
{
	uint32_t at = (uint32_t)(addr >> 3);

#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (uint32_t i = 0; i < VTRACE_STORE_PROBES; i++, at++) {
		uint32_t slot = at % VTRACE_NR_STORES;
		struct vtrace_store *e = &s->stores[slot];

		if (!vtrace_has_store(s, slot)) {
			if (!make)
				return 0;
			s->used[slot / 64] |= 1ull << (slot & 63);
			s->nr_stores++;
			e->addr = addr;
			e->written = e->unknown = 0;
			return e;
		}
		if (e->addr == addr)
			return e;
	}
	return 0;
}

/* Lay stored bytes over the @w bytes at @addr in *value; returns which of them are unknown. */
VTRACE_INLINE uint8_t vtrace_forward(struct vtrace_state *s, uint64_t addr, uint8_t w,
				     uint64_t *value, uint32_t *written)
{
	uint32_t at = addr & 7, want = vtrace_bytes(w, at), got;
	const struct vtrace_store *low = vtrace_store_find(s, addr & ~7ull, false), *high;
	uint64_t mask;
	uint8_t unknown = 0;

	*written = 0;
	if (low) {
		got = low->written & want;
		mask = vtrace_spread(got) >> 8 * at;
		*value = (*value & ~mask) | (low->value >> 8 * at & mask);
		*written = got >> at;
		unknown = (uint8_t)((low->unknown & got) >> at);
	}
	if (at + w <= 8)
		return unknown;
	high = vtrace_store_find(s, (addr & ~7ull) + 8, false);
	if (high) {
		got = high->written & want >> 8;
		mask = vtrace_spread(got) << 8 * (8 - at);
		*value = (*value & ~mask) | (high->value << 8 * (8 - at) & mask);
		*written |= got << (8 - at);
		unknown |= (uint8_t)((high->unknown & got) << (8 - at));
	}
	return unknown;
}

VTRACE_INLINE bool vtrace_is_lost(const struct vtrace_state *s, uint64_t addr, uint8_t w)
{
	return s->memory_unknown || (addr < s->lost_end && addr + w > s->lost_start);
}

/* Append the value of a load, and the time of VTRACE_NOW, to the trace. */
VTRACE_INLINE void vtrace_log(struct vtrace_state *s, uint64_t value, bool there, uint64_t since)
{
	uint32_t at = s->nr_words, nr = s->log == VTRACE_LOG_TIMES ? 2 : 1;

	s->nr_words = at + nr;
	/* The next block, or the end of the instruction, tells that there was no room. */
	if (at + nr > VTRACE_NR_WORDS)
		return;
	s->words[s->block_word % VTRACE_NR_WORDS] += nr * VTRACE_WORD_ONE_READ;
	if (nr == 2)
		s->words[at++ % VTRACE_NR_WORDS] = VTRACE_NOW() - since;
	s->words[at % VTRACE_NR_WORDS] = value;
	if (!there)
		s->failed[at / 64 % (VTRACE_NR_WORDS / 64)] |= 1ull << (at & 63);
}

VTRACE_INLINE uint64_t vtrace_load(void *ctx, struct vtrace_state *s, uint64_t addr, uint8_t w,
				   uint8_t *unknown)
{
	uint64_t value = 0, since = s->log == VTRACE_LOG_TIMES ? VTRACE_NOW() : 0;
	uint32_t written;
	uint8_t stored;
	bool there;

	/* As the verifier wants to see it. */
	there = VTRACE_READ(ctx, &value, w & 8 ? 8 : w & 7, addr) == 0;
	if (s->log)
		vtrace_log(s, value, there, since);
	*unknown = !there || vtrace_is_lost(s, addr, w) ? (uint8_t)vtrace_bytes(w, 0) : 0;
	if (!s->nr_stores)
		return value;
	stored = vtrace_forward(s, addr, w, &value, &written);
	*unknown = (uint8_t)((*unknown & ~written) | stored);
	return value;
}

/*
 * Forget everything in [@start, @end) and between it and the range already forgotten, except
 * stores.
 */
VTRACE_INLINE void vtrace_lose_more(struct vtrace_state *s, uint64_t start, uint64_t end)
{
	bool none = s->lost_start == s->lost_end;

	s->lost_start = none || start < s->lost_start ? start : s->lost_start;
	s->lost_end = none || end > s->lost_end ? end : s->lost_end;
}

VTRACE_INLINE void vtrace_store_part(struct vtrace_state *s, uint64_t addr, uint64_t value,
				     uint8_t bytes, uint8_t unknown)
{
	struct vtrace_store *e = vtrace_store_find(s, addr, true);
	uint64_t mask = vtrace_spread(bytes);

	/* No room: then it is not known, nor what is stored there later. */
	if (!e) {
		vtrace_lose_more(s, addr, addr + 8);
		return;
	}
	e->value = (e->value & ~mask) | (value & mask);
	e->written |= bytes;
	e->unknown = (e->unknown & ~bytes) | (unknown & bytes);
}

VTRACE_INLINE void vtrace_store(struct vtrace_state *s, uint64_t addr, uint8_t w, uint64_t value,
				uint8_t unknown)
{
	uint32_t at = addr & 7, bytes = vtrace_bytes(w, at), lost = (uint32_t)unknown << at;

	vtrace_store_part(s, addr & ~7ull, value << 8 * at, (uint8_t)bytes, (uint8_t)lost);
	if (bytes >> 8)
		vtrace_store_part(s, (addr & ~7ull) + 8, value >> 8 * (8 - at),
				  (uint8_t)(bytes >> 8), (uint8_t)(lost >> 8));
}

/* Forget all memory after a store to an unknown address. */
VTRACE_INLINE void vtrace_lose_all(struct vtrace_state *s)
{
	s->memory_unknown = true;
	vtrace_forget_stores(s);
}

/* All that was stored stands in memory now. */
VTRACE_INLINE void vtrace_settle_memory(struct vtrace_state *s)
{
	vtrace_forget_stores(s);
	s->memory_unknown = false;
	s->lost_start = s->lost_end = 0;
}

/* An earlier store stays known only if it lies elsewhere. */
VTRACE_INLINE void vtrace_lose(struct vtrace_state *s, uint64_t start, uint64_t len)
{
	bool one = s->lost_start == s->lost_end;

	if (!len)
		return;
	if (len > 1ull << 32 || start + len < start || !one || s->nr_stores) {
		vtrace_lose_all(s);
		return;
	}
	s->lost_start = start;
	s->lost_end = start + len;
}

#endif
