/* SPDX-License-Identifier: BSD-2-Clause */
/* RISC-V, 64 bits with compressed instructions, from the encodings of the unprivileged manual. */
#include "machine.h"

static uint32_t bits(uint32_t w, unsigned int at, unsigned int nr)
{
	return w >> at & ((1u << nr) - 1);
}

static int64_t sign(uint32_t v, unsigned int nr)
{
	return (int32_t)(v << (32 - nr)) >> (32 - nr);
}

/* Register 0 is zero. */
static uint64_t gpr(uint32_t n)
{
	return n ? 1ull << n : 0;
}

/* The registers of the short forms: 8 to 15. */
static uint8_t small(uint32_t w, unsigned int at)
{
	return (uint8_t)(8 + bits(w, at, 3));
}

/* An instruction taken apart; rd, rs1, rs2: INSN_NO_REGISTER where it has none. */
struct parts {
	uint32_t w, op, f3;
	uint8_t len, rd, rs1, rs2;
	int64_t imm;
};

enum {
	OP_LOAD = 0x03,
	OP_LOAD_FP = 0x07,
	OP_FENCE = 0x0f,
	OP_IMM = 0x13,
	OP_AUIPC = 0x17,
	OP_IMM32 = 0x1b,
	OP_STORE = 0x23,
	OP_STORE_FP = 0x27,
	OP_AMO = 0x2f,
	OP_REG = 0x33,
	OP_LUI = 0x37,
	OP_REG32 = 0x3b,
	OP_FMADD = 0x43,
	OP_FNMADD = 0x4f,
	OP_FP = 0x53,
	OP_BRANCH = 0x63,
	OP_JALR = 0x67,
	OP_JAL = 0x6f,
	OP_SYSTEM = 0x73,
};

static int64_t branch_distance(uint32_t w)
{
	return sign(bits(w, 31, 1) << 12 | bits(w, 7, 1) << 11 | bits(w, 25, 6) << 5 |
			    bits(w, 8, 4) << 1,
		    13);
}

static int64_t jal_distance(uint32_t w)
{
	return sign(bits(w, 31, 1) << 20 | bits(w, 12, 8) << 12 | bits(w, 20, 1) << 11 |
			    bits(w, 21, 10) << 1,
		    21);
}

static void take_apart(struct parts *p)
{
	uint32_t w = p->w;

	p->op = w & 0x7f;
	p->f3 = bits(w, 12, 3);
	p->rd = (uint8_t)bits(w, 7, 5);
	p->rs1 = (uint8_t)bits(w, 15, 5);
	p->rs2 = (uint8_t)bits(w, 20, 5);
	p->imm = sign(bits(w, 20, 12), 12);
	switch (p->op) {
	case OP_AUIPC:
	case OP_LUI:
		p->imm = (int32_t)(w & 0xfffff000);
		p->rs1 = p->rs2 = INSN_NO_REGISTER;
		break;
	case OP_JAL:
		p->imm = jal_distance(w);
		p->rs1 = p->rs2 = INSN_NO_REGISTER;
		break;
	case OP_BRANCH:
		p->imm = branch_distance(w);
		p->rd = INSN_NO_REGISTER;
		break;
	case OP_STORE:
	case OP_STORE_FP:
		p->imm = sign(bits(w, 25, 7) << 5 | bits(w, 7, 5), 12);
		p->rd = INSN_NO_REGISTER;
		break;
	case OP_LOAD:
	case OP_LOAD_FP:
	case OP_IMM:
	case OP_IMM32:
	case OP_JALR:
		p->rs2 = INSN_NO_REGISTER;
		break;
	default:
		break;
	}
}

/* ---- compressed ------------------------------------------------------------------------------ */

static void set(struct parts *p, uint32_t op, uint32_t f3, uint8_t rd, uint8_t rs1, uint8_t rs2,
		int64_t imm)
{
	p->op = op;
	p->f3 = f3;
	p->rd = rd;
	p->rs1 = rs1;
	p->rs2 = rs2;
	p->imm = imm;
}

enum { NONE = INSN_NO_REGISTER };

static int64_t word_offset(uint32_t w)
{
	return bits(w, 5, 1) << 6 | bits(w, 10, 3) << 3 | bits(w, 6, 1) << 2;
}

static int64_t double_offset(uint32_t w)
{
	return bits(w, 5, 2) << 6 | bits(w, 10, 3) << 3;
}

