/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields of aarch64's instructions, and the registers that they name (aarch64*.c). */
#ifndef DCPI_INSN_AARCH64_H
#define DCPI_INSN_AARCH64_H

#include "insn.h"

enum { AT_RD = 0, AT_RN = 5, AT_RA = 10, AT_RM = 16 };

static inline uint32_t bits(uint32_t w, unsigned int at, unsigned int nr)
{
	return w >> at & ((1u << nr) - 1);
}

/* Register 31 is zero, or the stack pointer: neither is waited for. */
static inline uint64_t gpr(uint32_t n)
{
	return n < 31 ? 1ull << n : 0;
}

static inline uint64_t gpr_at(uint32_t w, unsigned int at)
{
	return gpr(bits(w, at, 5));
}

static inline uint64_t vector_at(uint32_t w, unsigned int at)
{
	return 1ull << bits(w, at, 5);
}

/* Floating point with Advanced SIMD, and SVE, for aarch64.c (aarch64_vector.c). */
void insn_aarch64_vector(uint32_t w, struct insn *out);
void insn_aarch64_sve(uint32_t w, struct insn *out);

#endif
