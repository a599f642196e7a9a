/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64 instructions. Source: Intel's Software Developer's Manual, volume 2.
 *
 *	rax rcx rsi rdi r8 r9 r10	integer temporaries 0 to 6
 *	xmm0 … xmm6			double temporaries 0 to 6
 *	rdx, r11, xmm7			scratch, within one emit_ function
 *	rbx				the runtime
 *	rbp				the frame: slots below it, parameters from rbp + 16
 */
#ifndef CALC_ENCODE_X86_64_H
#define CALC_ENCODE_X86_64_H

#include "emit.h"

enum {
	RAX,
	RCX,
	RDX,
	RBX,
	RSP,
	RBP,
	RSI,
	RDI,
	R8,
	R9,
	R10,
	R11,
	XMM7 = 7,
};

/* Opcodes as prefix, 0x0f where there is one, opcode; WIDE asks for 64 bits (REX.W). */
#define WIDE	   0x1000000u
#define MOV_LOAD   (WIDE | 0x8b)
#define MOV_STORE  (WIDE | 0x89)
#define CMP	   (WIDE | 0x3b)
#define TEST	   (WIDE | 0x85)
#define XCHG	   (WIDE | 0x87)
#define XOR32	   0x33u
#define IMUL	   (WIDE | 0x0faf)
#define IMUL_IMM   (WIDE | 0x69)
#define MOVSD_LOAD 0xf20f10u
#define MOVSD_SAVE 0xf20f11u
#define MOVAPS	   0x0f28u
#define UCOMISD	   0x660f2eu
#define CVTSI2SD   (WIDE | 0xf20f2a)
#define CVTTSD2SI  (WIDE | 0xf20f2c)
#define XORPS	   0x0f57u
#define MOVQ_XMM   (WIDE | 0x660f6e)
#define GROUP_81   (WIDE | 0x81) /* with imm32; the operation is in the reg field */
#define GROUP_83   (WIDE | 0x83) /* with imm8, the same operations */
#define GROUP_F7   (WIDE | 0xf7)

/* Conditions, as in the opcodes of jcc and setcc. */
enum {
	CC_O = 0x0,
	CC_B = 0x2,
	CC_AE = 0x3,
	CC_E = 0x4,
	CC_NE = 0x5,
	CC_BE = 0x6,
	CC_A = 0x7,
	CC_P = 0xa,
	CC_NP = 0xb,
	CC_L = 0xc,
	CC_GE = 0xd,
	CC_LE = 0xe,
	CC_G = 0xf,
};

/* The operations of GROUP_81 and GROUP_F7, which stand in the reg field. */
enum {
	GROUP_ADD = 0,
	GROUP_SUB = 5,
	GROUP_CMP = 7,
	GROUP_NEG = 3,
	GROUP_IDIV = 7,
};

/* The register of a temporary. */
unsigned int x86_reg(enum emit_class cl, unsigned int temp);
void x86_put8(struct emit *e, unsigned int byte);
void x86_put32(struct emit *e, uint32_t value);
/* An operation on two registers. */
void x86_op_reg(struct emit *e, uint32_t op, unsigned int reg, unsigned int rm);
/* On a register and [base + disp]. */
void x86_op_mem(struct emit *e, uint32_t op, unsigned int reg, unsigned int base, int32_t disp);
/* On a register and [base + index * 8]; base not rbp or r13. */
void x86_op_indexed(struct emit *e, uint32_t op, unsigned int reg, unsigned int base,
		    unsigned int index);
/* On a register and an operand; a number goes to r11 first. */
void x86_op_operand(struct emit *e, uint32_t op, enum emit_class cl, unsigned int reg,
		    struct emit_operand o);
/* An operation of GROUP_81 on a register and a number. */
void x86_op_imm(struct emit *e, unsigned int operation, unsigned int reg, int32_t value);
void x86_load_imm(struct emit *e, unsigned int reg, int64_t value);
/* The number's only form in instructions: 32 bits, sign-extended. */
bool x86_fits_imm(struct emit_operand o);

#endif
