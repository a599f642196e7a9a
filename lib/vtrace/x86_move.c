/* SPDX-License-Identifier: BSD-2-Clause */
/* What moves values between registers and memory. */
#include "x86_internal.h"

/* ---- moves ----------------------------------------------------------------------------------- */

static void class_of_move(struct x86 *k, enum vtrace_class load)
{
	k->m->class = k->op[1]->type == ZYDIS_OPERAND_TYPE_MEMORY      ? load
		      : k->op[0]->type == ZYDIS_OPERAND_TYPE_MEMORY    ? VTRACE_CLASS_STORE
		      : k->op[1]->type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? VTRACE_CLASS_LEA
								       : VTRACE_CLASS_MOVE;
}

bool x86_is_modelled(const ZydisDecodedOperand *op)
{
	return op->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	       x86_register(op->reg.value).kind == X86_GENERAL ||
	       x86_register(op->reg.value).kind == X86_HIGH;
}

static void move(struct x86 *k)
{
	struct x86_register to = k->op[0]->type == ZYDIS_OPERAND_TYPE_REGISTER
					 ? x86_register(k->op[0]->reg.value)
					 : (struct x86_register){ 0 };
	struct x86_place p;

	if (!x86_is_modelled(k->op[0]) || !x86_is_modelled(k->op[1])) {
		x86_unknown(k);
		return;
	}
	class_of_move(k, VTRACE_CLASS_LOAD);
	if (to.kind == X86_GENERAL && to.w >= 4 && k->op[1]->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		vtrace_make_imm(k->m, VTRACE_CONST, 8, to.number, VTRACE_ZERO,
				to.w == 4 ? (uint32_t)k->op[1]->imm.value.u
					  : k->op[1]->imm.value.u);
	else if (to.kind == X86_GENERAL && to.w >= 4 &&
		 k->op[1]->type == ZYDIS_OPERAND_TYPE_MEMORY && x86_place(k, 1, &p))
		x86_load(k, to.w, to.number, &p);
	else if (to.kind == X86_GENERAL && to.w == 4)
		/* Also of a register to itself, whose upper half is then zero. */
		vtrace_make_imm(k->m, VTRACE_MOV, 4, to.number, x86_read(k, 1), 0);
	else
		x86_write(k, 0, x86_read(k, 1));
}

/* From a narrower operand. */
static void extend(struct x86 *k, bool is_signed)
{
	uint8_t w = x86_size(k, 0), from = x86_size(k, 1), a = x86_read(k, 1);
	uint8_t dst = x86_target(k, 0);

	class_of_move(k, is_signed ? VTRACE_CLASS_LOAD_SIGNED : VTRACE_CLASS_LOAD);
	if (is_signed)
		vtrace_make_imm(k->m, VTRACE_SEXT, w, dst, a, 0)->x = from;
	else
		vtrace_make_imm(k->m, VTRACE_EXT, from, dst, a, 0);
	x86_write(k, 0, dst);
}

static void address(struct x86 *k)
{
	uint8_t dst = x86_target(k, 0);
	struct x86_place p;

	k->m->class = VTRACE_CLASS_LEA;
	if (!x86_place(k, 1, &p)) {
		/* eip-relative, which nobody writes. */
		x86_unknown(k);
		return;
	}
	x86_set_place(vtrace_make(k->m, VTRACE_LEA, x86_size(k, 0), dst, p.a, p.b), &p);
	x86_write(k, 0, dst);
}

static void exchange(struct x86 *k)
{
	uint8_t t = vtrace_temp(k->m), b;

	k->m->class = k->op[0]->type == ZYDIS_OPERAND_TYPE_MEMORY ||
				      k->op[1]->type == ZYDIS_OPERAND_TYPE_MEMORY
			      ? VTRACE_CLASS_ATOMIC
			      : VTRACE_CLASS_MOVE;
	vtrace_make_imm(k->m, VTRACE_MOV, 8, t, x86_read(k, 0), 0);
	b = x86_read(k, 1);
	/* The one in memory first: its address may be of the other. */
	if (k->op[1]->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		x86_write(k, 1, t);
		x86_write(k, 0, b);
	} else {
		uint8_t other = vtrace_temp(k->m);

		vtrace_make_imm(k->m, VTRACE_MOV, 8, other, b, 0);
		x86_write(k, 0, other);
		x86_write(k, 1, t);
	}
}

static void exchange_add(struct x86 *k)
{
	uint8_t w = x86_size(k, 0), t = vtrace_temp(k->m), sum = vtrace_temp(k->m);

	x86_class_of_change(k, VTRACE_CLASS_ADD);
	vtrace_make_imm(k->m, VTRACE_MOV, 8, t, x86_read(k, 0), 0);
	vtrace_make(k->m, VTRACE_ADD, w, sum, t, x86_read(k, 1))->set = VTRACE_SET_ADD;
	if (k->op[0]->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		x86_write(k, 0, sum);
		x86_write(k, 1, t);
	} else {
		x86_write(k, 1, t);
		x86_write(k, 0, sum);
	}
}

static void compare_exchange(struct x86 *k)
{
	uint8_t w = x86_size(k, 0), old = vtrace_temp(k->m), fresh = vtrace_temp(k->m);
	uint8_t rax = vtrace_temp(k->m);

	if (k->op[0]->type != ZYDIS_OPERAND_TYPE_MEMORY) {
		x86_unknown(k);
		return;
	}
	k->m->class = VTRACE_CLASS_ATOMIC;
	vtrace_make_imm(k->m, VTRACE_MOV, w, old, x86_read(k, 0), 0);
	vtrace_make(k->m, VTRACE_SUB, w, VTRACE_ZERO, RAX, old)->set = VTRACE_SET_SUB;
	vtrace_make(k->m, VTRACE_SELECT, w, fresh, x86_read(k, 1), old)->set = 4;
	x86_write(k, 0, fresh);
	vtrace_make_imm(k->m, VTRACE_MOV, 8, rax, RAX, 0);
	vtrace_make_imm(k->m, w < 4 ? VTRACE_INS : VTRACE_MOV, w, rax, old, 0);
	vtrace_make(k->m, VTRACE_SELECT, 8, RAX, RAX, rax)->set = 4;
}

void x86_select_move(struct x86 *k, uint8_t cc)
{
	uint8_t b = x86_read(k, 1), a = x86_read(k, 0), dst = x86_target(k, 0);

	k->m->class = VTRACE_CLASS_SELECT;
	vtrace_make(k->m, VTRACE_SELECT, x86_size(k, 0), dst, b, a)->set = cc;
	x86_write(k, 0, dst);
}

void x86_set_condition(struct x86 *k, uint8_t cc)
{
	uint8_t t = vtrace_temp(k->m);

	k->m->class = VTRACE_CLASS_SELECT;
	vtrace_make(k->m, VTRACE_SETCC, 1, t, VTRACE_ZERO, VTRACE_ZERO)->set = cc;
	x86_write(k, 0, t);
}

/* ---- which is which -------------------------------------------------------------------------- */

bool x86_moves(struct x86 *k)
{
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		move(k);
		return true;
	case ZYDIS_MNEMONIC_MOVZX:
		extend(k, false);
		return true;
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_MOVSX:
		extend(k, true);
		return true;
	case ZYDIS_MNEMONIC_LEA:
		address(k);
		return true;
	case ZYDIS_MNEMONIC_XCHG:
		exchange(k);
		return true;
	case ZYDIS_MNEMONIC_XADD:
		exchange_add(k);
		return true;
	case ZYDIS_MNEMONIC_CMPXCHG:
		compare_exchange(k);
		return true;
	default:
		return false;
	}
}
