/* SPDX-License-Identifier: BSD-2-Clause */
/* x86, 32 and 64 bits, through capstone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <capstone/capstone.h>

#include "machine.h"
#include "x86.h"

enum { KINDS_KNOWN = 1 << 15 };

struct x86 {
	csh handle;
	cs_insn *insn;
	bool is_64;
	uint16_t kinds[X86_INS_ENDING]; /* by capstone's number, with KINDS_KNOWN once asked */
};

static void x86_close(void *state)
{
	struct x86 *x = state;

	if (!x)
		return;
	if (x->insn)
		cs_free(x->insn, 1);
	cs_close(&x->handle);
	free(x);
}

static int x86_open(bool is_64, void **out)
{
	struct x86 *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->is_64 = is_64;
	if (cs_open(CS_ARCH_X86, is_64 ? CS_MODE_64 : CS_MODE_32, &x->handle) != CS_ERR_OK) {
		free(x);
		return -ENOMEM;
	}
	cs_option(x->handle, CS_OPT_DETAIL, CS_OPT_ON);
	x->insn = cs_malloc(x->handle);
	if (!x->insn) {
		x86_close(x);
		return -ENOMEM;
	}
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

/* ---- registers ----------------------------------------------------------------------------- */

#define R(number, name64, name32, name16, name8)                                                   \
	[X86_REG_##name64] = (number) + 1, [X86_REG_##name32] = (number) + 1,                      \
	[X86_REG_##name16] = (number) + 1, [X86_REG_##name8] = (number) + 1

/* Number + 1, as the encoding has it. */
static const uint8_t general[X86_REG_ENDING] = {
	R(0, RAX, EAX, AX, AL),
	R(1, RCX, ECX, CX, CL),
	R(2, RDX, EDX, DX, DL),
	R(3, RBX, EBX, BX, BL),
	R(4, RSP, ESP, SP, SPL),
	R(5, RBP, EBP, BP, BPL),
	R(6, RSI, ESI, SI, SIL),
	R(7, RDI, EDI, DI, DIL),
	R(8, R8, R8D, R8W, R8B),
	R(9, R9, R9D, R9W, R9B),
	R(10, R10, R10D, R10W, R10B),
	R(11, R11, R11D, R11W, R11B),
	R(12, R12, R12D, R12W, R12B),
	R(13, R13, R13D, R13W, R13B),
	R(14, R14, R14D, R14W, R14B),
	R(15, R15, R15D, R15W, R15B),
	[X86_REG_AH] = 1,
	[X86_REG_CH] = 2,
	[X86_REG_DH] = 3,
	[X86_REG_BH] = 4,
};

static uint8_t number_of(unsigned int reg)
{
	return reg < X86_REG_ENDING && general[reg] ? general[reg] - 1 : INSN_NO_REGISTER;
}

/* Vector registers 0 to 31, masks 32 to 39, the old floating-point stack as one at 40. */
static int vector_of(unsigned int reg)
{
	if (reg >= X86_REG_XMM0 && reg <= X86_REG_XMM31)
		return (int)(reg - X86_REG_XMM0);
	if (reg >= X86_REG_YMM0 && reg <= X86_REG_YMM31)
		return (int)(reg - X86_REG_YMM0);
	if (reg >= X86_REG_ZMM0 && reg <= X86_REG_ZMM31)
		return (int)(reg - X86_REG_ZMM0);
	if (reg >= X86_REG_K0 && reg <= X86_REG_K7)
		return 32 + (int)(reg - X86_REG_K0);
	if ((reg >= X86_REG_ST0 && reg <= X86_REG_ST7) ||
	    (reg >= X86_REG_MM0 && reg <= X86_REG_MM7))
		return 40;
	return -1;
}

static void add_register(struct insn_registers *set, unsigned int reg)
{
	uint8_t n = number_of(reg);
	int v = n == INSN_NO_REGISTER ? vector_of(reg) : -1;

	if (n != INSN_NO_REGISTER)
		set->gpr |= 1ull << n;
	else if (reg == X86_REG_EFLAGS)
		set->gpr |= INSN_FLAGS;
	else if (v >= 0)
		set->vector |= 1ull << v;
}

/* ---- kinds --------------------------------------------------------------------------------- */

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

/* By the name, as the manuals name floating-point instructions: what, then ss, sd, ps or pd. */
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

static uint16_t find_kinds(struct x86 *x, unsigned int id)
{
	const char *name = cs_insn_name(x->handle, id);

	switch (id) {
	case X86_INS_MUL:
	case X86_INS_IMUL:
	case X86_INS_MULX:
		return INSN_MULTIPLY;
	case X86_INS_DIV:
	case X86_INS_IDIV:
		return INSN_DIVIDE;
	case X86_INS_MFENCE:
	case X86_INS_LFENCE:
	case X86_INS_SFENCE:
		return INSN_BARRIER;
	case X86_INS_CPUID:
	case X86_INS_SYSCALL:
	case X86_INS_SYSENTER:
	case X86_INS_INT:
	case X86_INS_RDTSCP:
	case X86_INS_RDMSR:
	case X86_INS_WRMSR:
	case X86_INS_XGETBV:
	case X86_INS_PAUSE:
		return INSN_SERIALIZE;
	case X86_INS_NOP:
	case X86_INS_INT3:
		return INSN_PADDING;
	default:
		break;
	}
	if (!name)
		return 0;
	return *name == 'f' ? old_fp_kinds(name) : vector_kinds(name);
}

static uint16_t kinds_of(struct x86 *x, unsigned int id)
{
	if (id >= X86_INS_ENDING)
		return 0;
	if (!(x->kinds[id] & KINDS_KNOWN))
		x->kinds[id] = find_kinds(x, id) | KINDS_KNOWN;
	return x->kinds[id] & (uint16_t)~KINDS_KNOWN;
}

/* ---- flow ---------------------------------------------------------------------------------- */

static bool direct(const cs_insn *insn, uint64_t *target)
{
	const cs_x86 *x = &insn->detail->x86;

	if (x->op_count != 1 || x->operands[0].type != X86_OP_IMM)
		return false;
	*target = (uint64_t)x->operands[0].imm;
	return true;
}

static bool in_group(const cs_insn *insn, uint8_t group)
{
	for (uint8_t i = 0; i < insn->detail->groups_count; i++)
		if (insn->detail->groups[i] == group)
			return true;
	return false;
}

static enum insn_flow class_of(const cs_insn *insn, uint64_t *target)
{
	switch (insn->id) {
	case X86_INS_RET:
	case X86_INS_RETF:
	case X86_INS_RETFQ:
	case X86_INS_IRET:
	case X86_INS_IRETD:
	case X86_INS_IRETQ:
	case X86_INS_SYSRET:
	case X86_INS_SYSEXIT:
		return INSN_RETURN;
	case X86_INS_CALL:
		return direct(insn, target) ? INSN_CALL : INSN_INDIRECT_CALL;
	case X86_INS_LCALL:
		return INSN_INDIRECT_CALL;
	case X86_INS_JMP:
		return direct(insn, target) ? INSN_JUMP : INSN_INDIRECT_JUMP;
	case X86_INS_LJMP:
		return INSN_INDIRECT_JUMP;
	case X86_INS_UD0:
	case X86_INS_UD2:
	case X86_INS_UD2B:
	case X86_INS_HLT:
	case X86_INS_INT3:
		return INSN_TRAP;
	default:
		break;
	}
	if ((in_group(insn, X86_GRP_JUMP) || insn->id == X86_INS_LOOP ||
	     insn->id == X86_INS_LOOPE || insn->id == X86_INS_LOOPNE ||
	     insn->id == X86_INS_XBEGIN) &&
	    direct(insn, target))
		return INSN_BRANCH;
	return INSN_PLAIN;
}

/* ---- operands ------------------------------------------------------------------------------ */

/* Instructions that name memory without going there. */
static bool names_only(unsigned int id)
{
	switch (id) {
	case X86_INS_LEA:
	case X86_INS_NOP:
	case X86_INS_PREFETCH:
	case X86_INS_PREFETCHW:
	case X86_INS_PREFETCHNTA:
	case X86_INS_PREFETCHT0:
	case X86_INS_PREFETCHT1:
	case X86_INS_PREFETCHT2:
	case X86_INS_CLFLUSH:
	case X86_INS_CLFLUSHOPT:
		return true;
	default:
		return false;
	}
}

static void add_memory(const cs_insn *insn, const cs_x86_op *op, struct insn *out)
{
	add_register(&out->reads, op->mem.base);
	add_register(&out->reads, op->mem.index);
	out->base = number_of(op->mem.base);
	out->index = number_of(op->mem.index);
	if (names_only(insn->id))
		return;
	if (op->access & CS_AC_WRITE)
		out->kinds |= INSN_STORE;
	if ((op->access & CS_AC_READ) || !op->access)
		out->kinds |= INSN_LOAD;
}

/* capstone's lists of registers lack some of what its lists of flags have, and cmpxchg's. */
static void add_flags(const cs_insn *insn, struct insn *out)
{
	const uint64_t tests = X86_EFLAGS_TEST_OF | X86_EFLAGS_TEST_SF | X86_EFLAGS_TEST_ZF |
			       X86_EFLAGS_TEST_PF | X86_EFLAGS_TEST_CF | X86_EFLAGS_TEST_NT |
			       X86_EFLAGS_TEST_DF | X86_EFLAGS_TEST_RF | X86_EFLAGS_TEST_IF |
			       X86_EFLAGS_TEST_TF | X86_EFLAGS_TEST_AF;
	uint64_t flags = insn->detail->x86.eflags;

	if (insn->id == X86_INS_CMPXCHG) {
		add_register(&out->reads, X86_REG_RAX);
		add_register(&out->writes, X86_REG_RAX);
	}
	if (in_group(insn, X86_GRP_FPU))
		return; /* there they are its own flags */
	if (flags & tests)
		add_register(&out->reads, X86_REG_EFLAGS);
	if (flags & ~tests)
		add_register(&out->writes, X86_REG_EFLAGS);
}

static void add_operands(const cs_insn *insn, struct insn *out)
{
	const cs_detail *detail = insn->detail;

	for (uint8_t i = 0; i < detail->x86.op_count; i++) {
		const cs_x86_op *op = &detail->x86.operands[i];

		if (op->type == X86_OP_MEM)
			add_memory(insn, op, out);
		if (op->type != X86_OP_REG)
			continue;
		if ((op->access & CS_AC_READ) || !op->access)
			add_register(&out->reads, op->reg);
		if (op->access & CS_AC_WRITE)
			add_register(&out->writes, op->reg);
		if (vector_of(op->reg) >= 0)
			out->kinds |= INSN_VECTOR;
	}
	add_flags(insn, out);
	for (uint8_t i = 0; i < detail->regs_read_count; i++)
		add_register(&out->reads, detail->regs_read[i]);
	for (uint8_t i = 0; i < detail->regs_write_count; i++)
		add_register(&out->writes, detail->regs_write[i]);
}

static void add_prefixes(const cs_insn *insn, struct insn *out)
{
	const cs_x86 *x = &insn->detail->x86;

	switch (insn->id) {
	case X86_INS_PUSH:
	case X86_INS_CALL:
		out->kinds |= INSN_STORE;
		break;
	case X86_INS_POP:
	case X86_INS_RET:
	case X86_INS_LEAVE:
		out->kinds |= INSN_LOAD;
		break;
	case X86_INS_XCHG:
		if (out->kinds & (INSN_LOAD | INSN_STORE))
			out->kinds |= INSN_ATOMIC;
		break;
	default:
		break;
	}
	if (x->prefix[0] == X86_PREFIX_LOCK)
		out->kinds |= INSN_ATOMIC | INSN_LOAD | INSN_STORE;
	if ((x->prefix[0] == X86_PREFIX_REP || x->prefix[0] == X86_PREFIX_REPNE) &&
	    out->kinds & (INSN_LOAD | INSN_STORE) && !(out->kinds & INSN_VECTOR) &&
	    out->flow == INSN_PLAIN)
		out->kinds |= INSN_REPEAT;
}

static bool disassemble(struct x86 *x, const uint8_t *code, size_t len, uint64_t vaddr)
{
	return cs_disasm_iter(x->handle, &code, &len, &vaddr, x->insn) && x->insn->detail;
}

/* What is added to the register that is the first operand; 0: none, or not a number. */
static int64_t added(const cs_insn *insn)
{
	const cs_x86_op *ops = insn->detail->x86.operands;
	bool two = insn->detail->x86.op_count == 2;

	if (!insn->detail->x86.op_count || ops[0].type != X86_OP_REG)
		return 0;
	switch (insn->id) {
	case X86_INS_INC:
		return 1;
	case X86_INS_DEC:
		return -1;
	case X86_INS_ADD:
		return two && ops[1].type == X86_OP_IMM ? ops[1].imm : 0;
	case X86_INS_SUB:
		return two && ops[1].type == X86_OP_IMM ? -ops[1].imm : 0;
	case X86_INS_LEA:
		return two && ops[1].mem.base == ops[0].reg && ops[1].mem.index == X86_REG_INVALID
			       ? ops[1].mem.disp
			       : 0;
	default:
		return 0;
	}
}

static bool x86_decode(void *state, const uint8_t *code, size_t len, struct insn *out)
{
	struct x86 *x = state;
	int64_t step;

	if (!disassemble(x, code, len, out->vaddr))
		return x->is_64 && insn_x86_new(code, len, out);
	out->len = (uint8_t)x->insn->size;
	out->kinds = kinds_of(x, x->insn->id);
	out->flow = (uint8_t)class_of(x->insn, &out->target);
	add_operands(x->insn, out);
	/* Strings and shadow stacks have such names too (stosd, cmpsd, rdsspd). */
	if (!(out->kinds & INSN_VECTOR))
		out->kinds &= (uint16_t)~INSN_FP;
	add_prefixes(x->insn, out);
	step = added(x->insn);
	out->step = step >= INT16_MIN && step <= INT16_MAX ? (int16_t)step : 0;
	return true;
}

/* ---- what it computes ---------------------------------------------------------------------- */

static bool set_sum(const cs_insn *insn, const cs_x86_op *op, uint64_t vaddr, struct insn_op *out)
{
	out->a = number_of(op->mem.base);
	out->b = number_of(op->mem.index);
	out->scale = (uint8_t)op->mem.scale;
	out->disp = op->mem.disp;
	if (op->mem.base == X86_REG_RIP)
		out->disp += (int64_t)(vaddr + insn->size);
	else if (op->mem.base != X86_REG_INVALID && out->a == INSN_NO_REGISTER)
		return false;
	return op->mem.segment == X86_REG_INVALID || op->mem.segment == X86_REG_DS ||
	       op->mem.segment == X86_REG_CS;
}

/* dst = source, which may be a register, a number or memory. */
static void set_source(const cs_insn *insn, const cs_x86_op *op, uint64_t vaddr,
		       struct insn_op *out)
{
	out->known = true;
	out->size = op->size;
	switch (op->type) {
	case X86_OP_REG:
		out->a = number_of(op->reg);
		out->known = out->a != INSN_NO_REGISTER && op->reg != X86_REG_AH &&
			     op->reg != X86_REG_BH && op->reg != X86_REG_CH &&
			     op->reg != X86_REG_DH;
		break;
	case X86_OP_IMM:
		out->disp = op->imm;
		break;
	case X86_OP_MEM:
		out->load = true;
		out->known = set_sum(insn, op, vaddr, out);
		break;
	default:
		out->known = false;
	}
}

static void set_add(const cs_insn *insn, const cs_x86_op *ops, uint64_t vaddr, struct insn_op *out)
{
	out->known = true;
	if (ops[1].type == X86_OP_MEM) {
		set_source(insn, &ops[1], vaddr, out);
		out->plus = out->dst;
		return;
	}
	out->a = out->dst;
	if (ops[1].type == X86_OP_REG)
		out->b = number_of(ops[1].reg);
	else
		out->disp = insn->id == X86_INS_SUB ? -ops[1].imm : ops[1].imm;
	if (insn->id == X86_INS_SUB && ops[1].type != X86_OP_IMM)
		out->known = false;
}

static void set_compare(const cs_insn *insn, const cs_x86_op *ops, uint64_t vaddr,
			struct insn_op *out)
{
	out->dst = INSN_NO_REGISTER;
	if (ops[1].type != X86_OP_IMM)
		return;
	set_source(insn, &ops[0], vaddr, out);
	out->compare = out->known;
	out->known = false;
	out->value = ops[1].imm;
}

static void set_two(const cs_insn *insn, const cs_x86_op *ops, uint64_t vaddr, struct insn_op *out)
{
	bool imm = ops[1].type == X86_OP_IMM;

	switch (insn->id) {
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
		out->sign = true;
		/* fall through */
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVZX:
		set_source(insn, &ops[1], vaddr, out);
		out->known = out->known && (ops[0].size >= 4);
		if (insn->id == X86_INS_MOVZX && ops[1].size < 4)
			out->max = (1ull << (8 * ops[1].size)) - 1;
		return;
	case X86_INS_LEA:
		out->known = set_sum(insn, &ops[1], vaddr, out) && ops[0].size >= 4;
		return;
	case X86_INS_ADD:
	case X86_INS_SUB:
		if (ops[0].size >= 4)
			set_add(insn, ops, vaddr, out);
		return;
	case X86_INS_SHL:
	case X86_INS_SAL:
		out->b = out->dst;
		out->known = imm && ops[1].imm >= 0 && ops[1].imm <= 6 && ops[0].size >= 4;
		out->scale = out->known ? (uint8_t)(1u << ops[1].imm) : 1;
		return;
	case X86_INS_XOR:
		out->known = ops[1].type == X86_OP_REG && ops[1].reg == ops[0].reg;
		return;
	case X86_INS_BSF:
	case X86_INS_TZCNT:
		out->max = 8u * ops[0].size - (insn->id == X86_INS_BSF);
		return;
	case X86_INS_AND:
		if (imm && ops[1].imm >= 0)
			out->max = (uint64_t)ops[1].imm;
		return;
	default:
		return;
	}
}

static void set_jump(const cs_insn *insn, uint64_t vaddr, struct insn_op *out)
{
	out->dst = INSN_TARGET;
	set_source(insn, &insn->detail->x86.operands[0], vaddr, out);
}

static void x86_op(void *state, const uint8_t *code, size_t len, uint64_t vaddr,
		   struct insn_op *out)
{
	struct x86 *x = state;
	const cs_x86_op *ops;
	uint8_t nr;

	if (!disassemble(x, code, len, vaddr))
		return;
	ops = x->insn->detail->x86.operands;
	nr = x->insn->detail->x86.op_count;
	if (x->insn->id == X86_INS_CDQE) {
		*out = (struct insn_op){ .dst = 0,
					 .known = true,
					 .a = 0,
					 .b = INSN_NO_REGISTER,
					 .plus = INSN_NO_REGISTER,
					 .scale = 1,
					 .size = 4,
					 .sign = true,
					 .b_size = 8,
					 .max = UINT64_MAX };
		return;
	}
	if (x->insn->id == X86_INS_JMP && nr == 1) {
		set_jump(x->insn, vaddr, out);
		return;
	}
	if (nr != 2)
		return;
	if (ops[0].type == X86_OP_REG)
		out->dst = number_of(ops[0].reg);
	if (x->insn->id == X86_INS_CMP)
		set_compare(x->insn, ops, vaddr, out);
	else if (out->dst != INSN_NO_REGISTER)
		set_two(x->insn, ops, vaddr, out);
}

static enum insn_condition x86_condition(const uint8_t *code, size_t len, struct insn_op *op)
{
	uint8_t c;

	(void)op;
	while (len > 2 && (*code == 0x2e || *code == 0x3e || *code == 0xf2)) {
		code++; /* hints and bnd */
		len--;
	}
	if (len >= 2 && code[0] == 0x0f && (code[1] & 0xf0) == 0x80)
		c = code[1] & 15;
	else if (len >= 1 && (code[0] & 0xf0) == 0x70)
		c = code[0] & 15;
	else
		return INSN_OTHER;
	switch (c) {
	case 2:
		return INSN_BELOW;
	case 3:
		return INSN_ABOVE_EQUAL;
	case 6:
		return INSN_BELOW_EQUAL;
	case 7:
		return INSN_ABOVE;
	default:
		return INSN_OTHER;
	}
}

static int x86_stack_move(const uint8_t *code, size_t len)
{
	uint8_t rex = 0;

	if (len > 1 && (*code & 0xf0) == 0x40) {
		rex = *code++;
		len--;
	}
	if ((*code & 0xf8) == 0x50)
		return -1; /* push */
	if ((*code & 0xf8) == 0x58 || *code == 0xc9)
		return 1; /* pop, leave */
	/* With the prefix's bit that belongs to the register's field, register 4 is r12. */
	if (len > 1 && *code == 0x8d && !(rex & 4))
		return (code[1] & 0x38) == 0x20; /* lea to rsp */
	if (len < 2 || (*code != 0x83 && *code != 0x81) || rex & 1)
		return 0;
	return code[1] == 0xc4 ? 1 : code[1] == 0xec ? -1 : 0; /* add, sub */
}

static bool x86_jumps_within(const uint8_t *code, size_t len)
{
	return len && *code == 0x3e;
}

static uint8_t x86_step(const uint8_t *code)
{
	(void)code;
	return 1;
}

const struct insn_machine insn_x86_64 = {
	.open = open_64,
	.close = x86_close,
	.decode = x86_decode,
	.quick = insn_x86_quick,
	.op = x86_op,
	.condition = x86_condition,
	.stack_move = x86_stack_move,
	.jumps_within = x86_jumps_within,
	.step = x86_step,
	.call_writes = INSN_FLAGS | 0x0fc7,
};

const struct insn_machine insn_x86_32 = {
	.open = open_32,
	.close = x86_close,
	.decode = x86_decode,
	.op = x86_op,
	.condition = x86_condition,
	.stack_move = x86_stack_move,
	.jumps_within = x86_jumps_within,
	.step = x86_step,
	.call_writes = INSN_FLAGS | 0x7,
};
