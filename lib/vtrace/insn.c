/* SPDX-License-Identifier: BSD-2-Clause */
/* Operands of an instruction: from its micro-ops, and as words for value profilers. */
#include <stdio.h>
#include <string.h>

#include "aarch64_internal.h"
#include "insn_word.h"
#include "x86_internal.h"

/* ---- operands of x86-64 ---------------------------------------------------------------------- */

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

static bool has_destination(const struct vtrace_uop *u)
{
	switch (u->op) {
	case VTRACE_NOP:
	case VTRACE_STORE:
	case VTRACE_BIT:
	case VTRACE_CCMP:
	case VTRACE_TAINT_FLAGS:
	case VTRACE_TAINT_MEMORY:
	case VTRACE_SET_FLAGS:
	case VTRACE_FP_COMPARE:
	case VTRACE_ZERO_UPPER:
		return false;
	default:
		return u->op < VTRACE_JUMP;
	}
}

/* Does the one instruction of @c change @reg? */
static bool vtrace_insn_writes(const struct vtrace_code *c, uint8_t reg)
{
	for (unsigned int i = 0; i < c->block.nr_uops; i++)
		if (reg != VTRACE_ZERO && c->uops[i].dst == reg && has_destination(&c->uops[i]))
			return true;
	return false;
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

/* a, b, c, widths, and what micro-ops do not tell of the form. */
static void vtrace_x86_operands(const struct vtrace_code *c, struct vtrace_operands *o)
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

/* ---- from micro-ops -------------------------------------------------------------------------- */

/* Which memory it reads and writes, and how many bytes. */
static void read_uops(const struct vtrace_code *c, struct vtrace_operands *o)
{
	unsigned int loaded = 0, stored = 0;

	for (unsigned int i = 0; i < c->block.nr_uops; i++) {
		uint8_t op = c->uops[i].op;

		if (op == VTRACE_LOAD || op == VTRACE_LOADS)
			loaded += c->uops[i].w;
		else if (op == VTRACE_STORE)
			stored += c->uops[i].w;
	}
	o->form |= loaded ? VTRACE_FORM_READS : 0;
	o->form |= stored ? VTRACE_FORM_WRITES : 0;
	o->width = (uint8_t)(loaded ? loaded : stored);
}

/* ---- aarch64 --------------------------------------------------------------------------------- */

static uint8_t vector(uint32_t reg)
{
	return a64_vector_chunk((uint8_t)reg, 0);
}

static void a64_memory_operands(uint32_t word, struct vtrace_operands *o)
{
	bool literal = (word & 0x3b000000) == 0x18000000;

	o->a = word >> 26 & 1 ? vector(word & 31) : a64_zr(a64_rd(word));
	o->b = literal ? VTRACE_ZERO : a64_rn(word);
	if (!(o->form & (VTRACE_FORM_READS | VTRACE_FORM_WRITES)))
		o->form |= VTRACE_FORM_READS;
}

static void a64_branch_operands(uint32_t word, struct vtrace_operands *o)
{
	if ((word & 0x7c000000) == 0x34000000)
		o->a = a64_zr(a64_rd(word));
	else if ((word & 0xfe000000) == 0xd6000000)
		o->a = a64_zr(a64_rn(word));
}

static void a64_immediate_operands(uint32_t word, struct vtrace_operands *o)
{
	uint32_t kind = word >> 23 & 7;

	o->form |= VTRACE_FORM_IMMEDIATE;
	/* Addresses and wide constants have no source. */
	if (kind > 1 && kind != 5)
		o->a = kind == 2 ? a64_rn(word) : a64_zr(a64_rn(word));
	if (kind == 7)
		o->b = a64_zr(a64_rm(word));
	o->c = a64_rd(word);
}

static void a64_register_operands(uint32_t word, struct vtrace_operands *o)
{
	o->a = a64_zr(a64_rn(word));
	if ((word & 0x5fe00000) != 0x5ac00000)
		o->b = a64_zr(a64_rm(word));
	o->c = a64_rd(word);
}

static void a64_vector_operands(const struct vtrace_code *c, uint32_t word,
				struct vtrace_operands *o)
{
	bool conversion = (word & 0x5f20fc00) == 0x1e200000;

	o->a = vector(a64_rn(word));
	o->b = conversion ? VTRACE_ZERO : vector(a64_rm(word));
	o->c = vector(a64_rd(word));
	if (vtrace_insn_writes(c, o->c)) {
		if (conversion)
			o->a = a64_zr(a64_rn(word));
	} else {
		o->c = a64_zr(a64_rd(word));
	}
}

static void a64_operands(const struct vtrace_code *c, struct vtrace_operands *o)
{
	uint32_t word, group;

	memcpy(&word, c->block.code, sizeof(word));
	group = word >> 25 & 15;
	if ((group & 5) == 4)
		a64_memory_operands(word, o);
	else if ((group & 14) == 10)
		a64_branch_operands(word, o);
	else if ((group & 14) == 8)
		a64_immediate_operands(word, o);
	else if ((group & 7) == 5)
		a64_register_operands(word, o);
	else if ((group & 7) == 7)
		a64_vector_operands(c, word, o);
	o->result_width = o->c >= VTRACE_VECTOR ? 16 : a64_width(word);
	if (o->form & (VTRACE_FORM_READS | VTRACE_FORM_WRITES))
		o->result_width = o->a >= VTRACE_VECTOR ? o->width : 8;
	else
		o->width = o->result_width;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The register it changes, if it is the one that its code names as such. */
static void set_result(const struct vtrace_code *c, struct vtrace_operands *o)
{
	bool memory = o->form & (VTRACE_FORM_READS | VTRACE_FORM_WRITES);
	uint8_t reg = memory ? o->a : o->c;

	o->result = VTRACE_ZERO;
	if (vtrace_insn_writes(c, reg)) {
		o->form |= VTRACE_FORM_RESULT;
		o->result = reg;
	} else {
		o->result_width = 0;
	}
	if (memory || o->result == VTRACE_ZERO)
		o->c = VTRACE_ZERO;
}

void vtrace_operands_read(struct vtrace_translator *t, const uint8_t *code, size_t len,
			  struct vtrace_operands *out)
{
	struct vtrace_code c;

	*out = (struct vtrace_operands){ .width = 8,
					 .a = VTRACE_ZERO,
					 .b = VTRACE_ZERO,
					 .c = VTRACE_ZERO,
					 .result = VTRACE_ZERO };
	/* So few that no second instruction is looked at. */
	if (vtrace_translate(t, code, len < 16 ? len : 16, 0, &c) < 0 ||
	    (c.uops[0].op == VTRACE_STOP && c.uops[0].imm == VTRACE_UNDECODED))
		return;
	out->class = c.insns[0].class;
	out->len = c.insns[0].len;
	read_uops(&c, out);
	if (t->arch == VTRACE_X86_64)
		vtrace_x86_operands(&c, out);
	else
		a64_operands(&c, out);
	if (!out->width)
		out->width = 8;
	set_result(&c, out);
}

int vtrace_insn_operands(enum vtrace_arch arch, const uint8_t *code, size_t len,
			 struct vtrace_operands *out)
{
	struct vtrace_translator *t;
	int r = vtrace_translator_open(arch, &t);

	if (r < 0)
		return r;
	vtrace_operands_read(t, code, len, out);
	vtrace_translator_close(t);
	return 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Encode in 6 bits. */
static uint32_t packed(uint8_t reg)
{
	if (reg < 16)
		return reg;
	if (reg >= VTRACE_VECTOR)
		return reg < VTRACE_VECTOR + 4 * 32 ? 16u + (reg - VTRACE_VECTOR) / 4 : 63;
	return reg >= VTRACE_MASK && reg < VTRACE_MASK + 8 ? reg : 63;
}

static uint32_t log_2(uint32_t width)
{
	uint32_t n = 0;

	while (n < 6 && 1u << n < width)
		n++;
	return n;
}

uint32_t vtrace_word_make(enum vtrace_arch arch, const struct vtrace_operands *o,
			  const uint8_t *code)
{
	if (!o->len)
		return 0;
	if (arch == VTRACE_AARCH64)
		return (uint32_t)(code[0] | code[1] << 8 | code[2] << 16) | (uint32_t)code[3] << 24;
	return o->class | (uint32_t)o->form << 6 | log_2(o->width) << 10 | packed(o->a) << 13 |
	       packed(o->b) << 19 | packed(o->c) << 25;
}

uint32_t vtrace_word_func(const struct vtrace_operands *o)
{
	return log_2(o->width) | (o->form & VTRACE_FORM_READS ? 8 : 0) |
	       (o->form & VTRACE_FORM_WRITES ? 16 : 0);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void x86_name(uint8_t reg, uint8_t width, char *name)
{
	static const char *const names[][4] = {
		{ "al", "ax", "eax", "rax" },  { "dl", "dx", "edx", "rdx" },
		{ "cl", "cx", "ecx", "rcx" },  { "bl", "bx", "ebx", "rbx" },
		{ "sil", "si", "esi", "rsi" }, { "dil", "di", "edi", "rdi" },
		{ "bpl", "bp", "ebp", "rbp" }, { "spl", "sp", "esp", "rsp" },
	};
	static const char *const ends[] = { "b", "w", "d", "" };
	uint32_t w = log_2(width) & 3;

	if (reg < 8)
		snprintf(name, VTRACE_REGISTER_NAME, "%s", names[reg][w]);
	else if (reg < 16)
		snprintf(name, VTRACE_REGISTER_NAME, "r%u%s", reg, ends[w]);
	else if (reg >= VTRACE_VECTOR)
		snprintf(name, VTRACE_REGISTER_NAME, "%cmm%u",
			 width > 32   ? 'z'
			 : width > 16 ? 'y'
				      : 'x',
			 (reg - VTRACE_VECTOR) / 4 & 31u);
	else if (reg >= VTRACE_MASK)
		snprintf(name, VTRACE_REGISTER_NAME, "k%u", (reg - VTRACE_MASK) & 7u);
}

char *vtrace_register_name(enum vtrace_arch arch, uint8_t reg, uint8_t width, char *name)
{
	name[0] = '\0';
	if (reg == VTRACE_ZERO)
		return name;
	if (arch == VTRACE_X86_64)
		x86_name(reg, width, name);
	else if (reg >= VTRACE_VECTOR)
		snprintf(name, VTRACE_REGISTER_NAME, "v%u", (reg - VTRACE_VECTOR) / 4 & 31u);
	else if (reg == A64_SP)
		strcpy(name, "sp");
	else if (reg < A64_SP)
		snprintf(name, VTRACE_REGISTER_NAME, "%c%u", width > 4 ? 'x' : 'w', reg);
	return name;
}
