/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decoder of one machine's instructions, as insn.c asks it. Another disassembler takes the
 * place of one of these; the rest of lib/insn and all other modules stay as they are.
 */
#ifndef DCPI_INSN_MACHINE_H
#define DCPI_INSN_MACHINE_H

#include "insn.h"

/* Nothing is known of the value that is computed. */
#define INSN_OP_UNKNOWN                                                                            \
	{                                                                                          \
		.dst = INSN_NO_REGISTER, .a = INSN_NO_REGISTER, .b = INSN_NO_REGISTER,             \
		.plus = INSN_NO_REGISTER, .scale = 1, .size = 8, .b_size = 8, .max = UINT64_MAX,   \
	}

struct insn_machine {
	/* The decoder's own memory, or NULL where it needs none: 0 or -ENOMEM. */
	int (*open)(void **state);
	void (*close)(void *state);
	/* False: no instruction. @out has vaddr set, all else zero and no registers. */
	bool (*decode)(void *state, const uint8_t *code, size_t len, struct insn *out);
	/* The same in less time, of as much as insn_decode_flow promises. May be NULL. */
	bool (*decode_flow)(void *state, const uint8_t *code, size_t len, struct insn *out);
	/* @out says that nothing is known. */
	void (*op)(void *state, const uint8_t *code, size_t len, uint64_t vaddr,
		   struct insn_op *out);
	enum insn_condition (*condition)(const uint8_t *code, size_t len, struct insn_op *op);
	int (*stack_move)(void *state, const uint8_t *code, size_t len);
	bool (*jumps_within)(const uint8_t *code, size_t len); /* may be NULL: not told */
	/* How far to step over what is no instruction, so that the next one is found again. */
	uint8_t (*step)(const uint8_t *code);
	uint64_t call_writes; /* by the calling convention: what it does not say to be kept */
};

extern const struct insn_machine insn_x86_64, insn_x86_32, insn_aarch64, insn_riscv;

#endif
