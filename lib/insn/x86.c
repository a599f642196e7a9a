/* SPDX-License-Identifier: BSD-2-Clause */
/* x86, 32 and 64 bits, through Zydis. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "insn_x86.h"
#include "machine.h"

enum { KINDS_KNOWN = 1 << 15 };

struct x86 {
	bool is_64;
	uint16_t kinds[ZYDIS_MNEMONIC_MAX_VALUE + 1]; /* with KINDS_KNOWN once asked */
};

static int x86_open(bool is_64, void **out)
{
	struct x86 *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->is_64 = is_64;
	*out = x;
	return 0;
}

static int open_64(void **out)
{
	return x86_open(true, out);
}

static int open_32(void **out)
{
	return x86_open(false, out);
}

/* ---- registers ------------------------------------------------------------------------------- */

static uint8_t number_of(ZydisRegister reg)
{
	struct insn_x86_register r = insn_x86_register(reg);

	return r.class == INSN_X86_GENERAL || r.class == INSN_X86_HIGH ? r.number
								       : INSN_NO_REGISTER;
}

/* Vector registers are 0 to 31, masks 32 to 39, and the old floating-point stack is one, at 40. */
static int vector_of(struct insn_x86_register r)
{
	switch (r.class) {
	case INSN_X86_VECTOR:
		return r.number;
	case INSN_X86_MASK:
		return 32 + r.number;
	case INSN_X86_STACK:
		return 40;
	default:
		return -1;
	}
}

