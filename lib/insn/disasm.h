/* SPDX-License-Identifier: BSD-2-Clause */
/* Masking of one x86 instruction, which takes the disassembler's knowledge of where operands stand.
 */
#ifndef DCPI_INSN_DISASM_H
#define DCPI_INSN_DISASM_H

#include "insn.h"

/*
 * Zero in the instruction at the start of @code, of which @len bytes are there, what moving
 * changes; [@start, @end) is the procedure. Returns its length, of what is none that of a step over
 * it.
 */
size_t insn_disasm_mask_x86(struct insn_disasm *d, uint8_t *code, size_t len, uint64_t vaddr,
			    uint64_t start, uint64_t end);

#endif
