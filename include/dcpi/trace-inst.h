/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions as value profilers see them (dcpivprofiler(5)): a class, which takes the place of
 * the Alpha's opcode, and what else the selectors and the 32-bit code tell of them.
 */
#ifndef DCPI_TRACE_INST_H
#define DCPI_TRACE_INST_H

#include <sys/types.h>

typedef unsigned char uchar;

/* Opcodes. */
enum {
	TRACE_OP_OTHER,
	TRACE_OP_LOAD,
	TRACE_OP_LOAD_SIGNED, /* sign-extending */
	TRACE_OP_LOAD_FP,     /* into a vector register */
	TRACE_OP_STORE,
	TRACE_OP_STORE_FP,
	TRACE_OP_MODIFY, /* reads memory, changes it, writes it */
	TRACE_OP_ATOMIC,
	TRACE_OP_PUSH,
	TRACE_OP_POP,
	TRACE_OP_MOVE,
	TRACE_OP_LEA, /* an address or a constant */
	TRACE_OP_ADD, /* and subtract */
	TRACE_OP_LOGIC,
	TRACE_OP_SHIFT,
	TRACE_OP_MULTIPLY,
	TRACE_OP_DIVIDE,
	TRACE_OP_COMPARE,
	TRACE_OP_SELECT,
	TRACE_OP_BRANCH, /* conditional */
	TRACE_OP_JUMP,
	TRACE_OP_JUMP_INDIRECT,
	TRACE_OP_CALL,
	TRACE_OP_CALL_INDIRECT,
	TRACE_OP_RETURN,
	TRACE_OP_FP,
	TRACE_OP_VECTOR,
	TRACE_OP_STRING,
	TRACE_OP_SYSTEM,
	TRACE_NR_OPS,
};

/* The second argument of selectors: width and kind. */
#define TRACE_FUNC_WIDTH(func) (1u << ((func)&7)) /* bytes: 1, 2, 4, 8, 16, 32, 64 */
#define TRACE_FUNC_READS       8		  /* memory */
#define TRACE_FUNC_WRITES      16		  /* memory */
#define TRACE_NR_FUNCS	       32

/* Fields of the 32-bit code of x86-64. That of aarch64 is the instruction itself. */
#define TRACE_X86_CLASS(inst) ((inst)&63)
#define TRACE_X86_FORM(inst)  ((inst) >> 6 & 15)
#define TRACE_X86_WIDTH(inst) (1u << ((inst) >> 10 & 7)) /* bytes */
/* 0-15 as DWARF has them (rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8-r15), 16-47 vectors, 48-55
 * masks, 63 none. With an operand in memory RA is data, RB base; else RA and RB are sources, RC is
 * the destination. */
#define TRACE_X86_RA(inst) ((inst) >> 13 & 63)
#define TRACE_X86_RB(inst) ((inst) >> 19 & 63)
#define TRACE_X86_RC(inst) ((inst) >> 25 & 63)
enum {
	TRACE_FORM_READS = 1,	  /* memory */
	TRACE_FORM_WRITES = 2,	  /* memory */
	TRACE_FORM_IMMEDIATE = 4, /* one operand is in the code */
	TRACE_FORM_RESULT = 8,	  /* a register holds its result: RA with memory, else RC */
};

/* The name profilers written for DCPI declare their instruction by. */
union alpha_instruction {
	unsigned int word;
};

#endif
