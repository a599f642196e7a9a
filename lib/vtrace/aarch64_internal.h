/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translator of A64, from the encodings themselves: aarch64.c (general registers, immediates,
 * branches, system), aarch64_memory.c, aarch64_vector.c, aarch64_operand.c. Source: Arm
 * Architecture Reference Manual for A-profile, "A64 Base Instruction Descriptions" and what follows
 * it.
 *
 * Each translation: false where the word is nothing it knows, and then no micro-op is made.
 */
#ifndef DCPI_VTRACE_AARCH64_INTERNAL_H
#define DCPI_VTRACE_AARCH64_INTERNAL_H

#include "translate_internal.h"

enum { A64_LR = 30, A64_SP = 31, A64_ALWAYS = -1 };

static inline uint32_t a64_bits(uint32_t word, unsigned int low, unsigned int nr)
{
	return word >> low & ((1u << nr) - 1);
}

static inline uint64_t a64_signed(uint32_t word, unsigned int low, unsigned int nr)
{
	return (uint64_t)((int64_t)((uint64_t)word << (64 - low - nr)) >> (64 - nr));
}

static inline uint8_t a64_rd(uint32_t word)
{
	return word & 31;
}

static inline uint8_t a64_rn(uint32_t word)
{
	return word >> 5 & 31;
}

static inline uint8_t a64_rm(uint32_t word)
{
	return word >> 16 & 31;
}

/* Where 31 is no register but zero. */
static inline uint8_t a64_zr(uint8_t reg)
{
	return reg == 31 ? VTRACE_ZERO : reg;
}

static inline uint8_t a64_width(uint32_t word)
{
	return word >> 31 ? 8 : 4;
}

static inline uint8_t a64_vector_chunk(uint8_t reg, unsigned int chunk)
{
	return (uint8_t)(VTRACE_VECTOR + 4 * reg + chunk);
}

/* The interpreter's name of a condition, or A64_ALWAYS. */
int a64_condition(uint32_t cond);
/* @dst = @reg shifted by a constant (types 0 lsl, 1 lsr, 2 asr, 3 ror). */
void a64_shift(struct vtrace_maker *m, uint8_t w, uint8_t dst, uint8_t reg, uint32_t type,
	       uint32_t amount);
/* @reg extended as option says (0-3 unsigned, 4-7 signed, of 1 to 8 bytes): itself or a temporary.
 */
uint8_t a64_extend(struct vtrace_maker *m, uint8_t reg, uint32_t option);

/* A group of encodings. */
struct a64_kind {
	bool (*translate)(struct vtrace_maker *m, uint32_t word);
	/* All that an instruction without a translation may write. */
	void (*unknown)(struct vtrace_maker *m, uint32_t word);
};

extern const struct a64_kind a64_memory, a64_vector;

#endif
