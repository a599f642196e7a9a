/* SPDX-License-Identifier: BSD-2-Clause */
/* Which operands an instruction of x86-64 has, for value profilers. */
#include "insn_internal.h"
#include "x86_internal.h"

static uint8_t number(ZydisRegister reg)
{
	struct x86_register r = x86_register(reg);

	return r.kind == X86_NOTHING || r.kind == X86_HIGH ? VTRACE_ZERO : r.number;
}

/* Bytes; of a register those of all of it, though an instruction may use less. */
static uint8_t size(const ZydisDecodedOperand *op)
{
	struct x86_register r = { 0 };

	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
		r = x86_register(op->reg.value);
	return r.kind == X86_NOTHING ? (uint8_t)(op->size / 8) : r.w;
}

static const ZydisDecodedOperand *find(const struct x86_operands *x, ZydisOperandType type)
{
	for (uint8_t i = 0; i < x->nr; i++)
		if (x->v[i]->type == type)
			return x->v[i];
	return NULL;
}

/* Address computations and hints name memory, and leave it alone. */
static bool uses_memory(const struct vtrace_operands *o)
{
	return o->class != VTRACE_CLASS_LEA && o->class != VTRACE_CLASS_OTHER;
}

static void with_memory(const struct x86_operands *x, const ZydisDecodedOperand *mem,
			struct vtrace_operands *o)
{
	const ZydisDecodedOperand *reg = find(x, ZYDIS_OPERAND_TYPE_REGISTER);

	o->a = reg ? number(reg->reg.value) : VTRACE_ZERO;
	o->b = number(mem->mem.base);
	o->width = size(mem);
	o->result_width = reg ? size(reg) : 0;
	if (!(o->form & (VTRACE_FORM_READS | VTRACE_FORM_WRITES)))
		o->form |= VTRACE_FORM_READS;
}

/* push, pop, call, ret: the operand in memory is the stack's. */
static void with_stack(const struct x86_operands *x, struct vtrace_operands *o)
{
	const ZydisDecodedOperand *reg = find(x, ZYDIS_OPERAND_TYPE_REGISTER);

	o->a = reg ? number(reg->reg.value) : VTRACE_ZERO;
	o->b = RSP;
	o->result_width = reg ? size(reg) : 0;
}

static void of_lea(const struct x86_operands *x, const ZydisDecodedOperand *mem,
		   struct vtrace_operands *o)
{
	o->a = number(mem->mem.base);
	o->b = number(mem->mem.index);
	o->c = number(x->v[0]->reg.value);
	o->width = o->result_width = size(x->v[0]);
}

static bool replaces_first(uint8_t class)
{
	return class == VTRACE_CLASS_MOVE || class == VTRACE_CLASS_LEA;
}

/* x86 names the destination first, which mostly is the first source too. */
static void of_registers(const struct vtrace_code *c, const struct x86_operands *x,
			 struct vtrace_operands *o)
{
	uint8_t regs[4] = { VTRACE_ZERO, VTRACE_ZERO, VTRACE_ZERO, VTRACE_ZERO };
	unsigned int nr = x->nr, first = nr > 2 || replaces_first(o->class);

	for (unsigned int i = 0; i < nr && i < 4; i++)
		if (x->v[i]->type == ZYDIS_OPERAND_TYPE_REGISTER)
			regs[i] = number(x->v[i]->reg.value);
	o->a = first < 4 ? regs[first] : VTRACE_ZERO;
	o->b = regs[first + 1];
	o->c = regs[0];
	/* One operand, and the result elsewhere. */
	if (nr == 1 && !vtrace_insn_writes(c, o->c) &&
	    (o->class == VTRACE_CLASS_MULTIPLY || o->class == VTRACE_CLASS_DIVIDE))
		o->b = o->c = RAX;
	o->width = o->result_width =
		nr && x->v[0]->type != ZYDIS_OPERAND_TYPE_IMMEDIATE ? size(x->v[0]) : 8;
}

void vtrace_x86_operands(const struct vtrace_code *c, struct vtrace_operands *o)
{
	bool memory = o->form & (VTRACE_FORM_READS | VTRACE_FORM_WRITES);
	const ZydisDecodedOperand *mem;
	struct insn_x86 insn;
	struct x86_operands x;

	if (!insn_x86_decode(true, c->block.code, c->block.len, &insn) ||
	    insn.head.length != c->block.len)
		return;
	x = x86_operands(&insn);
	mem = find(&x, ZYDIS_OPERAND_TYPE_MEMORY);
	if (find(&x, ZYDIS_OPERAND_TYPE_IMMEDIATE))
		o->form |= VTRACE_FORM_IMMEDIATE;
	if (mem && o->class == VTRACE_CLASS_LEA)
		of_lea(&x, mem, o);
	else if (mem && (memory || uses_memory(o)))
		with_memory(&x, mem, o);
	else if (memory)
		with_stack(&x, o);
	else
		of_registers(c, &x, o);
}
