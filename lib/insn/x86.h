/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions of x86 that are decoded without the disassembler. All of 64-bit code. */
#ifndef DCPI_INSN_X86_H
#define DCPI_INSN_X86_H

#include "insn.h"

/* What is newer than the disassembler (x86_new.c): as insn_machine.decode. */
bool insn_x86_new(const uint8_t *code, size_t len, struct insn *out);
/* Where it has the 4 bytes of an address that counts from no register, or from itself; 0: none. */
uint8_t insn_x86_new_place(const uint8_t *code, size_t len);
/* What insn_decode_flow wants of the most frequent ones (x86_quick.c); false: not one of these. */
bool insn_x86_quick(const uint8_t *code, size_t len, struct insn *out);

#endif
