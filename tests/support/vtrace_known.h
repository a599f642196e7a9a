/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers and memory that an instruction begins with, in tests of what instructions do: the same
 * for a CPU, whose results vtrace_record.c writes down, and for the interpreter, in
 * tests/unit/vtrace/known.c. */
#ifndef DCPI_TEST_VTRACE_KNOWN_H
#define DCPI_TEST_VTRACE_KNOWN_H

#include "base.h"

/* rdi points to the first of the bytes that seeds fill, at KNOWN_AT of a page at KNOWN_DATA. */
#define KNOWN_DATA 0x10000000ull
enum { KNOWN_AT = 128, KNOWN_PAGE = 4096, KNOWN_SEEDS = 3 };
enum { KNOWN_RDI = 5, KNOWN_RSP = 7 };

struct known {
	uint64_t v[32][8]; /* vector registers, in chunks of eight bytes */
	uint64_t k[8];	   /* masks */
	uint64_t r[16];	   /* as DWARF numbers them; what rsp has is not used */
	uint64_t data[8];  /* at rdi */
	uint8_t flags;	   /* as VTRACE_FLAGS */
};

/* One of a few words, often with one byte changed: so that lanes are equal, or differ in one place.
 */
static inline uint64_t known_word(uint64_t *state, const uint64_t pool[4])
{
	uint64_t x = base_random64(state), v = pool[x & 3];
	unsigned int at = 8 * (x >> 2 & 7);

	switch (x >> 8 & 7) {
	case 0:
		return v & ~(0xffull << at);
	case 1:
		return v ^ 0x80ull << at;
	case 2:
		return v + (1ull << at);
	case 3:
		return x >> 16 & 1 ? 0 : UINT64_MAX;
	default:
		return v;
	}
}

static inline void known_fill(struct known *s, uint64_t seed)
{
	uint64_t pool[4];

	for (int i = 0; i < 4; i++)
		pool[i] = base_random64(&seed);
	for (int i = 0; i < 32 * 8; i++)
		s->v[i / 8][i % 8] = known_word(&seed, pool);
	for (int i = 0; i < 8; i++)
		s->k[i] = known_word(&seed, pool);
	for (int i = 0; i < 16; i++)
		s->r[i] = known_word(&seed, pool);
	for (int i = 0; i < 8; i++)
		s->data[i] = known_word(&seed, pool);
	s->r[KNOWN_RDI] = KNOWN_DATA + KNOWN_AT;
	s->flags = base_random64(&seed) & 31;
}

#endif
