/* SPDX-License-Identifier: BSD-2-Clause */
/* The stack, jumps, and what depends on conditions. */
#include <string.h>

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
	uint8_t w = k->op[0].size == 2 ? 2 : 8;

	k->m->class = VTRACE_CLASS_PUSH;
	if (!x86_is_modelled(&k->op[0])) {
		uint8_t t = vtrace_temp(k->m);

		vtrace_taint(k->m, t);
		x86_push_value(k, w, t);
		return;
	}
	x86_push_value(k, w, x86_read(k, 0));
}

static void pop(struct x86 *k)
{
	uint8_t w = k->op[0].size, t = vtrace_temp(k->m);

	k->m->class = VTRACE_CLASS_POP;
	vtrace_make(k->m, VTRACE_LOAD, w, t, RSP, VTRACE_ZERO);
	move_rsp(k, w);
	x86_write(k, 0, t);
}

/* With operands of 16 bits: processors of two makers go to different places. */
static bool is_narrow(const struct x86 *k)
{
	const cs_x86 *x86 = &k->insn->detail->x86;

	return k->op[0].type == X86_OP_IMM && x86->prefix[2] == X86_PREFIX_OPSIZE &&
	       !(x86->rex & 8);
}

/* Where a direct one goes. By the code itself: capstone cuts some to 16 bits. */
static uint64_t target(const struct x86 *k)
{
	uint8_t opcode = k->insn->detail->x86.opcode[0];
	const uint8_t *end = k->insn->bytes + k->insn->size;
	int32_t by = (int8_t)end[-1];

	if (opcode == 0xe8 || opcode == 0xe9 || opcode == 0x0f)
		memcpy(&by, end - sizeof(by), sizeof(by));
	return k->m->next_pc + (uint64_t)(int64_t)by;
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
	if (k->op[0].type == X86_OP_IMM) {
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
	bool direct = k->op[0].type == X86_OP_IMM;
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
	move_rsp(k, 8 + (k->nr_ops ? (uint64_t)k->op[0].imm : 0));
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

/* The condition of a family of 16; -1: @id is none of it. */
static int condition(unsigned int id, unsigned int o, unsigned int no, unsigned int b,
		     unsigned int ae, unsigned int e, unsigned int ne, unsigned int be,
		     unsigned int a, unsigned int s, unsigned int ns, unsigned int p,
		     unsigned int np, unsigned int l, unsigned int ge, unsigned int le,
		     unsigned int g)
{
	const unsigned int all[16] = { o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g };

	for (int i = 0; i < 16; i++)
		if (all[i] == id)
			return i;
	return -1;
}

#define CONDITION(id, F)                                                                           \
	condition(id, X86_INS_##F##O, X86_INS_##F##NO, X86_INS_##F##B, X86_INS_##F##AE,            \
		  X86_INS_##F##E, X86_INS_##F##NE, X86_INS_##F##BE, X86_INS_##F##A,                \
		  X86_INS_##F##S, X86_INS_##F##NS, X86_INS_##F##P, X86_INS_##F##NP,                \
		  X86_INS_##F##L, X86_INS_##F##GE, X86_INS_##F##LE, X86_INS_##F##G)

bool x86_conditional(struct x86 *k)
{
	unsigned int id = k->insn->id;
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
	switch (k->insn->id) {
	case X86_INS_JMP:
	case X86_INS_CALL:
		if (is_narrow(k))
			vtrace_stop(k->m, VTRACE_UNDECODED);
		else
			k->insn->id == X86_INS_JMP ? jump(k) : call(k);
		return true;
	case X86_INS_RET:
		return_to(k);
		return true;
	case X86_INS_JRCXZ:
		branch(k, VTRACE_JUMP_Z, 8, RCX, 0);
		return true;
	case X86_INS_JECXZ:
		branch(k, VTRACE_JUMP_Z, 4, RCX, 0);
		return true;
	case X86_INS_LOOP:
		loop(k);
		return true;
	case X86_INS_PUSH:
	case X86_INS_POP:
		/* Of eight bytes whatever the prefix says: capstone does not know. */
		if (k->op[0].size == 2 && k->insn->detail->x86.rex & 8)
			vtrace_stop(k->m, VTRACE_UNDECODED);
		else
			k->insn->id == X86_INS_PUSH ? push(k) : pop(k);
		return true;
	case X86_INS_LEAVE:
		leave(k);
		return true;
	default:
		return false;
	}
}
