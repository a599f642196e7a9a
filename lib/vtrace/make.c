/* SPDX-License-Identifier: BSD-2-Clause */
/* Micro-ops: made for the translators, and checked before the interpreter gets them. */
#include "translate_internal.h"

struct vtrace_uop *vtrace_make(struct vtrace_maker *m, enum vtrace_op op, uint8_t w, uint8_t dst,
			       uint8_t a, uint8_t b)
{
	static struct vtrace_uop nowhere;
	struct vtrace_block *block = &m->code->block;
	struct vtrace_uop *u = &nowhere;

	if (block->nr_uops < VTRACE_BLOCK_UOPS)
		u = &m->code->uops[block->nr_uops++];
	else
		m->full = true;
	*u = (struct vtrace_uop){ .op = (uint8_t)op, .w = w, .dst = dst, .a = a, .b = b };
	return u;
}

struct vtrace_uop *vtrace_make_imm(struct vtrace_maker *m, enum vtrace_op op, uint8_t w,
				   uint8_t dst, uint8_t a, uint64_t imm)
{
	struct vtrace_uop *u = vtrace_make(m, op, w, dst, a, VTRACE_IMM);

	u->imm = imm;
	return u;
}

uint8_t vtrace_temp(struct vtrace_maker *m)
{
	return VTRACE_TEMP + m->nr_temps++ % VTRACE_NR_TEMPS;
}

uint8_t vtrace_const(struct vtrace_maker *m, uint64_t value)
{
	uint8_t t = vtrace_temp(m);

	vtrace_make_imm(m, VTRACE_CONST, 8, t, VTRACE_ZERO, value);
	return t;
}

struct vtrace_uop *vtrace_relative(const struct vtrace_maker *m, struct vtrace_uop *u,
				   uint64_t address)
{
	u->imm = address - m->code->block.pc;
	u->marks |= VTRACE_PC_RELATIVE;
	return u;
}

void vtrace_taint(struct vtrace_maker *m, uint8_t reg)
{
	vtrace_make_imm(m, VTRACE_TAINT, 8, reg, VTRACE_ZERO, 0);
}

void vtrace_stop(struct vtrace_maker *m, enum vtrace_end why)
{
	vtrace_make_imm(m, VTRACE_STOP, 8, VTRACE_ZERO, VTRACE_ZERO, why);
	m->ends = true;
}

void vtrace_successor(struct vtrace_maker *m, uint64_t target)
{
	struct vtrace_code *c = m->code;

	for (int i = 0; i < c->nr_successors; i++)
		if (c->successors[i] == target)
			return;
	if (c->nr_successors < 2)
		c->successors[c->nr_successors++] = target;
}

/* ---- checking -------------------------------------------------------------------------------- */

static bool is_width(uint8_t w)
{
	return w == 1 || w == 2 || w == 4 || w == 8;
}

static bool may_be_relative(const struct vtrace_uop *u)
{
	switch (u->op) {
	case VTRACE_CONST:
	case VTRACE_LEA:
	case VTRACE_LOAD:
	case VTRACE_LOADS:
	case VTRACE_STORE:
	case VTRACE_JUMP:
	case VTRACE_JUMP_IF:
	case VTRACE_JUMP_Z:
	case VTRACE_JUMP_NZ:
		return true;
	default:
		return false;
	}
}

bool vtrace_uop_is_sound(const struct vtrace_uop *u)
{
	bool byte = u->op == VTRACE_INS || u->op == VTRACE_EXT;
	bool widths = u->op == VTRACE_SEXT || u->op == VTRACE_FP_TO_INT;

	return u->op < VTRACE_NR_OPS && is_width(u->w) && (!widths || is_width(u->x)) &&
	       (!byte || u->x + u->w <= 8) && u->dst != VTRACE_IMM && u->a != VTRACE_IMM &&
	       !(u->marks & ~VTRACE_MARKS) &&
	       (!(u->marks & VTRACE_PC_RELATIVE) || may_be_relative(u));
}