static void add_register(struct insn_registers *set, ZydisRegister reg)
{
	struct insn_x86_register r = insn_x86_register(reg);
	int v = vector_of(r);

	if (r.class == INSN_X86_GENERAL || r.class == INSN_X86_HIGH)
		set->gpr |= 1ull << r.number;
	else if (r.class == INSN_X86_FLAGS)
		set->gpr |= INSN_FLAGS;
	else if (v >= 0)
		set->vector |= 1ull << v;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static bool starts(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static bool is_moved_only(const char *s)
{
	static const char *const parts[] = { "mov",	"and",	    "or",	 "xor",
					     "shuf",	"unpck",    "perm",	 "blend",
					     "insert",	"extract",  "broadcast", "gather",
					     "maskmov", "compress", "expand",	 "scatter" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (starts(s, parts[i]))
			return true;
	return false;
}

/* The name tells, as the manuals name floating-point instructions: the work, then ss, sd, ps or pd.
 */
static uint16_t vector_kinds(const char *name)
{
	const char *s = *name == 'v' ? name + 1 : name;
	size_t len = strlen(s);
	bool fp = len > 3 && (s[len - 2] == 's' || s[len - 2] == 'p') &&
		  (s[len - 1] == 's' || s[len - 1] == 'd');

	if (starts(s, "pmul") || starts(s, "pmadd") || starts(s, "pdp"))
		return INSN_MULTIPLY | INSN_VECTOR;
	if (!fp || *s == 'p' || is_moved_only(s)) /* p: packed integers, as in pmaxsd */
		return 0;
	return starts(s, "div") || starts(s, "sqrt") ? INSN_FP | INSN_FP_DIVIDE : INSN_FP;
}

static uint16_t old_fp_kinds(const char *name)
{
	if (starts(name, "fdiv") || starts(name, "fidiv") || starts(name, "fsqrt") ||
	    starts(name, "fprem"))
		return INSN_FP | INSN_VECTOR | INSN_FP_DIVIDE;
	return INSN_FP | INSN_VECTOR;
}

static uint16_t find_kinds(ZydisMnemonic id)
{
	const char *name = ZydisMnemonicGetString(id);

	switch (id) {
	case ZYDIS_MNEMONIC_MUL:
	case ZYDIS_MNEMONIC_IMUL:
	case ZYDIS_MNEMONIC_MULX:
		return INSN_MULTIPLY;
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
		return INSN_DIVIDE;
	case ZYDIS_MNEMONIC_MFENCE:
	case ZYDIS_MNEMONIC_LFENCE:
	case ZYDIS_MNEMONIC_SFENCE:
		return INSN_BARRIER;
	case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_RDTSCP:
	case ZYDIS_MNEMONIC_RDMSR:
	case ZYDIS_MNEMONIC_WRMSR:
	case ZYDIS_MNEMONIC_XGETBV:
	case ZYDIS_MNEMONIC_PAUSE:
		return INSN_SERIALIZE;
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_INT3:
		return INSN_PADDING;
	default:
		break;
	}
	if (!name)
		return 0;
	return *name == 'f' ? old_fp_kinds(name) : vector_kinds(name);
}

static uint16_t kinds_of(struct x86 *x, ZydisMnemonic id)
{
	if (!(x->kinds[id] & KINDS_KNOWN))
		x->kinds[id] = find_kinds(id) | KINDS_KNOWN;
	return x->kinds[id] & (uint16_t)~KINDS_KNOWN;
}

/* ---- flow ------------------------------------------------------------------------------------ */

static enum insn_flow branch_flow(const ZydisDecodedInstruction *i, enum insn_flow direct,
				  enum insn_flow indirect)
{
	return i->raw.imm[0].is_relative ? direct : indirect;
}

static enum insn_flow flow_of(const ZydisDecodedInstruction *i)
{
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSRET:
		return INSN_RETURN;
	case ZYDIS_CATEGORY_CALL:
		return branch_flow(i, INSN_CALL, INSN_INDIRECT_CALL);
	case ZYDIS_CATEGORY_UNCOND_BR:
		return branch_flow(i, INSN_JUMP, INSN_INDIRECT_JUMP);
	case ZYDIS_CATEGORY_COND_BR:
		return branch_flow(i, INSN_BRANCH, INSN_PLAIN);
	default:
		break;
	}
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
		return INSN_TRAP;
	default:
		return INSN_PLAIN;
	}
}

static void set_flow(struct x86 *x, const ZydisDecodedInstruction *i, struct insn *out)
{
	out->len = i->length;
	out->kinds = kinds_of(x, i->mnemonic);
	out->flow = (uint8_t)flow_of(i);
	if (i->raw.imm[0].is_relative)
		out->target = insn_x86_target(i, out->vaddr);
}

static bool x86_decode_flow(void *state, const uint8_t *code, size_t len, struct insn *out)
{
	struct x86 *x = state;
	ZydisDecodedInstruction i;

	if (!insn_x86_decode_head(x->is_64, code, len, &i))
		return false;
	set_flow(x, &i, out);
	return true;
}

/* ---- operands -------------------------------------------------------------------------------- */

static bool reads(const ZydisDecodedOperand *op)
{
	return op->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
}

static bool writes(const ZydisDecodedOperand *op)
{
	return op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
}

/* Instructions that name memory without going there. */
static bool names_only(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *op)
{
	return op->mem.type != ZYDIS_MEMOP_TYPE_MEM
		       ? op->mem.type != ZYDIS_MEMOP_TYPE_VSIB
		       : i->meta.category == ZYDIS_CATEGORY_PREFETCH ||
				 i->meta.category == ZYDIS_CATEGORY_WIDENOP ||
				 i->mnemonic == ZYDIS_MNEMONIC_CLFLUSH ||
				 i->mnemonic == ZYDIS_MNEMONIC_CLFLUSHOPT;
}

static void add_memory(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *op,
		       struct insn *out)
{
	bool stack = op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
		     op->mem.segment == ZYDIS_REGISTER_SS;

	add_register(&out->reads, op->mem.base);
	add_register(&out->reads, op->mem.index);
	/* A push of what memory holds has its own memory, and the stack's. */
	if (!stack) {
		out->base = number_of(op->mem.base);
		out->index = number_of(op->mem.index);
	}
	if (names_only(i, op))
		return;
	if (writes(op))
		out->kinds |= INSN_STORE;
	if (reads(op))
		out->kinds |= INSN_LOAD;
}

static void add_operands(const struct insn_x86 *in, struct insn *out)
{
	for (uint8_t n = 0; n < in->head.operand_count; n++) {
		const ZydisDecodedOperand *op = &in->op[n];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
			add_memory(&in->head, op, out);
		if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		if (reads(op))
			add_register(&out->reads, op->reg.value);
		if (writes(op))
			add_register(&out->writes, op->reg.value);
		if (vector_of(insn_x86_register(op->reg.value)) >= 0)
			out->kinds |= INSN_VECTOR;
	}
	if (insn_x86_writes_flags(&in->head))
		out->writes.gpr |= INSN_FLAGS;
}

static void add_prefixes(const ZydisDecodedInstruction *i, struct insn *out)
{
	bool memory = out->kinds & (INSN_LOAD | INSN_STORE);

	if ((i->mnemonic == ZYDIS_MNEMONIC_XCHG && memory) || i->attributes & ZYDIS_ATTRIB_HAS_LOCK)
		out->kinds |= INSN_ATOMIC;
	if (i->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		out->kinds |= INSN_REPEAT;
}

/* The number that is added to the register that is the first operand; 0: none. */
static int64_t added(const struct insn_x86 *in)
{
	const ZydisDecodedOperand *op = in->op;

	if (op[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return 0;
	switch (in->head.mnemonic) {
	case ZYDIS_MNEMONIC_INC:
		return 1;
	case ZYDIS_MNEMONIC_DEC:
		return -1;
	case ZYDIS_MNEMONIC_ADD:
		return op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? op[1].imm.value.s : 0;
	case ZYDIS_MNEMONIC_SUB:
		return op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? -op[1].imm.value.s : 0;
	case ZYDIS_MNEMONIC_LEA:
		return op[1].mem.base == op[0].reg.value && op[1].mem.index == ZYDIS_REGISTER_NONE
			       ? op[1].mem.disp.value
			       : 0;
	default:
		return 0;
	}
}

static bool x86_decode(void *state, const uint8_t *code, size_t len, struct insn *out)
{
	struct x86 *x = state;
	struct insn_x86 in;
	int64_t step;

	if (!insn_x86_decode(x->is_64, code, len, &in))
		return false;
	set_flow(x, &in.head, out);
	add_operands(&in, out);
	/* Strings and shadow stacks have such names too (stosd, cmpsd, rdsspd). */
	if (!(out->kinds & INSN_VECTOR))
		out->kinds &= (uint16_t)~INSN_FP;
	add_prefixes(&in.head, out);
	step = added(&in);
	out->step = step >= INT16_MIN && step <= INT16_MAX ? (int16_t)step : 0;
	return true;
}

/* ---- what it computes ------------------------------------------------------------------------ */

static bool is_number(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

/* The number that the instruction takes: one that has the operands' width is not extended. */
static int64_t number(const struct insn_x86 *in, const ZydisDecodedOperand *op)
{
	uint8_t width = in->head.operand_width;

	if (op->size != width || width >= 64)
		return op->imm.value.s;
	return (int64_t)(op->imm.value.u & ((1ull << width) - 1));
}

static uint8_t bytes_of(const ZydisDecodedOperand *op)
{
	return (uint8_t)(op->size / 8);
}

static bool set_sum(const struct insn_x86 *in, const ZydisDecodedOperand *op, uint64_t vaddr,
		    struct insn_op *out)
{
	out->a = number_of(op->mem.base);
	out->b = number_of(op->mem.index);
	out->scale = op->mem.scale ? op->mem.scale : 1;
	out->disp = op->mem.disp.value;
	if (op->mem.base == ZYDIS_REGISTER_RIP)
		out->disp += (int64_t)(vaddr + in->head.length);
	else if (op->mem.base != ZYDIS_REGISTER_NONE && out->a == INSN_NO_REGISTER)
		return false;
	return op->mem.segment != ZYDIS_REGISTER_FS && op->mem.segment != ZYDIS_REGISTER_GS;
}

/* dst = source, which may be a register, a number or memory. */
static void set_source(const struct insn_x86 *in, const ZydisDecodedOperand *op, uint64_t vaddr,
		       struct insn_op *out)
{
	struct insn_x86_register reg;

	out->known = true;
	out->size = bytes_of(op);
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		reg = insn_x86_register(op->reg.value);
		out->known = reg.class == INSN_X86_GENERAL;
		out->a = number_of(op->reg.value);
		break;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		out->disp = number(in, op);
		out->size = 8;
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		out->load = true;
		out->known = set_sum(in, op, vaddr, out);
		break;
	default:
		out->known = false;
	}
}

static void set_add(const struct insn_x86 *in, uint64_t vaddr, struct insn_op *out)
{
	const ZydisDecodedOperand *from = &in->op[1];
	bool sub = in->head.mnemonic == ZYDIS_MNEMONIC_SUB;

	out->known = !sub || is_number(from);
	if (from->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		set_source(in, from, vaddr, out);
		out->known = out->known && !sub;
		out->plus = out->dst;
		return;
	}
	out->a = out->dst;
	if (from->type == ZYDIS_OPERAND_TYPE_REGISTER)
		out->b = number_of(from->reg.value);
	else
		out->disp = sub ? -from->imm.value.s : from->imm.value.s;
}

static void set_compare(const struct insn_x86 *in, uint64_t vaddr, struct insn_op *out)
{
	out->dst = INSN_NO_REGISTER;
	if (!is_number(&in->op[1]))
		return;
	set_source(in, &in->op[0], vaddr, out);
	out->compare = out->known;
	out->known = false;
	out->value = number(in, &in->op[1]);
}

static void set_two(const struct insn_x86 *in, uint64_t vaddr, struct insn_op *out)
{
	const ZydisDecodedOperand *op = in->op;
	int64_t imm = is_number(&op[1]) ? number(in, &op[1]) : -1;
	uint8_t size = bytes_of(&op[0]), from = bytes_of(&op[1]);

	switch (in->head.mnemonic) {
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		out->sign = true;
		/* fall through */
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
		set_source(in, &op[1], vaddr, out);
		out->known = out->known && size >= 4;
		if (in->head.mnemonic == ZYDIS_MNEMONIC_MOVZX && from < 4)
			out->max = (1ull << (8 * from)) - 1;
		return;
	case ZYDIS_MNEMONIC_LEA:
		out->known = set_sum(in, &op[1], vaddr, out) && size >= 4;
		return;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (size >= 4)
			set_add(in, vaddr, out);
		return;
	case ZYDIS_MNEMONIC_SHL:
		out->b = out->dst;
		out->known = imm >= 0 && imm <= 6 && size >= 4;
		out->scale = out->known ? (uint8_t)(1u << imm) : 1;
		return;
	case ZYDIS_MNEMONIC_XOR:
		out->known = op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			     op[1].reg.value == op[0].reg.value;
		return;
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_TZCNT:
		out->max = 8u * size - (in->head.mnemonic == ZYDIS_MNEMONIC_BSF);
		return;
	case ZYDIS_MNEMONIC_AND:
		if (imm >= 0)
			out->max = (uint64_t)imm;
		return;
	default:
		return;
	}
}

static void set_sign_extension(struct insn_op *out)
{
	out->dst = out->a = 0;
	out->known = out->sign = true;
	out->size = 4;
}

static void x86_op(void *state, const uint8_t *code, size_t len, uint64_t vaddr,
		   struct insn_op *out)
{
	const struct x86 *x = state;
	struct insn_x86 in;

	if (!insn_x86_decode(x->is_64, code, len, &in))
		return;
	if (in.head.mnemonic == ZYDIS_MNEMONIC_CDQE) {
		set_sign_extension(out);
		return;
	}
	if (in.head.mnemonic == ZYDIS_MNEMONIC_JMP && !in.head.raw.imm[0].is_relative) {
		out->dst = INSN_TARGET;
		set_source(&in, &in.op[0], vaddr, out);
		return;
	}
	if (in.head.operand_count_visible != 2)
		return;
	if (in.op[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		out->dst = number_of(in.op[0].reg.value);
	if (in.head.mnemonic == ZYDIS_MNEMONIC_CMP)
		set_compare(&in, vaddr, out);
	else if (out->dst != INSN_NO_REGISTER)
		set_two(&in, vaddr, out);
}

/* Conditional branches are encoded the same in both modes. */
static enum insn_condition x86_condition(const uint8_t *code, size_t len, struct insn_op *op)
{
	ZydisDecodedInstruction i;

	(void)op;
	if (!insn_x86_decode_head(true, code, len, &i))
		return INSN_OTHER;
	switch (i.mnemonic) {
	case ZYDIS_MNEMONIC_JB:
		return INSN_BELOW;
	case ZYDIS_MNEMONIC_JNB:
		return INSN_ABOVE_EQUAL;
	case ZYDIS_MNEMONIC_JBE:
		return INSN_BELOW_EQUAL;
	case ZYDIS_MNEMONIC_JNBE:
		return INSN_ABOVE;
	default:
		return INSN_OTHER;
	}
}

static bool is_stack_pointer(const ZydisDecodedOperand *op)
{
	struct insn_x86_register reg = op->type == ZYDIS_OPERAND_TYPE_REGISTER
					       ? insn_x86_register(op->reg.value)
					       : (struct insn_x86_register){ 0 };

	return reg.class == INSN_X86_GENERAL && reg.number == 4;
}

static int x86_stack_move(void *state, const uint8_t *code, size_t len)
{
	const struct x86 *x = state;
	struct insn_x86 in;

	if (!insn_x86_decode(x->is_64, code, len, &in))
		return 0;
	if (in.head.meta.category == ZYDIS_CATEGORY_PUSH)
		return -1;
	if (in.head.meta.category == ZYDIS_CATEGORY_POP || in.head.mnemonic == ZYDIS_MNEMONIC_LEAVE)
		return 1;
	if (!is_stack_pointer(&in.op[0]))
		return 0;
	if (in.head.mnemonic == ZYDIS_MNEMONIC_LEA)
		return 1;
	if (!is_number(&in.op[1]))
		return 0;
	return in.head.mnemonic == ZYDIS_MNEMONIC_ADD	? 1
	       : in.head.mnemonic == ZYDIS_MNEMONIC_SUB ? -1
							: 0;
}

static bool x86_jumps_within(const uint8_t *code, size_t len)
{
	ZydisDecodedInstruction i;

	return insn_x86_decode_head(true, code, len, &i) && i.attributes & ZYDIS_ATTRIB_HAS_NOTRACK;
}

static uint8_t x86_step(const uint8_t *code)
{
	(void)code;
	return 1;
}

const struct insn_machine insn_x86_64 = {
	.open = open_64,
	.close = free,
	.decode = x86_decode,
	.decode_flow = x86_decode_flow,
	.op = x86_op,
	.condition = x86_condition,
	.stack_move = x86_stack_move,
	.jumps_within = x86_jumps_within,
	.step = x86_step,
	.call_writes = INSN_FLAGS | 0x0fc7,
};

const struct insn_machine insn_x86_32 = {
	.open = open_32,
	.close = free,
	.decode = x86_decode,
	.decode_flow = x86_decode_flow,
	.op = x86_op,
	.condition = x86_condition,
	.stack_move = x86_stack_move,
	.jumps_within = x86_jumps_within,
	.step = x86_step,
	.call_writes = INSN_FLAGS | 0x7,
};
