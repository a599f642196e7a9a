/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers and memory that an instruction reads and writes. */
#include <string.h>

#include "x86_internal.h"

/* ---- registers ------------------------------------------------------------------------------- */

struct x86_register x86_register(ZydisRegister reg)
{
	struct insn_x86_register r = insn_x86_register(reg);

	switch (r.class) {
	case INSN_X86_GENERAL:
		return (struct x86_register){ X86_GENERAL, x86_general(r.number), r.width };
	case INSN_X86_HIGH:
		return (struct x86_register){ X86_HIGH, x86_general(r.number), r.width };
	case INSN_X86_VECTOR:
		return (struct x86_register){ X86_VECTOR, (uint8_t)(VTRACE_VECTOR + 4 * r.number),
					      r.width };
	case INSN_X86_MASK:
		return (struct x86_register){ X86_MASK, (uint8_t)(VTRACE_MASK + r.number),
					      r.width };
	default:
		return (struct x86_register){ 0 };
	}
}

struct x86_operands x86_operands(const struct insn_x86 *insn)
{
	bool string = insn->head.meta.category == ZYDIS_CATEGORY_STRINGOP;
	bool nop = insn->head.meta.category == ZYDIS_CATEGORY_WIDENOP;
	uint8_t nr = string ? 2 : nop ? 1 : insn->head.operand_count_visible;
	struct x86_operands ops = { .nr = 0 };

	for (uint8_t i = 0; i < nr; i++)
		if (insn->op[i].encoding != ZYDIS_OPERAND_ENCODING_MASK)
			ops.v[ops.nr++] = &insn->op[i];
	return ops;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A register of an address; false: none that can be added. */
static bool part(ZydisRegister r, uint8_t *out, bool *is_32)
{
	struct x86_register reg = x86_register(r);

	*out = VTRACE_ZERO;
	if (r == ZYDIS_REGISTER_NONE)
		return true;
	if (reg.kind != X86_GENERAL || reg.w < 4)
		return false;
	*is_32 |= reg.w == 4;
	*out = reg.number;
	return true;
}

void x86_set_place(struct vtrace_uop *u, const struct x86_place *p)
{
	u->x = p->x;
	u->marks = p->marks;
	u->imm = p->imm;
}

bool x86_place(struct x86 *k, int i, struct x86_place *p)
{
	const ZydisDecodedOperandMem *mem = &k->op[i]->mem;
	bool is_32 = false;

	*p = (struct x86_place){ .a = VTRACE_ZERO,
				 .b = VTRACE_ZERO,
				 .imm = (uint64_t)mem->disp.value };
	if (mem->base == ZYDIS_REGISTER_RIP) {
		p->imm += k->m->next_pc - k->m->code->block.pc;
		p->marks = VTRACE_PC_RELATIVE;
	} else if (mem->base == ZYDIS_REGISTER_EIP || !part(mem->base, &p->a, &is_32)) {
		return false;
	}
	if (!part(mem->index, &p->b, &is_32))
		return false;
	while (1 << p->x < mem->scale && p->x < 3)
		p->x++;
	if (is_32) {
		uint8_t t = vtrace_temp(k->m);

		x86_set_place(vtrace_make(k->m, VTRACE_LEA, 4, t, p->a, p->b), p);
		*p = (struct x86_place){ .a = t, .b = VTRACE_ZERO };
	}
	if (k->head->mnemonic != ZYDIS_MNEMONIC_LEA &&
	    (mem->segment == ZYDIS_REGISTER_FS || mem->segment == ZYDIS_REGISTER_GS)) {
		uint8_t t = vtrace_temp(k->m);

		vtrace_make(k->m, VTRACE_ADD, 8, t, p->a,
			    mem->segment == ZYDIS_REGISTER_FS ? VTRACE_TLS : VTRACE_GS);
		p->a = t;
	}
	return true;
}

void x86_load(struct x86 *k, uint8_t w, uint8_t dst, const struct x86_place *p)
{
	x86_set_place(vtrace_make(k->m, VTRACE_LOAD, w, dst, p->a, p->b), p);
}

void x86_store(struct x86 *k, uint8_t w, uint8_t value, const struct x86_place *p)
{
	x86_set_place(vtrace_make(k->m, VTRACE_STORE, w, value, p->a, p->b), p);
}

/* ---- operands -------------------------------------------------------------------------------- */

static uint8_t unknown_value(struct x86 *k)
{
	uint8_t t = vtrace_temp(k->m);

	vtrace_taint(k->m, t);
	return t;
}

uint8_t x86_read(struct x86 *k, int i)
{
	const ZydisDecodedOperand *op = k->op[i];
	struct x86_register reg = { 0 };
	struct x86_place p;
	uint8_t t;

	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		return vtrace_const(k->m, op->imm.value.u);
	case ZYDIS_OPERAND_TYPE_MEMORY:
		if (!x86_place(k, i, &p) || op->size > 64)
			return unknown_value(k);
		t = vtrace_temp(k->m);
		x86_load(k, x86_size(k, i), t, &p);
		return t;
	case ZYDIS_OPERAND_TYPE_REGISTER:
		reg = x86_register(op->reg.value);
		break;
	default:
		break;
	}
	if (reg.kind == X86_GENERAL || reg.kind == X86_MASK)
		return reg.number;
	if (reg.kind != X86_HIGH)
		return unknown_value(k);
	t = vtrace_temp(k->m);
	vtrace_make_imm(k->m, VTRACE_EXT, 1, t, reg.number, 0)->x = 1;
	return t;
}

