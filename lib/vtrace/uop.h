/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machine code as the interpreter reads it: blocks of micro-ops. Shared by BPF and user space, so
 * fixed widths and no other header's types.
 *
 * Registers are numbered as DWARF does it for the architecture (x86-64: 0 rax, 1 rdx, 2 rcx, 3 rbx,
 * 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8-15; aarch64: 0-30, 31 sp), then what has no such number. A vector
 * register is four chunks of 64 bits.
 */
#ifndef DCPI_VTRACE_UOP_H
#define DCPI_VTRACE_UOP_H

#ifndef __bpf__
#include <stdbool.h>
#include <stdint.h>
#endif

enum {
	VTRACE_ZERO = 32, /* reads as 0; what is written to it is lost */
	VTRACE_TLS = 33,  /* x86-64: base of fs; aarch64: tpidr_el0 */
	VTRACE_GS = 34,	  /* x86-64: base of gs */
	VTRACE_TEMP = 36, /* first register for values within one instruction */
	VTRACE_NR_TEMPS = 12,
	VTRACE_MASK = 48,   /* x86-64: k0-k7 */
	VTRACE_VECTOR = 64, /* chunk c of register v: VTRACE_VECTOR + 4 v + c */
	VTRACE_NR_REGS = 256,
	VTRACE_IMM = 255, /* as operand b of a micro-op: its imm */
};

/* Flags; of aarch64 N is S, V is O. */
enum {
	VTRACE_C = 1,
	VTRACE_P = 2,
	VTRACE_Z = 4,
	VTRACE_S = 8,
	VTRACE_O = 16,
	VTRACE_FLAGS = 31,
};

/*
 * Conditions: as x86 encodes them (0 o, 1 no, 2 c, 3 nc, 4 z, 5 nz, 6 c|z, 7, 8 s, 9, 10 p, 11,
 * 12 s!=o, 13, 14 z|s!=o, 15), and those of aarch64 whose carry is the other way round.
 */
enum { VTRACE_CC_HI = 16 /* c && !z */, VTRACE_CC_LS = 17 };

/*
 * @w is the width in bytes (1, 2, 4, 8); results are cut to it and zero-extended. All of it is
 * unknown that depends on what is unknown.
 */
enum vtrace_op {
	VTRACE_NOP,
	/* dst = */
	VTRACE_MOV,   /* a */
	VTRACE_CONST, /* imm, all of it */
	VTRACE_SEXT,  /* a, sign-extended from x bytes, cut to w */
	VTRACE_INS,   /* dst with w bytes of a at byte x */
	VTRACE_EXT,   /* w bytes of a at byte x */
	VTRACE_LEA,   /* a + (b << x) + imm */
	VTRACE_ADD,
	VTRACE_ADC, /* a + b + C */
	VTRACE_SUB,
	VTRACE_SBB, /* a - b - C */
	VTRACE_SBC, /* a - b - !C */
	VTRACE_AND,
	VTRACE_OR,
	VTRACE_XOR,
	VTRACE_ANDN, /* a & ~b */
	VTRACE_SHL,  /* shift left by b modulo 32, for 8 bytes modulo 64; likewise: */
	VTRACE_SHR,
	VTRACE_SAR,
	VTRACE_ROL,
	VTRACE_ROR,
	VTRACE_FUNNEL, /* (a:b >> imm), of w bytes each; imm below 8 w */
	VTRACE_MUL,
	VTRACE_MULHU, /* upper half of the product of w bytes, unsigned */
	VTRACE_MULHS,
	/* Dividend x:a, of 2 w bytes, or, where x is VTRACE_ZERO or its sign, a alone; divisor b.
	 * What does not fit or divides by zero ends the trace (aarch64: VTRACE_QUOT). */
	VTRACE_DIVU,
	VTRACE_REMU,
	VTRACE_DIVS,
	VTRACE_REMS,
	VTRACE_QUOTU, /* as aarch64: by zero is 0, what does not fit is cut */
	VTRACE_QUOTS,
	VTRACE_BSWAP,
	VTRACE_RBIT,
	VTRACE_CLZ, /* for 0: 8 w */
	VTRACE_CTZ,
	VTRACE_POPCNT,
	VTRACE_SELECT, /* cc holds ? a : b */
	VTRACE_SETCC,  /* cc holds ? 1 : 0 */
	VTRACE_LOAD,   /* w bytes at a + (b << x) + imm */
	VTRACE_LOADS,  /* the same, sign-extended to 8 bytes */
	VTRACE_STORE,  /* dst is what is stored there */
	VTRACE_BIT,    /* Z = bit b of a is clear; C = it is set (x86 bt) */
	VTRACE_CCMP, /* aarch64: x ? compare a with -b : with b, if cc holds, else flags = imm >> 32
		      */
	VTRACE_TAINT,	     /* dst is unknown */
	VTRACE_TAINT_FLAGS,  /* imm says which */
	VTRACE_TAINT_MEMORY, /* imm: a store somewhere; else of b bytes at a */
	VTRACE_SET_FLAGS,    /* flags = (flags & ~x) | (imm & x), known */
	VTRACE_PUT_FLAGS,    /* flags = (flags & ~x) | (a & x) */
	/* Lanes of w bytes in chunks: */
	VTRACE_LANE_EQ, /* all ones where equal */
	VTRACE_LANE_GT, /* signed */
	VTRACE_LANE_ADD,
	VTRACE_LANE_SUB,
	VTRACE_LANE_MINU,
	VTRACE_LANE_MAXU,
	VTRACE_LANE_SIGNS, /* dst |= a bit each, highest of a lane, << x */
	VTRACE_LANE_DUP,   /* lowest lane of a in all */
	VTRACE_ZIP_LOW,	   /* lanes of the low half of a and of b in turn */
	VTRACE_ZIP_HIGH,
	VTRACE_LANE_ANY,  /* all ones in bytes of a that are one of the bytes of b */
	VTRACE_LANE_PICK, /* dst |= for each byte of b, if bits 7 and 3 are x: that byte of a */
	VTRACE_LANE_MASK, /* all ones where the bit of the lane, from x on, is set in a */
	/* Floating point, where no rounding is needed: of x bytes, w are the integer's. */
	VTRACE_FP_COMPARE, /* Z, P, C as x86 has it, of a and b, of w bytes */
	VTRACE_FP_TO_INT,  /* truncated; what does not fit is the lowest integer */
	VTRACE_INT_TO_FP,  /* unknown where it would have to be rounded */
	VTRACE_FP_WIDEN,   /* 4 bytes to 8 */
	VTRACE_ZERO_UPPER, /* chunks 2 and 3 of registers 0-15 */
	/* Ends of blocks. The next block stands at: */
	VTRACE_JUMP,	/* imm */
	VTRACE_JUMP_TO, /* a */
	VTRACE_JUMP_IF, /* imm if cc holds, else behind the block */
	VTRACE_JUMP_Z,	/* imm if a is 0 */
	VTRACE_JUMP_NZ, /* imm if a is not 0 */
	VTRACE_NEED,	/* the trace ends here if a is unknown */
	VTRACE_STOP,	/* it ends here: imm is an enum vtrace_end */
	VTRACE_NR_OPS,
};

