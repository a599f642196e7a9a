/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86 instructions as Zydis takes them apart, for modules that need every operand (micro-ops), or
 * only the places of the numbers in the code (hiding and masking of addresses). Zydis allocates
 * nothing and opens nothing, so all of this works in a process without rights.
 */
#ifndef DCPI_INSN_X86_H
#define DCPI_INSN_X86_H

#include <Zydis/Zydis.h>

#include "base.h"

/* One instruction. Operands that its text does not name stand behind those that it does, in the
 * order of the manuals: the destination first. */
struct insn_x86 {
	ZydisDecodedInstruction head;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

/* Decode the instruction at the start of @code, of which @len bytes may be read; @is_64: in long
 * mode, else in protected mode of 32 bits. False: there is none, or it is cut off. */
bool insn_x86_decode(bool is_64, const uint8_t *code, size_t len, struct insn_x86 *out);
/* The same without operands, in two thirds of the time. */
bool insn_x86_decode_head(bool is_64, const uint8_t *code, size_t len,
			  ZydisDecodedInstruction *out);

/* The address to which the direct branch @i, which stands at @vaddr, leads. */
uint64_t insn_x86_target(const ZydisDecodedInstruction *i, uint64_t vaddr);

/* Does @i change flags of the processor, in a known way or not? The operands miss some (cmc). */
bool insn_x86_writes_flags(const ZydisDecodedInstruction *i);

enum insn_x86_class {
	INSN_X86_OTHER, /* segments, control registers, … */
	INSN_X86_GENERAL,
	INSN_X86_HIGH, /* ah, ch, dh, bh */
	INSN_X86_VECTOR,
	INSN_X86_MASK,
	INSN_X86_STACK, /* of the old floating-point unit, MMX too */
	INSN_X86_FLAGS,
};

struct insn_x86_register {
	uint8_t class;	/* enum insn_x86_class */
	uint8_t number; /* as the encoding has it; of INSN_X86_HIGH that of the whole register */
	uint8_t width;	/* bytes */
};

struct insn_x86_register insn_x86_register(ZydisRegister reg);

/* Where an instruction's numbers stand; a length of 0: it has none. */
struct insn_x86_numbers {
	uint8_t len;		   /* of the instruction */
	uint8_t disp_at, disp_len; /* of a memory operand: 1, 2, 4; 8: an address */
	uint8_t imm_at, imm_len;
	bool branch;	  /* the immediate is a distance from the instruction's end */
	bool address;	  /* the immediate is taken as 64 bits, and may be an address */
	bool pc_relative; /* so is the displacement */
	bool no_base;	  /* the displacement is added to no register but the instruction's place */
};

/* Find the numbers of the instruction at the start of @code. False: as insn_x86_decode. */
bool insn_x86_find_numbers(bool is_64, const uint8_t *code, size_t len,
			   struct insn_x86_numbers *out);

#endif
