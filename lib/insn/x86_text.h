/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of x86 instructions, in AT&T syntax. */
#ifndef DCPI_INSN_X86_TEXT_H
#define DCPI_INSN_X86_TEXT_H

#include "insn.h"

/* Strings of one instruction, to which insn_text points. */
struct insn_x86_text {
	char mnemonic[32], operands[160];
};

/* False: no instruction. */
bool insn_x86_text(bool is_64, const uint8_t *code, size_t len, uint64_t vaddr,
		   struct insn_x86_text *text, struct insn_text *out);

#endif
