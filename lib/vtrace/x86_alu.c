/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions that compute become micro-ops here: sums, products, bits. */
#include "x86_internal.h"

/* ---- arithmetic ------------------------------------------------------------------------------ */

static bool is_same_register(const struct x86 *k)
{
	return k->nr_ops == 2 && k->op[0]->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       k->op[1]->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       k->op[0]->reg.value == k->op[1]->reg.value;
}

/* Operand @i, as b: its immediate value or its register. */
static struct vtrace_uop *make(struct x86 *k, enum vtrace_op op, uint8_t w, uint8_t dst, uint8_t a,
			       int i)
{
	uint8_t b;

	if (k->op[i]->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return vtrace_make_imm(k->m, op, w, dst, a, k->op[i]->imm.value.u);
	b = x86_read(k, i);
	return vtrace_make(k->m, op, w, dst, a, b);
}

/* dst = dst OP src. */
static void alu(struct x86 *k, enum vtrace_op op, enum vtrace_set set, enum vtrace_class class)
{
	uint8_t w = x86_size(k, 0), dst = x86_target(k, 0), a;

	x86_class_of_change(k, class);
	/* The result is 0 for any value. */
	if (is_same_register(k) && (op == VTRACE_XOR || op == VTRACE_SUB)) {
		vtrace_make(k->m, op, w, dst, VTRACE_ZERO, VTRACE_ZERO)->set = set;
	} else {
		a = x86_read(k, 0);
		make(k, op, w, dst, a, 1)->set = set;
	}
	x86_write(k, 0, dst);
}

/* The flags alone. */
static void compare(struct x86 *k, enum vtrace_op op, enum vtrace_set set)
{
	uint8_t a = x86_read(k, 0);

	k->m->class = VTRACE_CLASS_COMPARE;
	make(k, op, x86_size(k, 0), VTRACE_ZERO, a, 1)->set = set;
}

static void unary(struct x86 *k, enum vtrace_op op, enum vtrace_set set, uint64_t imm)
{
	uint8_t w = x86_size(k, 0), dst = x86_target(k, 0), a = x86_read(k, 0);

	x86_class_of_change(k, VTRACE_CLASS_ADD);
	vtrace_make_imm(k->m, op, w, dst, a, imm)->set = set;
	x86_write(k, 0, dst);
}

static void negate(struct x86 *k)
{
	uint8_t w = x86_size(k, 0), dst = x86_target(k, 0), a = x86_read(k, 0);

	x86_class_of_change(k, VTRACE_CLASS_ADD);
	vtrace_make(k->m, VTRACE_SUB, w, dst, VTRACE_ZERO, a)->set = VTRACE_SET_SUB;
	x86_write(k, 0, dst);
}

static void shift(struct x86 *k, enum vtrace_op op, enum vtrace_set set)
{
	uint8_t w = x86_size(k, 0), dst = x86_target(k, 0), a = x86_read(k, 0);

	x86_class_of_change(k, VTRACE_CLASS_SHIFT);
	if (k->nr_ops < 2)
		vtrace_make_imm(k->m, op, w, dst, a, 1)->set = set;
	else
		make(k, op, w, dst, a, 1)->set = set;
	x86_write(k, 0, dst);
}

static void double_shift(struct x86 *k, bool left)
{
	uint8_t w = x86_size(k, 0), dst, a, b;
	uint64_t n = k->op[2]->imm.value.u & (w == 8 ? 63 : 31);

	if (k->op[2]->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || w < 4 || !n) {
		x86_unknown(k);
		return;
	}
	x86_class_of_change(k, VTRACE_CLASS_SHIFT);
	a = x86_read(k, 0);
	b = x86_read(k, 1);
	dst = x86_target(k, 0);
	vtrace_make(k->m, VTRACE_FUNNEL, w, dst, left ? a : b, left ? b : a)->imm =
		left ? 8u * w - n : n;
	vtrace_make_imm(k->m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO, VTRACE_FLAGS);
	x86_write(k, 0, dst);
}

static void three_operands(struct x86 *k, enum vtrace_op op, enum vtrace_class class)
{
	uint8_t a = x86_read(k, 1);

	k->m->class = class;
	make(k, op, x86_size(k, 0), x86_target(k, 0), a, 2);
}

static void and_not(struct x86 *k)
{
	uint8_t a = x86_read(k, 1), b = x86_read(k, 2);

	k->m->class = VTRACE_CLASS_LOGIC;
	vtrace_make(k->m, VTRACE_ANDN, x86_size(k, 0), x86_target(k, 0), b, a)->set =
		VTRACE_SET_LOGIC;
	vtrace_make_imm(k->m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO, VTRACE_P);
}

/* The lowest bit set, without it, or up to it. */
static void lowest_bit(struct x86 *k, enum vtrace_op op, bool negated)
{
	uint8_t w = x86_size(k, 0), a = x86_read(k, 1), t = vtrace_temp(k->m);
	struct vtrace_uop *u;

	k->m->class = VTRACE_CLASS_LOGIC;
	if (negated)
		vtrace_make(k->m, VTRACE_SUB, w, t, VTRACE_ZERO, a);
	else
		vtrace_make_imm(k->m, VTRACE_SUB, w, t, a, 1);
	u = vtrace_make(k->m, op, w, x86_target(k, 0), a, t);
	u->set = VTRACE_SET_BLSR;
	u->x = negated;
}

static void zero_high_bits(struct x86 *k)
{
	uint8_t w = x86_size(k, 0), a = x86_read(k, 1), b = x86_read(k, 2);
	uint8_t n = vtrace_temp(k->m), cut = vtrace_temp(k->m), all = vtrace_temp(k->m), ones;
	uint8_t dst = x86_target(k, 0);

	k->m->class = VTRACE_CLASS_LOGIC;
	ones = vtrace_const(k->m, UINT64_MAX);
	vtrace_make_imm(k->m, VTRACE_AND, 8, n, b, 0xff);
	vtrace_make(k->m, VTRACE_SHL, w, cut, ones, n);
	vtrace_make(k->m, VTRACE_ANDN, w, cut, a, cut);
	vtrace_make_imm(k->m, VTRACE_SUB, 8, VTRACE_ZERO, n, 8u * w)->set = VTRACE_SET_SUB;
	vtrace_make(k->m, VTRACE_SETCC, 1, all, VTRACE_ZERO, VTRACE_ZERO)->set = 3;
	vtrace_make(k->m, VTRACE_SELECT, w, dst, cut, a)->set = 2;
	/* C: there are not so many bits; the others as of a sum with 0. */
	vtrace_make(k->m, VTRACE_SUB, 8, VTRACE_ZERO, VTRACE_ZERO, all)->set = VTRACE_SET_SUB;
	vtrace_make_imm(k->m, VTRACE_ADD, w, VTRACE_ZERO, dst, 0)->set = VTRACE_SET_INC;
	vtrace_make_imm(k->m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO, VTRACE_P);
}

/* ---- multiplication and division ------------------------------------------------------------- */

static void multiply_byte(struct x86 *k, bool is_signed)
{
	uint8_t src = x86_read(k, 0), a = vtrace_temp(k->m), b = vtrace_temp(k->m);
	uint8_t t = vtrace_temp(k->m);

	if (is_signed) {
		vtrace_make_imm(k->m, VTRACE_SEXT, 2, a, RAX, 0)->x = 1;
		vtrace_make_imm(k->m, VTRACE_SEXT, 2, b, src, 0)->x = 1;
	} else {
		vtrace_make_imm(k->m, VTRACE_EXT, 1, a, RAX, 0);
		vtrace_make_imm(k->m, VTRACE_EXT, 1, b, src, 0);
	}
	vtrace_make(k->m, VTRACE_MUL, 2, t, a, b);
	vtrace_make(k->m, is_signed ? VTRACE_MULHS : VTRACE_MULHU, 1, VTRACE_ZERO, a, b)->set =
		is_signed ? VTRACE_SET_MUL : VTRACE_SET_MULU;
	vtrace_make_imm(k->m, VTRACE_INS, 2, RAX, t, 0);
}

/* rdx:rax = rax * src. */
static void multiply_wide(struct x86 *k, bool is_signed)
{
	uint8_t w = x86_size(k, 0), src, high, low;

	k->m->class = VTRACE_CLASS_MULTIPLY;
	if (w == 1) {
		multiply_byte(k, is_signed);
		return;
	}
	src = x86_read(k, 0);
	high = vtrace_temp(k->m);
	low = vtrace_temp(k->m);
	vtrace_make(k->m, is_signed ? VTRACE_MULHS : VTRACE_MULHU, w, high, RAX, src)->set =
		is_signed ? VTRACE_SET_MUL : VTRACE_SET_MULU;
	vtrace_make(k->m, VTRACE_MUL, w, low, RAX, src);
	vtrace_make_imm(k->m, w == 2 ? VTRACE_INS : VTRACE_MOV, w, RAX, low, 0);
	vtrace_make_imm(k->m, w == 2 ? VTRACE_INS : VTRACE_MOV, w, RDX, high, 0);
}

static void multiply(struct x86 *k, bool is_signed)
{
	uint8_t w = x86_size(k, 0), a, dst;

	if (k->nr_ops == 1) {
		multiply_wide(k, is_signed);
		return;
	}
	k->m->class = VTRACE_CLASS_MULTIPLY;
	a = x86_read(k, k->nr_ops == 3);
	dst = x86_target(k, 0);
	make(k, VTRACE_MUL, w, dst, a, k->nr_ops - 1)->set = VTRACE_SET_MUL;
	x86_write(k, 0, dst);
}

static void multiply_without_flags(struct x86 *k)
{
	uint8_t w = x86_size(k, 0), src = x86_read(k, 2), high = vtrace_temp(k->m);

	k->m->class = VTRACE_CLASS_MULTIPLY;
	vtrace_make(k->m, VTRACE_MULHU, w, high, RDX, src);
	vtrace_make(k->m, VTRACE_MUL, w, x86_target(k, 1), RDX, src);
	x86_write(k, 0, high);
}

static void divide(struct x86 *k, bool is_signed)
{
	uint8_t w = x86_size(k, 0), src = x86_read(k, 0), high = RDX;
	uint8_t quot = vtrace_temp(k->m), rem = vtrace_temp(k->m);

	k->m->class = VTRACE_CLASS_DIVIDE;
	if (w == 1) {
		high = vtrace_temp(k->m);
		vtrace_make_imm(k->m, VTRACE_EXT, 1, high, RAX, 0)->x = 1;
	}
	vtrace_make(k->m, is_signed ? VTRACE_DIVS : VTRACE_DIVU, w, quot, RAX, src)->x = high;
	vtrace_make(k->m, is_signed ? VTRACE_REMS : VTRACE_REMU, w, rem, RAX, src)->x = high;
	vtrace_make_imm(k->m, w < 4 ? VTRACE_INS : VTRACE_MOV, w, RAX, quot, 0);
	if (w == 1)
		vtrace_make_imm(k->m, VTRACE_INS, 1, RAX, rem, 0)->x = 1;
	else
		vtrace_make_imm(k->m, w < 4 ? VTRACE_INS : VTRACE_MOV, w, RDX, rem, 0);
	vtrace_make_imm(k->m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO, VTRACE_FLAGS);
}

/* The sign of ax, eax, rax into dx, edx, rdx. */
static void sign_into_rdx(struct x86 *k, uint8_t w)
{
	uint8_t t = w == 2 ? vtrace_temp(k->m) : RDX;

	k->m->class = VTRACE_CLASS_SHIFT;
	vtrace_make_imm(k->m, VTRACE_SAR, w, t, RAX, 8u * w - 1);
	if (w == 2)
		vtrace_make_imm(k->m, VTRACE_INS, 2, RDX, t, 0);
}

static void sign_extend_rax(struct x86 *k, uint8_t w)
{
	uint8_t t = w == 2 ? vtrace_temp(k->m) : RAX;

	k->m->class = VTRACE_CLASS_MOVE;
	vtrace_make_imm(k->m, VTRACE_SEXT, w, t, RAX, 0)->x = w / 2;
	if (w == 2)
		vtrace_make_imm(k->m, VTRACE_INS, 2, RAX, t, 0);
}

/* ---- bits ------------------------------------------------------------------------------------ */

static void bit(struct x86 *k, enum vtrace_op change)
{
	uint8_t w = x86_size(k, 0), a, b, one, dst;

	/* A bit somewhere in memory. */
	if (k->op[0]->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    k->op[1]->type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		k->m->class = VTRACE_CLASS_MODIFY;
		vtrace_make_imm(k->m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO,
				VTRACE_FLAGS);
		if (change)
			vtrace_make_imm(k->m, VTRACE_TAINT_MEMORY, 8, VTRACE_ZERO, VTRACE_ZERO, 1);
		return;
	}
	x86_class_of_change(k, change ? VTRACE_CLASS_LOGIC : VTRACE_CLASS_COMPARE);
	a = x86_read(k, 0);
	b = vtrace_temp(k->m);
	vtrace_make_imm(k->m, VTRACE_AND, 8, b, x86_read(k, 1), 8u * w - 1);
	vtrace_make(k->m, VTRACE_BIT, w, VTRACE_ZERO, a, b);
	if (!change)
		return;
	one = vtrace_const(k->m, 1);
	vtrace_make(k->m, VTRACE_SHL, 8, one, one, b);
	dst = x86_target(k, 0);
	vtrace_make(k->m, change, w, dst, a, one);
	x86_write(k, 0, dst);
}

static void count_bits(struct x86 *k, enum vtrace_op op, enum vtrace_set set)
{
	uint8_t a = x86_read(k, 1), dst = x86_target(k, 0);

	k->m->class = VTRACE_CLASS_LOGIC;
	vtrace_make_imm(k->m, op, x86_size(k, 0), dst, a, 0)->set = set;
	x86_write(k, 0, dst);
}

/* bsf, bsr: of 0 the result is not known. */
static void find_bit(struct x86 *k, bool highest)
{
	uint8_t w = x86_size(k, 0), a = x86_read(k, 1), t = vtrace_temp(k->m);
	uint8_t none = vtrace_temp(k->m), dst = x86_target(k, 0);

	k->m->class = VTRACE_CLASS_LOGIC;
	vtrace_make_imm(k->m, highest ? VTRACE_CLZ : VTRACE_CTZ, w, t, a, 0)->set = VTRACE_SET_ZERO;
	if (highest)
		vtrace_make_imm(k->m, VTRACE_XOR, w, t, t, 8u * w - 1);
	vtrace_taint(k->m, none);
	vtrace_make(k->m, VTRACE_SELECT, w, dst, none, t)->set = 4;
	x86_write(k, 0, dst);
}

static void swap_bytes(struct x86 *k, int from)
{
	uint8_t w = x86_size(k, 0), a = x86_read(k, from), dst = x86_target(k, 0);

	k->m->class = VTRACE_CLASS_LOGIC;
	if (from == 0 && w < 4) {
		x86_unknown(k);
		return;
	}
	vtrace_make_imm(k->m, VTRACE_BSWAP, w, dst, a, 0);
	x86_write(k, 0, dst);
}

/* ---- which is which -------------------------------------------------------------------------- */

static bool arithmetic(struct x86 *k)
{
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
		alu(k, VTRACE_ADD, VTRACE_SET_ADD, VTRACE_CLASS_ADD);
		return true;
	case ZYDIS_MNEMONIC_ADC:
		alu(k, VTRACE_ADC, VTRACE_SET_ADD, VTRACE_CLASS_ADD);
		return true;
	case ZYDIS_MNEMONIC_SUB:
		alu(k, VTRACE_SUB, VTRACE_SET_SUB, VTRACE_CLASS_ADD);
		return true;
	case ZYDIS_MNEMONIC_SBB:
		alu(k, VTRACE_SBB, VTRACE_SET_SUB, VTRACE_CLASS_ADD);
		return true;
	case ZYDIS_MNEMONIC_AND:
		alu(k, VTRACE_AND, VTRACE_SET_LOGIC, VTRACE_CLASS_LOGIC);
		return true;
	case ZYDIS_MNEMONIC_OR:
		alu(k, VTRACE_OR, VTRACE_SET_LOGIC, VTRACE_CLASS_LOGIC);
		return true;
	case ZYDIS_MNEMONIC_XOR:
		alu(k, VTRACE_XOR, VTRACE_SET_LOGIC, VTRACE_CLASS_LOGIC);
		return true;
	case ZYDIS_MNEMONIC_CMP:
		compare(k, VTRACE_SUB, VTRACE_SET_SUB);
		return true;
	case ZYDIS_MNEMONIC_TEST:
		compare(k, VTRACE_AND, VTRACE_SET_LOGIC);
		return true;
	case ZYDIS_MNEMONIC_INC:
		unary(k, VTRACE_ADD, VTRACE_SET_INC, 1);
		return true;
	case ZYDIS_MNEMONIC_DEC:
		unary(k, VTRACE_SUB, VTRACE_SET_DEC, 1);
		return true;
	case ZYDIS_MNEMONIC_NOT:
		unary(k, VTRACE_XOR, VTRACE_SET_NONE, UINT64_MAX);
		return true;
	case ZYDIS_MNEMONIC_NEG:
		negate(k);
		return true;
	case ZYDIS_MNEMONIC_MUL:
		multiply(k, false);
		return true;
	case ZYDIS_MNEMONIC_IMUL:
		multiply(k, true);
		return true;
	case ZYDIS_MNEMONIC_MULX:
		multiply_without_flags(k);
		return true;
	case ZYDIS_MNEMONIC_DIV:
		divide(k, false);
		return true;
	case ZYDIS_MNEMONIC_IDIV:
		divide(k, true);
		return true;
	case ZYDIS_MNEMONIC_CDQE:
		sign_extend_rax(k, 8);
		return true;
	case ZYDIS_MNEMONIC_CWDE:
		sign_extend_rax(k, 4);
		return true;
	case ZYDIS_MNEMONIC_CBW:
		sign_extend_rax(k, 2);
		return true;
	case ZYDIS_MNEMONIC_CQO:
		sign_into_rdx(k, 8);
		return true;
	case ZYDIS_MNEMONIC_CDQ:
		sign_into_rdx(k, 4);
		return true;
	case ZYDIS_MNEMONIC_CWD:
		sign_into_rdx(k, 2);
		return true;
	default:
		return false;
	}
}

