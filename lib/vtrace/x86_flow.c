/* SPDX-License-Identifier: BSD-2-Clause */
/* The stack, jumps, and what depends on conditions. */
#include "x86_internal.h"

/* ---- stack and flow -------------------------------------------------------------------------- */

static void move_rsp(struct x86 *k, uint64_t by)
{
	vtrace_make(k->m, VTRACE_LEA, 8, RSP, RSP, VTRACE_ZERO)->imm = by;
}

void x86_push_value(struct x86 *k, uint8_t w, uint8_t value)
{
	vtrace_make(k->m, VTRACE_STORE, w, value, RSP, VTRACE_ZERO)->imm = 0ull - w;
	move_rsp(k, 0ull - w);
}

static void push(struct x86 *k)
{
	uint8_t w = k->head->operand_width / 8;

	k->m->class = VTRACE_CLASS_PUSH;
	if (!x86_is_modelled(k->op[0])) {
		uint8_t t = vtrace_temp(k->m);

		vtrace_taint(k->m, t);
		x86_push_value(k, w, t);
		return;
	}
	x86_push_value(k, w, x86_read(k, 0));
}

static void pop(struct x86 *k)
{
	uint8_t w = k->head->operand_width / 8, t = vtrace_temp(k->m);

	k->m->class = VTRACE_CLASS_POP;
	vtrace_make(k->m, VTRACE_LOAD, w, t, RSP, VTRACE_ZERO);
	move_rsp(k, w);
	x86_write(k, 0, t);
}

/* With operands of 16 bits: processors of two makers go to different places. */
static bool is_narrow(const struct x86 *k)
{
	return k->head->raw.imm[0].is_relative &&
	       k->head->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE && !k->head->raw.rex.W;
}

/* Where a direct one goes. */
static uint64_t target(const struct x86 *k)
{
	return insn_x86_target(k->head, k->m->pc);
}

static void jump_direct(struct x86 *k)
{
	uint64_t to = target(k);

	vtrace_relative(k->m, vtrace_make_imm(k->m, VTRACE_JUMP, 8, VTRACE_ZERO, VTRACE_ZERO, 0),
			to);
	vtrace_successor(k->m, to);
}

static void jump(struct x86 *k)
{
	uint8_t t;

	k->m->ends = true;
	if (k->op[0]->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		k->m->class = VTRACE_CLASS_JUMP;
		jump_direct(k);
		return;
	}
	k->m->class = VTRACE_CLASS_JUMP_INDIRECT;
	t = x86_read(k, 0);
	vtrace_make_imm(k->m, VTRACE_JUMP_TO, 8, VTRACE_ZERO, t, 0);
}

static void call(struct x86 *k)
{
	bool direct = k->op[0]->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	uint8_t t = vtrace_temp(k->m), back = vtrace_temp(k->m);

	vtrace_relative(k->m, vtrace_make_imm(k->m, VTRACE_CONST, 8, back, VTRACE_ZERO, 0),
			k->m->next_pc);
	k->m->ends = true;
	k->m->class = direct ? VTRACE_CLASS_CALL : VTRACE_CLASS_CALL_INDIRECT;
	if (!direct) {
		/* It may be rsp, or lie where that points. */
		vtrace_make_imm(k->m, VTRACE_MOV, 8, t, x86_read(k, 0), 0);
		vtrace_make_imm(k->m, VTRACE_NEED, 8, VTRACE_ZERO, t, 0);
	}
	x86_push_value(k, 8, back);
	if (direct)
		jump_direct(k);
	else
		vtrace_make_imm(k->m, VTRACE_JUMP_TO, 8, VTRACE_ZERO, t, 0);
}

static void return_to(struct x86 *k)
{
	uint8_t t = vtrace_temp(k->m);

	k->m->ends = true;
	k->m->class = VTRACE_CLASS_RETURN;
	vtrace_make(k->m, VTRACE_LOAD, 8, t, RSP, VTRACE_ZERO);
	vtrace_make_imm(k->m, VTRACE_NEED, 8, VTRACE_ZERO, t, 0);
	move_rsp(k, 8 + (k->nr_ops ? k->op[0]->imm.value.u : 0));
	vtrace_make_imm(k->m, VTRACE_JUMP_TO, 8, VTRACE_ZERO, t, 0);
}

