/* SPDX-License-Identifier: BSD-2-Clause */
/* The translator of x86-64, by families of instructions. */
#ifndef DCPI_VTRACE_X86_INTERNAL_H
#define DCPI_VTRACE_X86_INTERNAL_H

#include "insn_x86.h"
#include "translate_internal.h"

/* DWARF's numbers. */
enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP };

enum x86_kind {
	X86_NOTHING, /* a register that is not modelled */
	X86_GENERAL,
	X86_HIGH, /* ah, ch, dh, bh */
	X86_VECTOR,
	X86_MASK,
};

struct x86_register {
	uint8_t kind;	/* enum x86_kind */
	uint8_t number; /* of the interpreter; of a vector that of its first chunk */
	uint8_t w;	/* bytes; of a vector 16, 32, 64 */
};

/* The operands of an instruction that its text names, the destination first; of instructions on
 * strings also the memory and the register that are implied. A mask (AVX-512) is none of them. */
struct x86_operands {
	const ZydisDecodedOperand *v[ZYDIS_MAX_OPERAND_COUNT];
	uint8_t nr;
};

struct x86_operands x86_operands(const struct insn_x86 *insn);

/* One instruction in the making. */
struct x86 {
	struct vtrace_maker *m;
	const struct insn_x86 *insn;
	const ZydisDecodedInstruction *head; /* of @insn */
	const ZydisDecodedOperand *const *op;
	uint8_t nr_ops;
};

/* Bytes of operand @i. */
static inline uint8_t x86_size(const struct x86 *k, int i)
{
	return k->op[i]->size <= 8 * 64 ? (uint8_t)(k->op[i]->size / 8) : 0;
}

struct x86_place {
	uint8_t a, b, x;
	uint64_t imm;
	uint8_t marks; /* VTRACE_PC_RELATIVE, or none */
};

struct x86_register x86_register(ZydisRegister reg);
/* DWARF's number of the general register that has @number in encodings. */
static inline uint8_t x86_general(uint8_t number)
{
	static const uint8_t dwarf[8] = { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

	return number < 8 ? dwarf[number] : number;
}

/* ---- operands (x86_operand.c) ---------------------------------------------------------------- */

/* Where memory operand @i is; false: it cannot be said (an index in a vector, …). */
bool x86_place(struct x86 *k, int i, struct x86_place *p);
void x86_set_place(struct vtrace_uop *u, const struct x86_place *p);
void x86_load(struct x86 *k, uint8_t w, uint8_t dst, const struct x86_place *p);
void x86_store(struct x86 *k, uint8_t w, uint8_t value, const struct x86_place *p);
/* The operand, in a register of which the low @op.size bytes count. */
uint8_t x86_read(struct x86 *k, int i);
/* @value becomes what the operand is. */
void x86_write(struct x86 *k, int i, uint8_t value);
/* A register that may take the result of an operand of that kind straight away, else a temporary
 * one; x86_write puts it where it belongs, if it is not there. */
uint8_t x86_target(struct x86 *k, int i);
/* All that it writes is unknown. */
void x86_unknown(struct x86 *k);

/* ---- families; false: it is none of them ----------------------------------------------------- */

bool x86_alu(struct x86 *k); /* x86_alu.c */

/* An instruction that changes its first operand has the class @class, in memory another. */
static inline void x86_class_of_change(struct x86 *k, enum vtrace_class class)
{
	bool lock = k->head->attributes & ZYDIS_ATTRIB_HAS_LOCK;

	k->m->class = k->op[0]->type != ZYDIS_OPERAND_TYPE_MEMORY ? class
		      : lock					  ? VTRACE_CLASS_ATOMIC
								  : VTRACE_CLASS_MODIFY;
}

/* ---- vectors (x86_vector.c) ------------------------------------------------------------------ */

/* false: it is none that is known there. */
bool x86_vector(struct x86 *k);
/* Z: register @z is 0 in @w bytes; C: @c is; the other flags are 0. */
void x86_empty_flags(struct vtrace_maker *m, uint8_t w, uint8_t z, uint8_t c);

/* Masks, and moves and comparisons of vectors under them (x86_evex.c). */
bool x86_evex(struct x86 *k);

#endif