uint8_t x86_target(struct x86 *k, int i)
{
	const ZydisDecodedOperand *op = k->op[i];
	struct x86_register reg = op->type == ZYDIS_OPERAND_TYPE_REGISTER
					  ? x86_register(op->reg.value)
					  : (struct x86_register){ 0 };

	return reg.kind == X86_GENERAL && reg.w >= 4 ? reg.number : vtrace_temp(k->m);
}

void x86_write(struct x86 *k, int i, uint8_t value)
{
	const ZydisDecodedOperand *op = k->op[i];
	struct x86_register reg;
	struct x86_place p;

	if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		if (x86_place(k, i, &p) && op->size <= 64)
			x86_store(k, x86_size(k, i), value, &p);
		else
			vtrace_make_imm(k->m, VTRACE_TAINT_MEMORY, 8, VTRACE_ZERO, VTRACE_ZERO, 1);
		return;
	}
	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	reg = x86_register(op->reg.value);
	if (reg.kind == X86_HIGH || (reg.kind == X86_GENERAL && reg.w < 4))
		vtrace_make_imm(k->m, VTRACE_INS, reg.w, reg.number, value, 0)->x =
			reg.kind == X86_HIGH;
	else if (reg.kind == X86_GENERAL && reg.number != value)
		vtrace_make_imm(k->m, VTRACE_MOV, reg.w, reg.number, value, 0);
}

/* ---- what is not modelled -------------------------------------------------------------------- */

static void taint_reg(struct x86 *k, ZydisRegister r)
{
	struct x86_register reg = x86_register(r);

	if (reg.kind == X86_NOTHING)
		return;
	vtrace_taint(k->m, reg.number);
	for (uint8_t c = 1; reg.kind == X86_VECTOR && c < 4; c++)
		vtrace_taint(k->m, reg.number + c);
}

static void taint_memory(struct x86 *k, int i)
{
	uint8_t t = vtrace_temp(k->m), size = x86_size(k, i);
	struct x86_place p;

	if (!size || !x86_place(k, i, &p)) {
		vtrace_make_imm(k->m, VTRACE_TAINT_MEMORY, 8, VTRACE_ZERO, VTRACE_ZERO, 1);
		return;
	}
	vtrace_taint(k->m, t);
	for (uint8_t w; size; size -= w, p.imm += w) {
		w = size >= 8 ? 8 : size >= 4 ? 4 : size >= 2 ? 2 : 1;
		x86_store(k, w, t, &p);
	}
}

/* Memory comes first: its address may be of a register that is written, too. */
void x86_unknown(struct x86 *k)
{
	struct x86 all = *k;
	const ZydisDecodedOperand *v[ZYDIS_MAX_OPERAND_COUNT];
	uint8_t nr = 0;

	for (uint8_t i = 0; i < k->head->operand_count; i++)
		if (k->insn->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			v[nr++] = &k->insn->op[i];
	all.op = v;
	for (uint8_t i = 0; i < nr; i++)
		if (v[i]->type == ZYDIS_OPERAND_TYPE_MEMORY)
			taint_memory(&all, i);
	for (uint8_t i = 0; i < nr; i++)
		if (v[i]->type == ZYDIS_OPERAND_TYPE_REGISTER)
			taint_reg(k, v[i]->reg.value);
	if (insn_x86_writes_flags(k->head))
		vtrace_make_imm(k->m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO,
				VTRACE_FLAGS);
}