/* Zcb: lbu, lhu, lh, sb, sh */
static bool compressed_small(struct parts *p)
{
	uint32_t w = p->w, kind = bits(w, 10, 3), half = bits(w, 5, 1) << 1;
	uint32_t byte = half | bits(w, 6, 1);

	switch (kind) {
	case 0:
		set(p, OP_LOAD, 4, small(w, 2), small(w, 7), NONE, byte);
		return true;
	case 1:
		set(p, OP_LOAD, bits(w, 6, 1) ? 1 : 5, small(w, 2), small(w, 7), NONE, half);
		return true;
	case 2:
		set(p, OP_STORE, 0, NONE, small(w, 7), small(w, 2), byte);
		return true;
	case 3:
		set(p, OP_STORE, 1, NONE, small(w, 7), small(w, 2), half);
		return !bits(w, 6, 1);
	default:
		return false;
	}
}

static bool compressed_0(struct parts *p, uint32_t f3)
{
	uint32_t w = p->w;

	switch (f3) {
	case 0: /* addi4spn */
		set(p, OP_IMM, 0, small(w, 2), 2, NONE,
		    bits(w, 7, 4) << 6 | bits(w, 11, 2) << 4 | bits(w, 5, 1) << 3 |
			    bits(w, 6, 1) << 2);
		return (w & 0xffff) != 0;
	case 1:
		set(p, OP_LOAD_FP, 3, small(w, 2), small(w, 7), NONE, double_offset(w));
		return true;
	case 2:
		set(p, OP_LOAD, 2, small(w, 2), small(w, 7), NONE, word_offset(w));
		return true;
	case 3:
		set(p, OP_LOAD, 3, small(w, 2), small(w, 7), NONE, double_offset(w));
		return true;
	case 4:
		return compressed_small(p);
	case 5:
		set(p, OP_STORE_FP, 3, NONE, small(w, 7), small(w, 2), double_offset(w));
		return true;
	case 6:
		set(p, OP_STORE, 2, NONE, small(w, 7), small(w, 2), word_offset(w));
		return true;
	default:
		set(p, OP_STORE, 3, NONE, small(w, 7), small(w, 2), double_offset(w));
		return true;
	}
}

/* Zcb: zext.b, sext.b, zext.h, sext.h, zext.w, not */
static void compressed_unary(struct parts *p, uint8_t rd)
{
	uint32_t kind = bits(p->w, 2, 3);
	bool masks = kind == 0 || kind == 2; /* and, though no andi holds as much; else as xori */

	set(p, OP_IMM, masks ? 7 : 4, rd, rd, NONE, kind == 0 ? 0xff : kind == 2 ? 0xffff : -1);
	p->w = 0;
}

static void compressed_arithmetic(struct parts *p)
{
	uint32_t w = p->w, kind = bits(w, 10, 2);
	uint8_t rd = small(w, 7);
	int64_t imm = sign(bits(w, 12, 1) << 5 | bits(w, 2, 5), 6);

	if (kind == 3 && bits(w, 12, 1) && bits(w, 5, 2) == 3) {
		compressed_unary(p, rd);
		return;
	}
	if (kind == 3 && bits(w, 12, 1) && bits(w, 5, 2) == 2) { /* Zcb: mul */
		set(p, OP_REG, 0, rd, rd, small(w, 2), 0);
		p->w = 0x02000000;
		return;
	}
	if (kind == 3) {
		static const uint8_t f3[] = { 0, 4, 6, 7 };

		set(p, bits(w, 12, 1) ? OP_REG32 : OP_REG, bits(w, 12, 1) ? 0 : f3[bits(w, 5, 2)],
		    rd, rd, small(w, 2), 0);
		p->w = bits(w, 5, 2) == 0 ? 0x40000000 : 0; /* sub, subw */
		return;
	}
	set(p, OP_IMM, kind == 2 ? 7 : 5, rd, rd, NONE, kind == 2 ? imm : imm & 63);
	p->w = kind == 1 ? 0x40000000 : 0;
}

static int64_t compressed_jump(uint32_t w)
{
	return sign(bits(w, 12, 1) << 11 | bits(w, 8, 1) << 10 | bits(w, 9, 2) << 8 |
			    bits(w, 6, 1) << 7 | bits(w, 7, 1) << 6 | bits(w, 2, 1) << 5 |
			    bits(w, 11, 1) << 4 | bits(w, 3, 3) << 1,
		    12);
}

