/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers and memory that an instruction reads and writes. */
#include <string.h>

#include "x86_internal.h"

/* ---- registers ------------------------------------------------------------------------------- */

#define GENERAL(n, r64, r32, r16, r8)                                                              \
	[X86_REG_##r64] = { X86_GENERAL, n, 8 }, [X86_REG_##r32] = { X86_GENERAL, n, 4 },          \
	[X86_REG_##r16] = { X86_GENERAL, n, 2 }, [X86_REG_##r8] = { X86_GENERAL, n, 1 }
#define HIGH(n, name) [X86_REG_##name] = { X86_HIGH, n, 1 }

static const struct x86_register general[X86_REG_ENDING] = {
	GENERAL(RAX, RAX, EAX, AX, AL),
	GENERAL(RDX, RDX, EDX, DX, DL),
	GENERAL(RCX, RCX, ECX, CX, CL),
	GENERAL(RBX, RBX, EBX, BX, BL),
	GENERAL(RSI, RSI, ESI, SI, SIL),
	GENERAL(RDI, RDI, EDI, DI, DIL),
	GENERAL(RBP, RBP, EBP, BP, BPL),
	GENERAL(RSP, RSP, ESP, SP, SPL),
	GENERAL(8, R8, R8D, R8W, R8B),
	GENERAL(9, R9, R9D, R9W, R9B),
	GENERAL(10, R10, R10D, R10W, R10B),
	GENERAL(11, R11, R11D, R11W, R11B),
	GENERAL(12, R12, R12D, R12W, R12B),
	GENERAL(13, R13, R13D, R13W, R13B),
	GENERAL(14, R14, R14D, R14W, R14B),
	GENERAL(15, R15, R15D, R15W, R15B),
	HIGH(RAX, AH),
	HIGH(RDX, DH),
	HIGH(RCX, CH),
	HIGH(RBX, BH),
};

struct x86_register x86_register(unsigned int r)
{
	struct x86_register v = { X86_VECTOR, 0, 0 };

	if (r >= X86_REG_K0 && r <= X86_REG_K7)
		return (struct x86_register){ X86_MASK, (uint8_t)(VTRACE_MASK + r - X86_REG_K0),
					      8 };
	if (r >= X86_REG_XMM0 && r <= X86_REG_XMM31)
		v.w = 16, r -= X86_REG_XMM0;
	else if (r >= X86_REG_YMM0 && r <= X86_REG_YMM31)
		v.w = 32, r -= X86_REG_YMM0;
	else if (r >= X86_REG_ZMM0 && r <= X86_REG_ZMM31)
		v.w = 64, r -= X86_REG_ZMM0;
	else
		return r < X86_REG_ENDING ? general[r] : (struct x86_register){ 0 };
	v.number = (uint8_t)(VTRACE_VECTOR + 4 * r);
	return v;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A register of an address; false: none that can be added. */
static bool part(unsigned int r, uint8_t *out, bool *is_32)
{
	struct x86_register reg = x86_register(r);

	*out = VTRACE_ZERO;
	if (r == X86_REG_INVALID || r == X86_REG_RIZ)
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
	const x86_op_mem *mem = &k->op[i].mem;
	bool is_32 = false;

	*p = (struct x86_place){ .a = VTRACE_ZERO, .b = VTRACE_ZERO, .imm = (uint64_t)mem->disp };
	if (mem->base == X86_REG_RIP) {
		p->imm += k->m->next_pc - k->m->code->block.pc;
		p->marks = VTRACE_PC_RELATIVE;
	} else if (mem->base == X86_REG_EIP || !part(mem->base, &p->a, &is_32)) {
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
	if (k->insn->id != X86_INS_LEA &&
	    (mem->segment == X86_REG_FS || mem->segment == X86_REG_GS)) {
		uint8_t t = vtrace_temp(k->m);

		vtrace_make(k->m, VTRACE_ADD, 8, t, p->a,
			    mem->segment == X86_REG_FS ? VTRACE_TLS : VTRACE_GS);
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
	const cs_x86_op *op = &k->op[i];
	struct x86_register reg = { 0 };
	struct x86_place p;
	uint8_t t;

	switch (op->type) {
	case X86_OP_IMM:
		return vtrace_const(k->m, (uint64_t)op->imm);
	case X86_OP_MEM:
		if (!x86_place(k, i, &p) || op->size > 8)
			return unknown_value(k);
		t = vtrace_temp(k->m);
		x86_load(k, op->size, t, &p);
		return t;
	case X86_OP_REG:
		reg = x86_register(op->reg);
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
	const cs_x86_op *op = &k->op[i];
	struct x86_register reg =
		op->type == X86_OP_REG ? x86_register(op->reg) : (struct x86_register){ 0 };

	return reg.kind == X86_GENERAL && reg.w >= 4 ? reg.number : vtrace_temp(k->m);
}

void x86_write(struct x86 *k, int i, uint8_t value)
{
	const cs_x86_op *op = &k->op[i];
	struct x86_register reg;
	struct x86_place p;

	if (op->type == X86_OP_MEM) {
		if (x86_place(k, i, &p) && op->size <= 8)
			x86_store(k, op->size, value, &p);
		else
			vtrace_make_imm(k->m, VTRACE_TAINT_MEMORY, 8, VTRACE_ZERO, VTRACE_ZERO, 1);
		return;
	}
	if (op->type != X86_OP_REG)
		return;
	reg = x86_register(op->reg);
	if (reg.kind == X86_HIGH || (reg.kind == X86_GENERAL && reg.w < 4))
		vtrace_make_imm(k->m, VTRACE_INS, reg.w, reg.number, value, 0)->x =
			reg.kind == X86_HIGH;
	else if (reg.kind == X86_GENERAL && reg.number != value)
		vtrace_make_imm(k->m, VTRACE_MOV, reg.w, reg.number, value, 0);
}

struct vtrace_uop *x86_make(struct x86 *k, enum vtrace_op op, uint8_t w, uint8_t dst, uint8_t a,
			    int i)
{
	uint8_t b;

	if (k->op[i].type == X86_OP_IMM)
		return vtrace_make_imm(k->m, op, w, dst, a, (uint64_t)k->op[i].imm);
	b = x86_read(k, i);
	return vtrace_make(k->m, op, w, dst, a, b);
}

/* ---- what is not modelled -------------------------------------------------------------------- */

static void taint_reg(struct x86 *k, unsigned int capstone)
{
	struct x86_register reg = x86_register(capstone);

	if (reg.kind == X86_NOTHING)
		return;
	vtrace_taint(k->m, reg.number);
	for (uint8_t c = 1; reg.kind == X86_VECTOR && c < 4; c++)
		vtrace_taint(k->m, reg.number + c);
}

static void taint_memory(struct x86 *k, int i)
{
	uint8_t t = vtrace_temp(k->m), size = k->op[i].size;
	struct x86_place p;

	if (!size || size > 64 || !x86_place(k, i, &p)) {
		vtrace_make_imm(k->m, VTRACE_TAINT_MEMORY, 8, VTRACE_ZERO, VTRACE_ZERO, 1);
		return;
	}
	vtrace_taint(k->m, t);
	for (uint8_t w; size; size -= w, p.imm += w) {
		w = size >= 8 ? 8 : size >= 4 ? 4 : size >= 2 ? 2 : 1;
		x86_store(k, w, t, &p);
	}
}

/* Those that capstone does not say it of. */
static bool writes_flags(const cs_insn *insn)
{
	static const char *const names[] = { "kortest",	 "ktest",     "ptest",	   "vptest",
					     "vtest",	 "vcomis",    "vucomis",   "comis",
					     "ucomis",	 "vpcmpestr", "vpcmpistr", "pcmpestr",
					     "pcmpistr", "fcomi",     "fucomi",	   "fcompi" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(insn->mnemonic, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Saves more than its operand says, or where that does not. */
static bool stores_much(const cs_insn *insn)
{
	return !strncmp(insn->mnemonic, "xsave", 5) || !strncmp(insn->mnemonic, "fxsave", 6) ||
	       !strncmp(insn->mnemonic, "fnsave", 6) || !strncmp(insn->mnemonic, "fnstenv", 7) ||
	       strstr(insn->mnemonic, "scatter") || strstr(insn->mnemonic, "maskmov");
}

void x86_unknown(struct x86 *k)
{
	bool flags = writes_flags(k->insn);
	uint8_t nr_read, nr_written;
	cs_regs read, written;

	if (stores_much(k->insn))
		vtrace_make_imm(k->m, VTRACE_TAINT_MEMORY, 8, VTRACE_ZERO, VTRACE_ZERO, 1);
	for (int i = 0; i < k->nr_ops; i++) {
		/* Of some nothing is said, or not all: the first operand is what is written. */
		bool wrote = k->op[i].access & CS_AC_WRITE || i == 0;

		if (wrote && k->op[i].type == X86_OP_MEM)
			taint_memory(k, i);
		else if (k->op[i].type == X86_OP_REG &&
			 (wrote || x86_register(k->op[i].reg).kind == X86_MASK))
			taint_reg(k, k->op[i].reg);
	}
	if (cs_regs_access(k->d->handle, k->insn, read, &nr_read, written, &nr_written))
		nr_written = 0, flags = true;
	for (int i = 0; i < nr_written; i++) {
		flags |= written[i] == X86_REG_EFLAGS;
		taint_reg(k, written[i]);
	}
	if (flags)
		vtrace_make_imm(k->m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO,
				VTRACE_FLAGS);
}
