/* SPDX-License-Identifier: BSD-2-Clause */
/* Operands of instructions (insn.c; of x86-64 x86_word.c). */
#ifndef DCPI_VTRACE_INSN_INTERNAL_H
#define DCPI_VTRACE_INSN_INTERNAL_H

#include "insn_word.h"

/* Does the one instruction of @c change @reg? */
bool vtrace_insn_writes(const struct vtrace_code *c, uint8_t reg);
/* a, b, c, widths, and what micro-ops do not tell of the form. */
void vtrace_x86_operands(const struct vtrace_code *c, struct vtrace_operands *o);

#endif
