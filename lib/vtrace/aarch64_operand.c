/* SPDX-License-Identifier: BSD-2-Clause */
/* Operands of A64 instructions, for all of its translator: conditions, shifts, extensions. */
#include "aarch64_internal.h"

int a64_condition(uint32_t cond)
{
	static const int8_t names[] = {
		4,  5,	2,  3,	8,	    9,	       0, 1, VTRACE_CC_HI, VTRACE_CC_LS,
		13, 12, 15, 14, A64_ALWAYS, A64_ALWAYS
	};

	return names[cond & 15];
}

void a64_shift(struct vtrace_maker *m, uint8_t w, uint8_t dst, uint8_t reg, uint32_t type,
	       uint32_t amount)
{
	static const uint8_t ops[] = { VTRACE_SHL, VTRACE_SHR, VTRACE_SAR, VTRACE_ROR };

	vtrace_make_imm(m, ops[type & 3], w, dst, reg, amount);
}

uint8_t a64_extend(struct vtrace_maker *m, uint8_t reg, uint32_t option)
{
	uint8_t w = (uint8_t)(1 << (option & 3)), t;

	if (w == 8)
		return reg;
	t = vtrace_temp(m);
	if (option & 4)
		vtrace_make(m, VTRACE_SEXT, 8, t, reg, VTRACE_ZERO)->x = w;
	else
		vtrace_make(m, VTRACE_MOV, w, t, reg, VTRACE_ZERO);
	return t;
}
