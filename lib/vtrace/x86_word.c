/* SPDX-License-Identifier: BSD-2-Clause */
/* Which operands an instruction of x86-64 has, for value profilers. */
#include "insn_internal.h"
#include "x86_internal.h"

static uint8_t number(unsigned int capstone)
{
	struct x86_register r = x86_register(capstone);

	return r.kind == X86_NOTHING || r.kind == X86_HIGH ? VTRACE_ZERO : r.number;
}

static const cs_x86_op *find(const cs_x86 *x, x86_op_type type)
{
	for (int i = 0; i < x->op_count; i++)
		if (x->operands[i].type == type)
			return &x->operands[i];
	return NULL;
}

/* Address computations and hints name memory, and leave it alone. */
static bool uses_memory(const struct vtrace_operands *o)
{
	return o->class != VTRACE_CLASS_LEA && o->class != VTRACE_CLASS_OTHER;
}

static void with_memory(const cs_x86 *x, const cs_x86_op *mem, struct vtrace_operands *o)
{
	const cs_x86_op *reg = find(x, X86_OP_REG);

	o->a = reg ? number(reg->reg) : VTRACE_ZERO;
	o->b = number(mem->mem.base);
	o->width = mem->size;
	o->result_width = reg ? reg->size : 0;
	if (!(o->form & (VTRACE_FORM_READS | VTRACE_FORM_WRITES)))
		o->form |= VTRACE_FORM_READS;
}

/* push, pop, call, ret: the operand in memory is the stack's. */
static void with_stack(const cs_x86 *x, struct vtrace_operands *o)
{
	const cs_x86_op *reg = find(x, X86_OP_REG);

	o->a = reg ? number(reg->reg) : VTRACE_ZERO;
	o->b = RSP;
	o->result_width = reg ? reg->size : 0;
}

static void of_lea(const cs_x86 *x, const cs_x86_op *mem, struct vtrace_operands *o)
{
	o->a = number(mem->mem.base);
	o->b = number(mem->mem.index);
	o->c = number(x->operands[0].reg);
	o->width = o->result_width = x->operands[0].size;
}

static bool replaces_first(uint8_t class)
{
	return class == VTRACE_CLASS_MOVE || class == VTRACE_CLASS_LEA;
}

/* x86 names the destination first, which mostly is the first source too. */
static void of_registers(const struct vtrace_code *c, const cs_x86 *x, struct vtrace_operands *o)
{
	uint8_t regs[4] = { VTRACE_ZERO, VTRACE_ZERO, VTRACE_ZERO, VTRACE_ZERO };
	unsigned int nr = x->op_count, first = nr > 2 || replaces_first(o->class);

	for (unsigned int i = 0; i < nr && i < 4; i++)
		if (x->operands[i].type == X86_OP_REG)
			regs[i] = number(x->operands[i].reg);
	o->a = first < 4 ? regs[first] : VTRACE_ZERO;
	o->b = regs[first + 1];
	o->c = regs[0];
	/* One operand, and the result elsewhere. */
	if (nr == 1 && !vtrace_insn_writes(c, o->c) &&
	    (o->class == VTRACE_CLASS_MULTIPLY || o->class == VTRACE_CLASS_DIVIDE))
		o->b = o->c = RAX;
	o->width = o->result_width = nr ? x->operands[0].size : 8;
}

void vtrace_x86_operands(struct vtrace_decoder *d, const struct vtrace_code *c,
			 struct vtrace_operands *o)
{
	bool memory = o->form & (VTRACE_FORM_READS | VTRACE_FORM_WRITES);
	const cs_x86_op *mem;
	const cs_x86 *x;

	/* What capstone cannot decode has its class alone. */
	if (!vtrace_decode(d, c->block.code, c->block.len, 0) || d->insn->size != c->block.len)
		return;
	x = &d->insn->detail->x86;
	mem = find(x, X86_OP_MEM);
	if (find(x, X86_OP_IMM))
		o->form |= VTRACE_FORM_IMMEDIATE;
	if (mem && o->class == VTRACE_CLASS_LEA)
		of_lea(x, mem, o);
	else if (mem && (memory || uses_memory(o)))
		with_memory(x, mem, o);
	else if (memory)
		with_stack(x, o);
	else
		of_registers(c, x, o);
}