static void branch(struct x86 *k, enum vtrace_op op, uint8_t w, uint8_t reg, uint8_t cc)
{
	struct vtrace_uop *u;

	k->m->ends = true;
	k->m->class = VTRACE_CLASS_BRANCH;
	u = vtrace_make(k->m, op, w, VTRACE_ZERO, reg, VTRACE_ZERO);
	u->set = cc;
	vtrace_relative(k->m, u, target(k));
	vtrace_successor(k->m, k->m->next_pc);
	vtrace_successor(k->m, target(k));
}

static void loop(struct x86 *k)
{
	vtrace_make_imm(k->m, VTRACE_NEED, 8, VTRACE_ZERO, RCX, 0);
	vtrace_make_imm(k->m, VTRACE_SUB, 8, RCX, RCX, 1);
	branch(k, VTRACE_JUMP_NZ, 8, RCX, 0);
}

static void leave(struct x86 *k)
{
	uint8_t t = vtrace_temp(k->m);

	k->m->class = VTRACE_CLASS_POP;
	vtrace_make(k->m, VTRACE_LOAD, 8, t, RBP, VTRACE_ZERO);
	vtrace_make(k->m, VTRACE_LEA, 8, RSP, RBP, VTRACE_ZERO)->imm = 8;
	vtrace_make_imm(k->m, VTRACE_MOV, 8, RBP, t, 0);
}

/* ---- which is which -------------------------------------------------------------------------- */

/* The condition of a family of 16, as its opcode has it; -1: @id is none of it. */
static int condition(ZydisMnemonic id, const ZydisMnemonic all[16])
{
	for (int i = 0; i < 16; i++)
		if (all[i] == id)
			return i;
	return -1;
}

#define CONDITION(id, F)                                                                           \
	condition(id,                                                                              \
		  (const ZydisMnemonic[16]){                                                       \
			  ZYDIS_MNEMONIC_##F##O, ZYDIS_MNEMONIC_##F##NO, ZYDIS_MNEMONIC_##F##B,    \
			  ZYDIS_MNEMONIC_##F##NB, ZYDIS_MNEMONIC_##F##Z, ZYDIS_MNEMONIC_##F##NZ,   \
			  ZYDIS_MNEMONIC_##F##BE, ZYDIS_MNEMONIC_##F##NBE, ZYDIS_MNEMONIC_##F##S,  \
			  ZYDIS_MNEMONIC_##F##NS, ZYDIS_MNEMONIC_##F##P, ZYDIS_MNEMONIC_##F##NP,   \
			  ZYDIS_MNEMONIC_##F##L, ZYDIS_MNEMONIC_##F##NL, ZYDIS_MNEMONIC_##F##LE,   \
			  ZYDIS_MNEMONIC_##F##NLE })

bool x86_conditional(struct x86 *k)
{
	ZydisMnemonic id = k->head->mnemonic;
	int cc = CONDITION(id, J);

	if (cc >= 0 && is_narrow(k)) {
		vtrace_stop(k->m, VTRACE_UNDECODED);
		return true;
	}
	if (cc >= 0) {
		branch(k, VTRACE_JUMP_IF, 8, VTRACE_ZERO, (uint8_t)cc);
		return true;
	}
	cc = CONDITION(id, SET);
	if (cc >= 0) {
		x86_set_condition(k, (uint8_t)cc);
		return true;
	}
	cc = CONDITION(id, CMOV);
	if (cc >= 0)
		x86_select_move(k, (uint8_t)cc);
	return cc >= 0;
}

bool x86_flow(struct x86 *k)
{
	if (k->head->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return false;
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
	case ZYDIS_MNEMONIC_CALL:
		if (is_narrow(k))
			vtrace_stop(k->m, VTRACE_UNDECODED);
		else
			k->head->mnemonic == ZYDIS_MNEMONIC_JMP ? jump(k) : call(k);
		return true;
	case ZYDIS_MNEMONIC_RET:
		return_to(k);
		return true;
	case ZYDIS_MNEMONIC_JRCXZ:
		branch(k, VTRACE_JUMP_Z, 8, RCX, 0);
		return true;
	case ZYDIS_MNEMONIC_JECXZ:
		branch(k, VTRACE_JUMP_Z, 4, RCX, 0);
		return true;
	case ZYDIS_MNEMONIC_LOOP:
		loop(k);
		return true;
	case ZYDIS_MNEMONIC_PUSH:
		push(k);
		return true;
	case ZYDIS_MNEMONIC_POP:
		pop(k);
		return true;
	case ZYDIS_MNEMONIC_LEAVE:
		leave(k);
		return true;
	default:
		return false;
	}
}