static bool compressed_1(struct parts *p, uint32_t f3)
{
	uint32_t w = p->w;
	uint8_t rd = (uint8_t)bits(w, 7, 5);
	int64_t imm = sign(bits(w, 12, 1) << 5 | bits(w, 2, 5), 6);

	switch (f3) {
	case 0:
		set(p, OP_IMM, 0, rd, rd, NONE, imm);
		return true;
	case 1:
		set(p, OP_IMM32, 0, rd, rd, NONE, imm);
		return rd != 0;
	case 2:
		set(p, OP_IMM, 0, rd, 0, NONE, imm);
		return true;
	case 3:
		if (rd == 2)
			set(p, OP_IMM, 0, 2, 2, NONE,
			    sign(bits(w, 12, 1) << 9 | bits(w, 3, 2) << 7 | bits(w, 5, 1) << 6 |
					 bits(w, 2, 1) << 5 | bits(w, 6, 1) << 4,
				 10));
		else
			set(p, OP_LUI, 0, rd, NONE, NONE, imm * 4096);
		return imm != 0 || rd == 2;
	case 4:
		compressed_arithmetic(p);
		return true;
	case 5:
		set(p, OP_JAL, 0, 0, NONE, NONE, compressed_jump(w));
		return true;
	default:
		set(p, OP_BRANCH, f3 - 6, NONE, small(w, 7), 0,
		    sign(bits(w, 12, 1) << 8 | bits(w, 5, 2) << 6 | bits(w, 2, 1) << 5 |
				 bits(w, 10, 2) << 3 | bits(w, 3, 2) << 1,
			 9));
		return true;
	}
}

static bool compressed_2(struct parts *p, uint32_t f3)
{
	uint32_t w = p->w;
	uint8_t rd = (uint8_t)bits(w, 7, 5), rs2 = (uint8_t)bits(w, 2, 5);

	switch (f3) {
	case 0:
		set(p, OP_IMM, 1, rd, rd, NONE, bits(w, 12, 1) << 5 | bits(w, 2, 5));
		return true;
	case 1:
		set(p, OP_LOAD_FP, 3, rd, 2, NONE,
		    bits(w, 2, 3) << 6 | bits(w, 12, 1) << 5 | bits(w, 5, 2) << 3);
		return true;
	case 2:
		set(p, OP_LOAD, 2, rd, 2, NONE,
		    bits(w, 2, 2) << 6 | bits(w, 12, 1) << 5 | bits(w, 4, 3) << 2);
		return rd != 0;
	case 3:
		set(p, OP_LOAD, 3, rd, 2, NONE,
		    bits(w, 2, 3) << 6 | bits(w, 12, 1) << 5 | bits(w, 5, 2) << 3);
		return rd != 0;
	case 4:
		if (rs2)
			set(p, OP_REG, 0, rd, bits(w, 12, 1) ? rd : 0, rs2, 0);
		else if (rd)
			set(p, OP_JALR, 0, (uint8_t)bits(w, 12, 1), rd, NONE, 0);
		else
			set(p, OP_SYSTEM, 0, 0, 0, NONE, 1); /* ebreak */
		p->w = bits(w, 12, 1) && !rs2 && !rd ? 0x00100073 : 0;
		return rs2 || rd || bits(w, 12, 1);
	case 5:
		set(p, OP_STORE_FP, 3, NONE, 2, rs2, bits(w, 7, 3) << 6 | bits(w, 10, 3) << 3);
		return true;
	case 6:
		set(p, OP_STORE, 2, NONE, 2, rs2, bits(w, 7, 2) << 6 | bits(w, 9, 4) << 2);
		return true;
	default:
		set(p, OP_STORE, 3, NONE, 2, rs2, bits(w, 7, 3) << 6 | bits(w, 10, 3) << 3);
		return true;
	}
}

