/* SPDX-License-Identifier: BSD-2-Clause */
/* The aarch64 back end; which register is what stands in encode_aarch64.h. */
#if defined(__aarch64__)

#include "encode_aarch64.h"
#include "calc_internal.h"
#include "emit.h"

static void put(struct emit *e, uint32_t insn)
{
	emit_bytes(e, &insn, 4);
}

static void rrr(struct emit *e, uint32_t op, unsigned int rd, unsigned int rn, unsigned int rm)
{
	put(e, op | rm << 16 | rn << 5 | rd);
}

/* Rd and the register at 16, as most moves have them. */
static void move(struct emit *e, uint32_t op, unsigned int rd, unsigned int rm)
{
	put(e, op | rm << 16 | rd);
}

/* Rd and the register at 5. */
static void unary(struct emit *e, uint32_t op, unsigned int rd, unsigned int rn)
{
	put(e, op | rn << 5 | rd);
}

static void imm12(struct emit *e, uint32_t op, unsigned int rd, unsigned int rn, int64_t value)
{
	put(e, op | (uint32_t)value << 10 | rn << 5 | rd);
}

static void load_imm(struct emit *e, unsigned int reg, int64_t value)
{
	uint64_t bits = value < 0 ? ~(uint64_t)value : (uint64_t)value;
	unsigned int done = 0;
	uint32_t first = value < 0 ? 0x92800000 : 0xd2800000; /* movn, movz */

	if (bits == 0)
		put(e, first | reg);
	/* Then movk for what differs from all zeros or all ones. */
	for (unsigned int i = 0; i < 4; i++) {
		uint32_t part = bits >> 16 * i & 0xffff;

		if (part == 0)
			continue;
		if (done++ == 0)
			put(e, first | i << 21 | part << 5 | reg);
		else
			put(e,
			    0xf2800000u | i << 21 | (value < 0 ? part ^ 0xffff : part) << 5 | reg);
	}
}

/* The address of an operand in memory, as base and offset. */
static unsigned int address(const struct emit *e, struct emit_operand o, int64_t *off)
{
	unsigned int frame = 16 + (e->nr_slots + 1) / 2 * 16;

	*off = o.kind == EMIT_RUNTIME ? o.value
	       : o.kind == EMIT_SLOT  ? 16 + 8 * o.value
				      : frame + 8 * o.value;
	return o.kind == EMIT_RUNTIME ? RT : FP;
}

/* The register that holds an operand: its own, or @scratch, into which it is loaded. */
static unsigned int operand(struct emit *e, enum emit_class cl, struct emit_operand o,
			    unsigned int scratch)
{
	unsigned int base;
	int64_t off;

	if (o.kind == EMIT_TEMP)
		return (unsigned int)o.value;
	if (o.kind == EMIT_IMM) {
		load_imm(e, scratch, o.value);
		return scratch;
	}
	base = address(e, o, &off);
	imm12(e, cl == EMIT_INT ? LDR : LDR_D, scratch, base, off / 8);
	return scratch;
}

static bool fits_imm12(struct emit_operand o)
{
	return o.kind == EMIT_IMM && o.value > -4096 && o.value < 4096;
}

void emit_patch(struct emit *e, uint32_t at, uint32_t target)
{
	int32_t words = ((int32_t)target - (int32_t)at) / 4;
	uint32_t insn = 0;

	for (unsigned int i = 0; i < 4; i++)
		insn |= (uint32_t)e->buf[at + i] << 8 * i;
	if ((insn & 0xfc000000) == B)
		insn |= (uint32_t)words & 0x3ffffff;
	else
		insn |= ((uint32_t)words & 0x7ffff) << 5;
	for (unsigned int i = 0; i < 4; i++)
		e->buf[at + i] = (uint8_t)(insn >> 8 * i);
}

static void jump(struct emit *e, uint32_t insn, emit_label to)
{
	emit_label_use(e, (uint32_t)e->len, to);
	put(e, insn);
}

void emit_jump(struct emit *e, emit_label to)
{
	jump(e, B, to);
}

static void call_through(struct emit *e, int off)
{
	imm12(e, LDR, X16, RT, off / 8);
	unary(e, BLR, 0, X16);
}

void emit_prologue(struct emit *e, emit_label overflow)
{
	int64_t len = 16 + (e->nr_slots + 1) / 2 * 16;

	imm12(e, SUB_IMM, SP, SP, len);
	put(e, STP | LR << 10 | SP << 5 | FP);
	imm12(e, ADD_IMM, FP, SP, 0);
	imm12(e, LDR, X16, RT, offsetof(struct calc_runtime, stack_limit) / 8);
	put(e, CMP_SP);
	jump(e, BCOND | CC_LO, overflow);
}

void emit_epilogue(struct emit *e)
{
	int64_t len = 16 + (e->nr_slots + 1) / 2 * 16;

	put(e, LDP | LR << 10 | SP << 5 | FP);
	imm12(e, ADD_IMM, SP, SP, len);
	put(e, RET);
}