static bool bits(struct x86 *k)
{
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_SHL:
		shift(k, VTRACE_SHL, VTRACE_SET_SHL);
		return true;
	case ZYDIS_MNEMONIC_SHR:
		shift(k, VTRACE_SHR, VTRACE_SET_SHR);
		return true;
	case ZYDIS_MNEMONIC_SAR:
		shift(k, VTRACE_SAR, VTRACE_SET_SAR);
		return true;
	case ZYDIS_MNEMONIC_ROL:
		shift(k, VTRACE_ROL, VTRACE_SET_ROL);
		return true;
	case ZYDIS_MNEMONIC_ROR:
		shift(k, VTRACE_ROR, VTRACE_SET_ROR);
		return true;
	case ZYDIS_MNEMONIC_SHLD:
		double_shift(k, true);
		return true;
	case ZYDIS_MNEMONIC_SHRD:
		double_shift(k, false);
		return true;
	case ZYDIS_MNEMONIC_SHLX:
		three_operands(k, VTRACE_SHL, VTRACE_CLASS_SHIFT);
		return true;
	case ZYDIS_MNEMONIC_SHRX:
		three_operands(k, VTRACE_SHR, VTRACE_CLASS_SHIFT);
		return true;
	case ZYDIS_MNEMONIC_SARX:
		three_operands(k, VTRACE_SAR, VTRACE_CLASS_SHIFT);
		return true;
	case ZYDIS_MNEMONIC_RORX:
		three_operands(k, VTRACE_ROR, VTRACE_CLASS_SHIFT);
		return true;
	case ZYDIS_MNEMONIC_ANDN:
		and_not(k);
		return true;
	case ZYDIS_MNEMONIC_BLSR:
		lowest_bit(k, VTRACE_AND, false);
		return true;
	case ZYDIS_MNEMONIC_BLSMSK:
		lowest_bit(k, VTRACE_XOR, false);
		return true;
	case ZYDIS_MNEMONIC_BLSI:
		lowest_bit(k, VTRACE_AND, true);
		return true;
	case ZYDIS_MNEMONIC_BZHI:
		zero_high_bits(k);
		return true;
	case ZYDIS_MNEMONIC_BT:
		bit(k, VTRACE_NOP);
		return true;
	case ZYDIS_MNEMONIC_BTS:
		bit(k, VTRACE_OR);
		return true;
	case ZYDIS_MNEMONIC_BTR:
		bit(k, VTRACE_ANDN);
		return true;
	case ZYDIS_MNEMONIC_BTC:
		bit(k, VTRACE_XOR);
		return true;
	case ZYDIS_MNEMONIC_BSF:
		find_bit(k, false);
		return true;
	case ZYDIS_MNEMONIC_BSR:
		find_bit(k, true);
		return true;
	case ZYDIS_MNEMONIC_TZCNT:
		count_bits(k, VTRACE_CTZ, VTRACE_SET_COUNT);
		return true;
	case ZYDIS_MNEMONIC_LZCNT:
		count_bits(k, VTRACE_CLZ, VTRACE_SET_COUNT);
		return true;
	case ZYDIS_MNEMONIC_POPCNT:
		count_bits(k, VTRACE_POPCNT, VTRACE_SET_POPCNT);
		return true;
	case ZYDIS_MNEMONIC_BSWAP:
		swap_bytes(k, 0);
		return true;
	case ZYDIS_MNEMONIC_MOVBE:
		swap_bytes(k, 1);
		return true;
	default:
		return false;
	}
}

bool x86_alu(struct x86 *k)
{
	return arithmetic(k) || bits(k);
}