/* Which flags an operation sets, and how. */
enum vtrace_set {
	VTRACE_SET_NONE,
	VTRACE_SET_ADD,
	VTRACE_SET_SUB,	    /* C: borrow */
	VTRACE_SET_SUB_NOT, /* C: no borrow */
	VTRACE_SET_LOGIC,   /* C = O = 0 */
	VTRACE_SET_INC,	    /* as ADD and SUB, C stays */
	VTRACE_SET_DEC,
	VTRACE_SET_SHL, /* all stay where the count is 0; O is known of counts of 1 */
	VTRACE_SET_SHR,
	VTRACE_SET_SAR,
	VTRACE_SET_ROL, /* C and O alone */
	VTRACE_SET_ROR,
	VTRACE_SET_MUL,	   /* C = O: the product does not fit (signed); the rest unknown */
	VTRACE_SET_MULU,   /* flags of an upper half: it is not 0 */
	VTRACE_SET_ZERO,   /* Z = a is 0; the rest unknown (bsf, bsr) */
	VTRACE_SET_COUNT,  /* C = a is 0, Z = the result is; the rest unknown (tzcnt, lzcnt) */
	VTRACE_SET_EMPTY,  /* Z = the result is 0; the rest stays */
	VTRACE_SET_POPCNT, /* Z = a is 0, the rest 0 */
	VTRACE_SET_BLSR,   /* S, Z of the result, C = a is 0, O = 0; blsi: x is 1, C = a is not 0 */
};

enum {
	VTRACE_LAST = 1,	/* last operation of an instruction */
	VTRACE_PC_RELATIVE = 2, /* to imm the block's pc is to be added */
	VTRACE_MARKS = 3,
};

struct vtrace_uop {
	uint8_t op;
	uint8_t w;
	uint8_t dst, a, b;
	uint8_t x;
	uint8_t set; /* enum vtrace_set; of SELECT, SETCC, JUMP_IF, CCMP: the condition */
	uint8_t marks;
	uint64_t imm;
};

/* How far a block may reach: what it was translated from is compared before it runs. */
enum { VTRACE_BLOCK_BYTES = 64, VTRACE_BLOCK_UOPS = 128, VTRACE_BLOCK_INSNS = 32 };

/* Where it stood when it was translated is pc; it means the same wherever its bytes stand and
 * vtrace_where() is the same. */
struct vtrace_block {
	uint64_t pc;
	uint32_t first; /* its first micro-op */
	uint16_t nr_uops;
	uint8_t nr_insns;
	uint8_t len; /* bytes */
	uint32_t id; /* in the trace */
	uint32_t pad;
	uint8_t code[VTRACE_BLOCK_BYTES] __attribute__((aligned(8))); /* compared by words */
};

/* Why a trace ended. */
enum vtrace_end {
	VTRACE_CONTINUES,
	VTRACE_FULL,	     /* as many instructions as were asked for */
	VTRACE_UNTRANSLATED, /* the next code has not been translated */
	VTRACE_CODE,	     /* the next code cannot be read */
	VTRACE_UNKNOWN_IF,   /* a branch depends on what is unknown */
	VTRACE_UNKNOWN_JUMP, /* a jump, call or return likewise */
	VTRACE_SYSTEM,	     /* a system call, breakpoint or what else leaves the program */
	VTRACE_FAULTS,	     /* a division by zero and the like */
	VTRACE_UNDECODED,    /* no instruction */
	VTRACE_TRACE,	     /* no room in the trace */
	VTRACE_NR_ENDS,
};

#endif
