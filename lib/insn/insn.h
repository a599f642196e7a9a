/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machine instructions of x86, aarch64 and RISC-V, decoded: how long they are, where control goes,
 * which registers they read and write, what they compute as far as jump tables need it, and their
 * text. No other module sees the disassembler behind it. Bytes are not believed: what is no
 * instruction is data.
 */
#ifndef DCPI_INSN_H
#define DCPI_INSN_H

#include "base.h"

#define INSN_NO_REGISTER UINT8_MAX

/* ---- what an instruction does ---------------------------------------------------------------- */

enum insn_flow {
	INSN_PLAIN,
	INSN_BRANCH, /* conditional, direct */
	INSN_JUMP,   /* direct */
	INSN_INDIRECT_JUMP,
	INSN_CALL, /* direct */
	INSN_INDIRECT_CALL,
	INSN_RETURN,
	INSN_TRAP, /* never goes on */
	INSN_DATA, /* no instruction */
};

/* The work of an instruction, as far as it may cost time. */
enum insn_kind {
	INSN_LOAD = 1 << 0,
	INSN_STORE = 1 << 1,
	INSN_ATOMIC = 1 << 2,
	INSN_MULTIPLY = 1 << 3,
	INSN_DIVIDE = 1 << 4,	 /* integers */
	INSN_FP = 1 << 5,	 /* arithmetic with floating-point numbers */
	INSN_FP_DIVIDE = 1 << 6, /* square roots too */
	INSN_VECTOR = 1 << 7,	 /* registers of the vector or floating-point unit */
	INSN_BARRIER = 1 << 8,
	INSN_SERIALIZE = 1 << 9, /* cpuid, system calls, … */
	INSN_REPEAT = 1 << 10,	 /* x86's repeated string instructions: many loads and stores */
	INSN_PADDING = 1 << 11,	 /* does nothing: nop, int3 */
};

/* Sets of registers: bit n is register n of the machine; bit 32 of @gpr the flags. */
#define INSN_FLAGS (1ull << 32)
struct insn_registers {
	uint64_t gpr, vector;
};

struct insn {
	uint64_t vaddr;
	uint64_t target; /* of INSN_BRANCH, INSN_JUMP, INSN_CALL */
	struct insn_registers reads, writes;
	uint16_t kinds;	     /* of enum insn_kind */
	uint8_t len;	     /* above 0 */
	uint8_t flow;	     /* enum insn_flow */
	uint8_t base, index; /* registers of the memory operand, or INSN_NO_REGISTER */
	int16_t step; /* what it adds to the one register that it writes; 0: something else (x86) */
};

struct insn_decoder;
/* @machine: EM_X86_64, EM_386, EM_AARCH64, EM_RISCV (64 bits). Else -DCPI_EUNSUPPORTED. */
int insn_decoder_open(uint32_t machine, struct insn_decoder **out, struct base_err *err);
void insn_decoder_close(struct insn_decoder *d);
/* The instruction at the start of @code, which stands at @vaddr and has at least one byte. */
void insn_decode(struct insn_decoder *d, const uint8_t *code, size_t len, uint64_t vaddr,
		 struct insn *out);
/* The same in a small part of the time, but of @out only vaddr, len, flow, target and INSN_PADDING
 * are to be used: for who goes through all of an image. */
void insn_decode_flow(struct insn_decoder *d, const uint8_t *code, size_t len, uint64_t vaddr,
		      struct insn *out);

/* ---- what an instruction computes ------------------------------------------------------------ */

/*
 * As much of an instruction's meaning as finding the targets of an indirect jump takes:
 * @dst = extend(@a + extend_b(@b) * @scale + @disp), or what memory holds there, + @plus.
 */
struct insn_op {
	uint8_t dst; /* INSN_NO_REGISTER: it writes none, or several */
	bool known;  /* the sum is what is written; else something else is */
	bool load;
	uint8_t a, b, plus; /* INSN_NO_REGISTER: none */
	uint8_t scale;
	int64_t disp;
	uint8_t size; /* bytes that are loaded or kept; 8: all */
	bool sign;
	uint8_t b_size; /* bytes of @b that count */
	bool b_sign;
	uint64_t max; /* unsigned bound of the result, UINT64_MAX: none */
	/* A comparison of @a (or of what memory holds at the sum, with @load) with the number
	 * @value, or with register @b where @with_b. */
	bool compare, with_b;
	int64_t value;
};

/* When a conditional branch is taken, for unsigned numbers. */
enum insn_condition { INSN_OTHER, INSN_ABOVE, INSN_ABOVE_EQUAL, INSN_BELOW, INSN_BELOW_EQUAL };

/* Also the operands of an indirect jump, as if it loaded register INSN_TARGET. */
#define INSN_TARGET 40
void insn_decode_op(struct insn_decoder *d, const uint8_t *code, size_t len, uint64_t vaddr,
		    struct insn_op *out);
/* RISC-V compares in the branch itself: then *op holds the comparison. */
enum insn_condition insn_decode_condition(struct insn_decoder *d, const uint8_t *code, size_t len,
					  struct insn_op *op);
/* Below 0: it takes stack; above 0: it gives it back. Calls and returns do neither. */
int insn_stack_move(struct insn_decoder *d, const uint8_t *code, size_t len);
/* Does the compiler say (notrack) that this indirect jump stays in the procedure? */
bool insn_jumps_within(const struct insn_decoder *d, const uint8_t *code, size_t len);

/* Registers that a call may change. */
uint64_t insn_call_writes(const struct insn_decoder *d);

/* ---- text ------------------------------------------------------------------------------------ */

struct insn_line {
	uint64_t vaddr;
	uint32_t len;	 /* bytes, above 0 */
	bool has_target; /* a direct branch or call */
	uint64_t target;
	/* Where in text the target's address stands, so that a name can take its place. */
	uint16_t target_at, target_len;
	char text[224];
};

struct insn_disasm;

/* @machine: EM_X86_64, EM_386, EM_AARCH64, EM_RISCV (as data only where capstone does not know it).
 * Else -DCPI_EUNSUPPORTED. */
int insn_disasm_open(uint32_t machine, struct insn_disasm **out, struct base_err *err);
void insn_disasm_close(struct insn_disasm *d);
/* The instruction at the start of @code, which stands at @vaddr and has at least one byte. */
void insn_disasm_one(struct insn_disasm *d, const uint8_t *code, size_t len, uint64_t vaddr,
		     struct insn_line *out);

/* The same in parts, without copies. Strings are the disassembler's, up to the next question. */
struct insn_text {
	uint32_t len;	 /* bytes, above 0 */
	bool is_data;	 /* no instruction */
	bool has_target; /* a direct branch or call: its target ends the operands */
	uint64_t target;
	size_t target_at; /* where in the operands it stands */
	const char *mnemonic, *operands;
};

void insn_disasm_text(struct insn_disasm *d, const uint8_t *code, size_t len, uint64_t vaddr,
		      struct insn_text *out);

/* ---- code that moves ------------------------------------------------------------------------- */

/*
 * Zero in place what changes when code, or what it calls or reads, is moved: distances of branches
 * out of [vaddr, vaddr + len), operands relative to the instruction, absolute addresses, 64-bit
 * constants. x86, aarch64, riscv; code of other machines stays.
 */
void insn_mask(uint32_t machine, uint8_t *code, size_t len, uint64_t vaddr);

#endif
