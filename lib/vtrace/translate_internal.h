/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the translators of all architectures: a block under construction (make.c). */
#ifndef DCPI_VTRACE_TRANSLATE_INTERNAL_H
#define DCPI_VTRACE_TRANSLATE_INTERNAL_H

#include "insn.h"
#include "vtrace.h"

struct vtrace_translator {
	enum vtrace_arch arch;
	struct insn_disasm *disasm; /* tells instructions of aarch64 from data */
};

/* A block in the making. */
struct vtrace_maker {
	struct vtrace_code *code;
	uint64_t pc;	  /* address of the instruction */
	uint64_t next_pc; /* behind it */
	bool ends;	  /* nothing comes behind it in this block */
	bool full;	  /* a micro-op found no room */
	uint8_t class;
	uint8_t nr_temps;
};

/* The next micro-op; one that goes nowhere if there is no room. Valid until the next. */
struct vtrace_uop *vtrace_make(struct vtrace_maker *m, enum vtrace_op op, uint8_t w, uint8_t dst,
			       uint8_t a, uint8_t b);
/* With @imm as operand b. */
struct vtrace_uop *vtrace_make_imm(struct vtrace_maker *m, enum vtrace_op op, uint8_t w,
				   uint8_t dst, uint8_t a, uint64_t imm);
/* A register of this instruction alone. */
uint8_t vtrace_temp(struct vtrace_maker *m);
uint8_t vtrace_const(struct vtrace_maker *m, uint64_t value);
/* imm becomes @address, which moves with the block. Returns @u. */
struct vtrace_uop *vtrace_relative(const struct vtrace_maker *m, struct vtrace_uop *u,
				   uint64_t address);
void vtrace_taint(struct vtrace_maker *m, uint8_t reg);
/* The trace ends before this instruction. */
void vtrace_stop(struct vtrace_maker *m, enum vtrace_end why);
/* Control goes to @target for certain, or if the last condition holds. */
void vtrace_successor(struct vtrace_maker *m, uint64_t target);

/*
 * Decode and translate one instruction: its length, or 0 where it is none. m->pc is where it
 * stands; next_pc, class and ends are set.
 */
size_t vtrace_x86_insn(struct vtrace_maker *m, const uint8_t *code, size_t len);
size_t vtrace_aarch64_insn(struct insn_disasm *d, struct vtrace_maker *m, const uint8_t *code,
			   size_t len);

#endif