/* For a short form, p->w keeps only the bits 25 to 31 of its long form. */
static bool parse(const uint8_t *code, size_t len, struct parts *p)
{
	*p = (struct parts){ .rd = NONE, .rs1 = NONE, .rs2 = NONE };
	if (len < 2)
		return false;
	p->w = (uint32_t)code[0] | (uint32_t)code[1] << 8;
	if ((p->w & 3) != 3) {
		uint32_t quadrant = p->w & 3, f3 = bits(p->w, 13, 3), w = p->w;
		bool known = quadrant == 0   ? compressed_0(p, f3)
			     : quadrant == 1 ? compressed_1(p, f3)
					     : compressed_2(p, f3);

		p->len = 2;
		if (p->w == w)
			p->w = 0;
		return known;
	}
	if (len < 4 || (p->w & 0x1f) == 0x1f)
		return false;
	p->w |= (uint32_t)code[2] << 16 | (uint32_t)code[3] << 24;
	p->len = 4;
	take_apart(p);
	return true;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static void add_memory(const struct parts *p, uint16_t kinds, struct insn *out)
{
	bool fp = p->op == OP_LOAD_FP || p->op == OP_STORE_FP;

	out->kinds = (uint16_t)(kinds | (fp ? INSN_VECTOR : 0));
	out->base = p->rs1;
	out->reads.gpr |= gpr(p->rs1);
	if (kinds & INSN_LOAD && fp)
		out->writes.vector |= 1ull << p->rd;
	else if (kinds & INSN_LOAD)
		out->writes.gpr |= gpr(p->rd);
	if (kinds == INSN_STORE && fp)
		out->reads.vector |= 1ull << p->rs2;
	else if (kinds & INSN_STORE)
		out->reads.gpr |= gpr(p->rs2);
}

static void add_jump(const struct parts *p, struct insn *out)
{
	bool links = p->rd == 1 || p->rd == 5;

	out->writes.gpr |= gpr(p->rd);
	if (p->op == OP_JAL) {
		out->flow = links ? INSN_CALL : INSN_JUMP;
		out->target = out->vaddr + (uint64_t)p->imm;
		return;
	}
	out->reads.gpr |= gpr(p->rs1);
	if (p->rd)
		out->flow = INSN_INDIRECT_CALL;
	else
		out->flow = p->rs1 == 1 || p->rs1 == 5 ? INSN_RETURN : INSN_INDIRECT_JUMP;
}

static void add_fp(const struct parts *p, struct insn *out)
{
	uint32_t f7 = bits(p->w, 25, 7), kind = f7 >> 2;

	out->kinds = INSN_FP | INSN_VECTOR;
	if (kind == 3 || kind == 11)
		out->kinds |= INSN_FP_DIVIDE;
	if (kind == 26 || kind == 30)
		out->reads.gpr |= gpr(p->rs1);
	else
		out->reads.vector |= 1ull << p->rs1;
	if (kind < 8 || kind == 20)
		out->reads.vector |= 1ull << p->rs2;
	if (kind == 20 || kind == 24 || kind == 28)
		out->writes.gpr |= gpr(p->rd);
	else
		out->writes.vector |= 1ull << p->rd;
}

static void add_arithmetic(const struct parts *p, struct insn *out)
{
	if (p->rs1 != NONE)
		out->reads.gpr |= gpr(p->rs1);
	if (p->rs2 != NONE)
		out->reads.gpr |= gpr(p->rs2);
	out->writes.gpr |= gpr(p->rd);
	if ((p->op == OP_REG || p->op == OP_REG32) && bits(p->w, 25, 7) == 1)
		out->kinds = p->f3 >= 4 ? INSN_DIVIDE : INSN_MULTIPLY;
	if (p->op == OP_IMM && !p->rd && !p->imm)
		out->kinds = INSN_PADDING;
}

static void add_system(const struct parts *p, struct insn *out)
{
	out->kinds = INSN_SERIALIZE;
	if (p->w == 0x00100073) /* ebreak */
		out->flow = INSN_TRAP;
	else if (p->w == 0x10200073 || p->w == 0x30200073) /* sret, mret */
		out->flow = INSN_RETURN;
	if (p->f3) {
		out->reads.gpr |= p->f3 < 4 ? gpr(p->rs1) : 0;
		out->writes.gpr |= gpr(p->rd);
	}
}

static bool riscv_decode(void *state, const uint8_t *code, size_t len, struct insn *out)
{
	struct parts p;

	(void)state;
	if (!parse(code, len, &p))
		return false;
	out->len = p.len;
	switch (p.op) {
	case OP_LOAD:
	case OP_LOAD_FP:
		add_memory(&p, INSN_LOAD, out);
		return true;
	case OP_STORE:
	case OP_STORE_FP:
		add_memory(&p, INSN_STORE, out);
		return true;
	case OP_AMO:
		add_memory(&p, INSN_LOAD | INSN_STORE | INSN_ATOMIC, out);
		return true;
	case OP_FENCE:
		out->kinds = p.f3 ? INSN_SERIALIZE : INSN_BARRIER;
		return true;
	case OP_JAL:
	case OP_JALR:
		add_jump(&p, out);
		return true;
	case OP_BRANCH:
		out->flow = INSN_BRANCH;
		out->target = out->vaddr + (uint64_t)p.imm;
		out->reads.gpr = gpr(p.rs1) | gpr(p.rs2);
		return true;
	case OP_SYSTEM:
		add_system(&p, out);
		return true;
	case OP_FP:
		add_fp(&p, out);
		return true;
	case OP_IMM:
	case OP_IMM32:
	case OP_REG:
	case OP_REG32:
	case OP_LUI:
	case OP_AUIPC:
		add_arithmetic(&p, out);
		return true;
	default:
		break;
	}
	if (p.op < OP_FMADD || p.op > OP_FNMADD || (p.op & 3) != 3)
		return p.op == 0x57; /* vectors */
	out->kinds = INSN_FP | INSN_VECTOR;
	out->reads.vector = 1ull << p.rs1 | 1ull << p.rs2 | 1ull << bits(p.w, 27, 5);
	out->writes.vector = 1ull << p.rd;
	return true;
}

/* ---- what it computes ------------------------------------------------------------------------ */

static void op_immediate(const struct parts *p, struct insn_op *out)
{
	out->known = true;
	switch (p->f3) {
	case 0: /* addi */
		out->a = p->rs1;
		out->disp = p->imm;
		out->size = p->op == OP_IMM32 ? 4 : 8;
		out->sign = p->op == OP_IMM32;
		return;
	case 1: /* slli */
		out->known = (p->imm & 63) <= 6;
		out->b = p->rs1;
		out->scale = out->known ? (uint8_t)(1u << (p->imm & 63)) : 1;
		out->size = p->op == OP_IMM32 ? 4 : 8;
		out->sign = p->op == OP_IMM32;
		return;
	case 7: /* andi */
		out->known = false;
		if (p->imm >= 0)
			out->max = (uint64_t)p->imm;
		return;
	default:
		out->known = false;
	}
}

static void op_load(const struct parts *p, struct insn_op *out)
{
	out->known = out->load = true;
	out->a = p->rs1;
	out->disp = p->imm;
	out->size = (uint8_t)(1u << (p->f3 & 3));
	out->sign = !(p->f3 & 4);
	if (!out->sign && out->size < 4)
		out->max = (1ull << (8 * out->size)) - 1;
}

/* Register 0 reads as zero, which as no register it does too. */
static uint8_t unless_zero(uint8_t reg)
{
	return reg ? reg : INSN_NO_REGISTER;
}

static void riscv_op(void *state, const uint8_t *code, size_t len, uint64_t vaddr,
		     struct insn_op *out)
{
	struct parts p;

	(void)state;
	if (!parse(code, len, &p) || p.rd == NONE)
		return;
	out->dst = p.rd;
	if (p.op == OP_IMM || p.op == OP_IMM32) {
		op_immediate(&p, out);
	} else if (p.op == OP_LOAD) {
		op_load(&p, out);
	} else if (p.op == OP_AUIPC || p.op == OP_LUI) {
		out->known = true;
		out->disp = p.imm + (p.op == OP_AUIPC ? (int64_t)vaddr : 0);
	} else if ((p.op == OP_REG || p.op == OP_REG32) && !p.f3 && !bits(p.w, 25, 7)) { /* add */
		out->known = true;
		out->a = p.rs1;
		out->b = p.rs2;
		out->size = p.op == OP_REG32 ? 4 : 8;
		out->sign = p.op == OP_REG32;
	} else if (p.op == OP_JALR && !p.rd) {
		out->known = true;
		out->dst = INSN_TARGET;
		out->a = p.rs1;
		out->disp = p.imm;
	}
	out->a = unless_zero(out->a);
	out->b = unless_zero(out->b);
	if (!out->dst)
		out->dst = INSN_NO_REGISTER;
}

/* bltu and bgeu compare two registers, of which one holds the number of cases. */
static enum insn_condition riscv_condition(const uint8_t *code, size_t len, struct insn_op *op)
{
	struct parts p;

	if (!parse(code, len, &p) || p.op != OP_BRANCH || p.f3 < 6)
		return INSN_OTHER;
	op->compare = op->with_b = true;
	op->a = unless_zero(p.rs1);
	op->b = unless_zero(p.rs2);
	return p.f3 == 6 ? INSN_BELOW : INSN_ABOVE_EQUAL;
}

/* Register 2 is the stack pointer. */
static int riscv_stack_move(void *state, const uint8_t *code, size_t len)
{
	struct insn_op op = INSN_OP_UNKNOWN;

	riscv_op(state, code, len, 0, &op);
	if (op.dst != 2 || op.a != 2 || op.load)
		return 0;
	return op.disp > 0 ? 1 : -1;
}

static uint8_t riscv_step(const uint8_t *code)
{
	return (code[0] & 3) == 3 ? 4 : 2;
}

const struct insn_machine insn_riscv = {
	.decode = riscv_decode,
	.op = riscv_op,
	.condition = riscv_condition,
	.stack_move = riscv_stack_move,
	.step = riscv_step,
	.call_writes = INSN_FLAGS | 0xf003fce2,
};
