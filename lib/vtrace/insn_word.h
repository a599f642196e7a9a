/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions as value profilers name them: in a word of 32 bits, of which the operands can be
 * told. Source: dcpivprofiler(5).
 */
#ifndef DCPI_VTRACE_INSN_WORD_H
#define DCPI_VTRACE_INSN_WORD_H

#include "vtrace.h"

enum {
	VTRACE_FORM_READS = 1,	   /* memory */
	VTRACE_FORM_WRITES = 2,	   /* memory */
	VTRACE_FORM_IMMEDIATE = 4, /* one operand is in the code */
	VTRACE_FORM_RESULT = 8,	   /* a register holds its result: with an operand in memory @a,
				      else @c */
};

/*
 * Registers by the interpreter's numbers (uop.h; of a vector its first chunk), VTRACE_ZERO: none.
 * With an operand in memory @a is data, @b base; else @a and @b are sources, @c destination.
 */
struct vtrace_operands {
	uint8_t class; /* enum vtrace_class */
	uint8_t width; /* bytes of the operand in memory, else of the result: 1, 2, 4, … 64 */
	uint8_t form;
	uint8_t a, b, c;
	uint8_t result;	      /* the register of VTRACE_FORM_RESULT, or VTRACE_ZERO */
	uint8_t result_width; /* bytes of that register */
	uint8_t len;	      /* bytes of the instruction; 0: it is none */
};

/* Read the operands of the instruction that @code begins with. */
void vtrace_operands_read(struct vtrace_translator *t, const uint8_t *code, size_t len,
			  struct vtrace_operands *out);
/* Likewise, where there is no translator at hand. 0 or -ENOMEM. */
int vtrace_insn_operands(enum vtrace_arch arch, const uint8_t *code, size_t len,
			 struct vtrace_operands *out);

/*
 * The instruction code: aarch64: as it stands there; x86-64: from bit 0 on class (6 bits), form
 * (4), width (3, its logarithm), @a, @b, @c (6 each: 0-15 as DWARF has them, 16-47 vectors, 48-55
 * masks, 63 none). 0 where it is no instruction.
 */
uint32_t vtrace_word_make(enum vtrace_arch arch, const struct vtrace_operands *o,
			  const uint8_t *code);
/* The code of the instruction that @code begins with. */
static inline uint32_t vtrace_insn_word(enum vtrace_arch arch, const uint8_t *code, size_t len)
{
	struct vtrace_operands o;

	return vtrace_insn_operands(arch, code, len, &o) < 0 ? 0 : vtrace_word_make(arch, &o, code);
}

/* The word for selectors beside the class (trace-inst.h). */
uint32_t vtrace_word_func(const struct vtrace_operands *o);

/* "rax", "eax", "w3", "xmm5", "v5": @reg as an operand of @width bytes. "" where it has none.
 * @name has room for VTRACE_REGISTER_NAME bytes; returns it. */
#define VTRACE_REGISTER_NAME 8
char *vtrace_register_name(enum vtrace_arch arch, uint8_t reg, uint8_t width, char *name);

#endif