void emit_load(struct emit *e, enum emit_class cl, unsigned int dst, struct emit_operand from)
{
	if (from.kind != EMIT_TEMP)
		operand(e, cl, from, dst);
	else if (from.value != dst && cl == EMIT_INT)
		move(e, MOV, dst, (unsigned int)from.value);
	else if (from.value != dst)
		unary(e, FMOV, dst, (unsigned int)from.value);
}

void emit_store(struct emit *e, enum emit_class cl, unsigned int src, struct emit_operand to)
{
	int64_t off;
	unsigned int base = address(e, to, &off);

	imm12(e, cl == EMIT_INT ? STR : STR_D, src, base, off / 8);
}

static bool add_small(struct emit *e, enum calc_op op, unsigned int dst, struct emit_operand o)
{
	bool add = (op == CALC_ADD) == (o.value >= 0);

	if (op == CALC_MUL || !fits_imm12(o))
		return false;
	imm12(e, add ? ADD_IMM : SUB_IMM, dst, dst, o.value < 0 ? -o.value : o.value);
	return true;
}

void emit_arith(struct emit *e, enum emit_class cl, enum calc_op op, unsigned int dst,
		struct emit_operand right)
{
	static const uint32_t ints[] = { ADD, SUB, MUL };
	static const uint32_t doubles[] = { FADD, FSUB, FMUL, FDIV };

	if (cl == EMIT_DOUBLE)
		rrr(e, doubles[op], dst, dst, operand(e, cl, right, D16));
	else if (!add_small(e, op, dst, right))
		rrr(e, ints[op], dst, dst, operand(e, cl, right, X16));
}

/* The machine's division does not trap: what does not fit wraps around by itself. */
void emit_divide(struct emit *e, unsigned int dst, struct emit_operand right, bool remainder,
		 emit_label by_zero)
{
	unsigned int reg = operand(e, EMIT_INT, right, X16);

	if (right.kind != EMIT_IMM)
		jump(e, CBZ | reg, by_zero);
	if (!remainder) {
		rrr(e, SDIV, dst, dst, reg);
		return;
	}
	rrr(e, SDIV, X17, dst, reg);
	put(e, MSUB | reg << 16 | dst << 10 | X17 << 5 | dst); /* dst - x17 * reg */
}

void emit_negate(struct emit *e, enum emit_class cl, unsigned int dst)
{
	if (cl == EMIT_INT)
		rrr(e, SUB, dst, ZR, dst);
	else
		unary(e, FNEG, dst, dst);
}

void emit_int_to_double(struct emit *e, unsigned int dst, struct emit_operand from)
{
	unary(e, SCVTF, dst, operand(e, EMIT_INT, from, X16));
}

void emit_double_to_int(struct emit *e, unsigned int dst, emit_label does_not_fit)
{
	/* The conversion would saturate. 2^63 has these bits; "minus" is false for not-a-number. */
	load_imm(e, X16, 0x43e0000000000000);
	unary(e, FMOV_DX, D17, X16);
	unary(e, FABS, D16, dst);
	rrr(e, FCMP, 0, D16, D17);
	jump(e, BCOND | CC_PL, does_not_fit);
	unary(e, FCVTZS, dst, dst);
}

static void compare(struct emit *e, enum emit_class cl, unsigned int left,
		    struct emit_operand right)
{
	if (cl == EMIT_DOUBLE)
		rrr(e, FCMP, 0, left, operand(e, cl, right, D16));
	else if (fits_imm12(right))
		imm12(e, right.value < 0 ? CMN_IMM : CMP_IMM, ZR, left,
		      right.value < 0 ? -right.value : right.value);
	else
		rrr(e, SUBS, ZR, left, operand(e, cl, right, X16));
}

/* For doubles those that are false for not-a-number, and whose inverses are true. */
static unsigned int condition(enum emit_class cl, enum calc_op op)
{
	static const uint8_t ints[] = { CC_EQ, CC_NE, CC_LT, CC_LE, CC_GT, CC_GE };
	static const uint8_t doubles[] = { CC_EQ, CC_NE, CC_MI, CC_LS, CC_GT, CC_GE };

	return cl == EMIT_INT ? ints[op - CALC_EQ] : doubles[op - CALC_EQ];
}

void emit_compare(struct emit *e, enum emit_class cl, enum calc_op op, unsigned int dst,
		  unsigned int left, struct emit_operand right)
{
	compare(e, cl, left, right);
	put(e, CSET | (condition(cl, op) ^ 1) << 12 | dst);
}

void emit_compare_jump(struct emit *e, enum emit_class cl, enum calc_op op, bool sense,
		       unsigned int left, struct emit_operand right, emit_label to)
{
	compare(e, cl, left, right);
	jump(e, BCOND | (condition(cl, op) ^ (sense ? 0 : 1)), to);
}

void emit_check_index(struct emit *e, unsigned int base, struct emit_operand index,
		      emit_label outside)
{
	/* Compared without sign, so that negative ones are above every length. */
	put(e, LDUR | (uint32_t)(-8 & 0x1ff) << 12 | base << 5 | X17);
	rrr(e, SUBS, ZR, operand(e, EMIT_INT, index, X16), X17);
	jump(e, BCOND | CC_HS, outside);
}

static void element(struct emit *e, uint32_t op, uint32_t op_indexed, unsigned int reg,
		    unsigned int base, struct emit_operand index)
{
	if (index.kind == EMIT_IMM)
		imm12(e, op, reg, base, index.value);
	else
		rrr(e, op_indexed, reg, base, (unsigned int)index.value);
}

void emit_load_element(struct emit *e, enum emit_class cl, unsigned int dst, unsigned int base,
		       struct emit_operand index)
{
	element(e, cl == EMIT_INT ? LDR : LDR_D, cl == EMIT_INT ? LDR_X8 : LDR_DX8, dst, base,
		index);
}

void emit_store_element(struct emit *e, enum emit_class cl, unsigned int src, unsigned int base,
			struct emit_operand index)
{
	element(e, cl == EMIT_INT ? STR : STR_D, cl == EMIT_INT ? STR_X8 : STR_DX8, src, base,
		index);
}

void emit_load_at(struct emit *e, enum emit_class cl, unsigned int dst, unsigned int base, int off)
{
	put(e, (cl == EMIT_INT ? LDUR : LDUR_D) | ((uint32_t)off & 0x1ff) << 12 | base << 5 | dst);
}

static int64_t stack_bytes(unsigned int nr)
{
	return (int64_t)((nr + 1) / 2 * 16); /* sp stays a multiple of 16 */
}

void emit_args_begin(struct emit *e, unsigned int nr)
{
	if (nr > 0)
		imm12(e, SUB_IMM, SP, SP, stack_bytes(nr));
}

void emit_args_end(struct emit *e, unsigned int nr)
{
	if (nr > 0)
		imm12(e, ADD_IMM, SP, SP, stack_bytes(nr));
}

void emit_args_store(struct emit *e, enum emit_class cl, unsigned int src, unsigned int index)
{
	imm12(e, cl == EMIT_INT ? STR : STR_D, src, SP, index);
}

void emit_call(struct emit *e, int entry_off)
{
	call_through(e, entry_off);
}

void emit_call_helper(struct emit *e, int helper_off, struct emit_operand data)
{
	move(e, MOV, X0, RT);
	imm12(e, ADD_IMM, X1, SP, 0);
	operand(e, EMIT_INT, data, X2);
	call_through(e, helper_off);
}

/* x19 has its place above the frame record; below it go the arguments. */
void emit_enter(struct emit *e)
{
	imm12(e, SUB_IMM, SP, SP, 32);
	put(e, STP | LR << 10 | SP << 5 | FP);
	imm12(e, ADD_IMM, FP, SP, 0);
	imm12(e, STR, RT, SP, 2);
	imm12(e, SUB_IMM, SP, SP, 8 * CALC_MAX_PARAMS);
	move(e, MOV, RT, X0);
	for (unsigned int i = 0; i < CALC_MAX_PARAMS; i++) {
		imm12(e, LDR, X9, X2, i);
		imm12(e, STR, X9, SP, i);
	}
	unary(e, BLR, 0, X1);
	imm12(e, ADD_IMM, SP, FP, 0);
	imm12(e, LDR, RT, SP, 2);
	put(e, LDP | LR << 10 | SP << 5 | FP);
	imm12(e, ADD_IMM, SP, SP, 32);
	put(e, RET);
}

#define LAZY_STUB_LEN 8
#define LAZY_HEAD_LEN 48

/* The common part comes first: find the function's code, and go there as if called. */
void emit_lazy(struct emit *e, unsigned int nr, int resolve_off)
{
	emit_label common = emit_label_new(e);

	emit_label_bind(e, common);
	imm12(e, SUB_IMM, SP, SP, 16);
	put(e, STP | LR << 10 | SP << 5 | FP);
	imm12(e, ADD_IMM, FP, SP, 0);
	move(e, MOV, X0, RT);
	move(e, MOV, X1, X17);
	call_through(e, resolve_off);
	move(e, MOV, X16, X0);
	put(e, LDP | LR << 10 | SP << 5 | FP);
	imm12(e, ADD_IMM, SP, SP, 16);
	unary(e, BR, 0, X16);
	while (e->len < LAZY_HEAD_LEN)
		put(e, 0); /* udf */
	for (unsigned int i = 0; i < nr; i++) {
		load_imm(e, X17, i);
		emit_jump(e, common);
	}
	emit_finish(e);
}

size_t emit_lazy_off(unsigned int index)
{
	return LAZY_HEAD_LEN + (size_t)LAZY_STUB_LEN * index;
}

#endif
