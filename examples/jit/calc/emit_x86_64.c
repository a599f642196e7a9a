/* SPDX-License-Identifier: BSD-2-Clause */
/* The x86-64 back end; which register is what stands in encode_x86_64.h. */
#if defined(__x86_64__)

#include "encode_x86_64.h"
#include "calc_internal.h"

void emit_patch(struct emit *e, uint32_t at, uint32_t target)
{
	uint32_t distance = target - (at + 4);

	for (unsigned int i = 0; i < 4; i++)
		e->buf[at + i] = (uint8_t)(distance >> 8 * i);
}

static void jump_if(struct emit *e, unsigned int cc, emit_label to)
{
	x86_put8(e, 0x0f);
	x86_put8(e, 0x80 | cc);
	emit_label_use(e, (uint32_t)e->len, to);
	x86_put32(e, 0);
}

void emit_jump(struct emit *e, emit_label to)
{
	x86_put8(e, 0xe9);
	emit_label_use(e, (uint32_t)e->len, to);
	x86_put32(e, 0);
}

static void add_rsp(struct emit *e, int32_t bytes)
{
	if (bytes == 0)
		return;
	x86_op_imm(e, bytes > 0 ? GROUP_ADD : GROUP_SUB, RSP, bytes > 0 ? bytes : -bytes);
}

static int32_t stack_bytes(unsigned int nr)
{
	return (int32_t)((nr + 1) / 2 * 16); /* rsp stays a multiple of 16 */
}

void emit_prologue(struct emit *e, emit_label overflow)
{
	x86_put8(e, 0x55); /* push rbp */
	x86_op_reg(e, MOV_LOAD, RBP, RSP);
	add_rsp(e, -stack_bytes(e->nr_slots));
	x86_op_mem(e, CMP, RSP, RBX, offsetof(struct calc_runtime, stack_limit));
	jump_if(e, CC_B, overflow);
}

void emit_epilogue(struct emit *e)
{
	x86_put8(e, 0xc9); /* leave */
	x86_put8(e, 0xc3); /* ret */
}

void emit_load(struct emit *e, enum emit_class cl, unsigned int dst, struct emit_operand from)
{
	unsigned int reg = x86_reg(cl, dst);

	if (from.kind == EMIT_TEMP && from.value == dst)
		return;
	if (from.kind == EMIT_IMM)
		x86_load_imm(e, reg, from.value);
	else if (cl == EMIT_INT)
		x86_op_operand(e, MOV_LOAD, cl, reg, from);
	else
		x86_op_operand(e, from.kind == EMIT_TEMP ? MOVAPS : MOVSD_LOAD, cl, reg, from);
}

void emit_store(struct emit *e, enum emit_class cl, unsigned int src, struct emit_operand to)
{
	x86_op_operand(e, cl == EMIT_INT ? MOV_STORE : MOVSD_SAVE, cl, x86_reg(cl, src), to);
}

static void int_arith(struct emit *e, enum calc_op op, unsigned int reg, struct emit_operand right)
{
	static const uint32_t ops[] = { WIDE | 0x03, WIDE | 0x2b, IMUL };

	if (!x86_fits_imm(right)) {
		x86_op_operand(e, ops[op], EMIT_INT, reg, right);
		return;
	}
	if (op == CALC_MUL) {
		x86_op_reg(e, IMUL_IMM, reg, reg);
		x86_put32(e, (uint32_t)right.value);
	} else {
		x86_op_imm(e, op == CALC_ADD ? GROUP_ADD : GROUP_SUB, reg, (int32_t)right.value);
	}
}

void emit_arith(struct emit *e, enum emit_class cl, enum calc_op op, unsigned int dst,
		struct emit_operand right)
{
	static const uint32_t ops[] = { 0xf20f58, 0xf20f5c, 0xf20f59, 0xf20f5e };

	if (cl == EMIT_INT)
		int_arith(e, op, x86_reg(cl, dst), right);
	else
		x86_op_operand(e, ops[op], cl, dst, right);
}

/* By -1 the machine's own division traps where the quotient does not fit: negate instead. */
static void divide_by_minus_one(struct emit *e, unsigned int reg, bool remainder)
{
	if (remainder)
		x86_op_reg(e, XOR32, reg, reg);
	else
		x86_op_reg(e, GROUP_F7, GROUP_NEG, reg);
}

/* reg by r11. The machine divides rdx:rax: rax changes places with reg, and back. */
static void divide_by_r11(struct emit *e, unsigned int reg, bool remainder)
{
	if (reg != RAX)
		x86_op_reg(e, XCHG, reg, RAX);
	x86_put8(e, 0x48); /* cqo */
	x86_put8(e, 0x99);
	x86_op_reg(e, GROUP_F7, GROUP_IDIV, R11);
	if (reg != RAX)
		x86_op_reg(e, XCHG, reg, RAX);
	if (remainder)
		x86_op_reg(e, MOV_LOAD, reg, RDX);
}

void emit_divide(struct emit *e, unsigned int dst, struct emit_operand right, bool remainder,
		 emit_label by_zero)
{
	unsigned int reg = x86_reg(EMIT_INT, dst);
	emit_label ordinary = emit_label_new(e), done = emit_label_new(e);

	if (right.kind == EMIT_IMM && right.value == -1) {
		divide_by_minus_one(e, reg, remainder);
	} else if (right.kind == EMIT_IMM) {
		x86_load_imm(e, R11, right.value);
		divide_by_r11(e, reg, remainder);
	} else {
		x86_op_operand(e, MOV_LOAD, EMIT_INT, R11, right);
		x86_op_reg(e, TEST, R11, R11);
		jump_if(e, CC_E, by_zero);
		x86_op_imm(e, GROUP_CMP, R11, -1);
		jump_if(e, CC_NE, ordinary);
		divide_by_minus_one(e, reg, remainder);
		emit_jump(e, done);
		emit_label_bind(e, ordinary);
		divide_by_r11(e, reg, remainder);
	}
	emit_label_bind(e, done);
}

void emit_negate(struct emit *e, enum emit_class cl, unsigned int dst)
{
	if (cl == EMIT_INT) {
		x86_op_reg(e, GROUP_F7, GROUP_NEG, x86_reg(cl, dst));
		return;
	}
	x86_load_imm(e, R11, INT64_MIN); /* the sign bit */
	x86_op_reg(e, MOVQ_XMM, XMM7, R11);
	x86_op_reg(e, XORPS, dst, XMM7);
}

void emit_int_to_double(struct emit *e, unsigned int dst, struct emit_operand from)
{
	x86_op_reg(e, XORPS, dst, dst); /* else it waits for the register's last value */
	x86_op_operand(e, CVTSI2SD, EMIT_INT, dst, from);
}

void emit_double_to_int(struct emit *e, unsigned int dst, emit_label does_not_fit)
{
	unsigned int reg = x86_reg(EMIT_INT, dst);

	x86_op_reg(e, CVTTSD2SI, reg, dst);
	/* What does not fit has become the smallest integer, the only one that 1 less overflows. */
	x86_op_imm(e, GROUP_CMP, reg, 1);
	jump_if(e, CC_O, does_not_fit);
}

static void int_compare(struct emit *e, unsigned int left, struct emit_operand right)
{
	unsigned int reg = x86_reg(EMIT_INT, left);

	if (x86_fits_imm(right) && right.value == 0) {
		x86_op_reg(e, TEST, reg, reg);
	} else if (x86_fits_imm(right)) {
		x86_op_imm(e, GROUP_CMP, reg, (int32_t)right.value);
	} else {
		x86_op_operand(e, CMP, EMIT_INT, reg, right);
	}
}

/* "Above" and "not below" are false for not-a-number, "below" is not: so < and <= turn around. */
static void double_compare(struct emit *e, enum calc_op op, unsigned int left,
			   struct emit_operand right)
{
	unsigned int reg = XMM7;

	if (op != CALC_LT && op != CALC_LE) {
		x86_op_operand(e, UCOMISD, EMIT_DOUBLE, left, right);
		return;
	}
	if (right.kind == EMIT_TEMP)
		reg = (unsigned int)right.value;
	else
		x86_op_operand(e, MOVSD_LOAD, EMIT_DOUBLE, reg, right);
	x86_op_reg(e, UCOMISD, reg, left);
}

static unsigned int condition(enum emit_class cl, enum calc_op op)
{
	static const uint8_t ints[] = { CC_E, CC_NE, CC_L, CC_LE, CC_G, CC_GE };
	static const uint8_t doubles[] = { CC_E, CC_NE, CC_A, CC_AE, CC_A, CC_AE };

	return cl == EMIT_INT ? ints[op - CALC_EQ] : doubles[op - CALC_EQ];
}

static void set_byte(struct emit *e, unsigned int cc, unsigned int reg)
{
	/* Always with REX, without which 6 and 7 would be other registers. */
	x86_put8(e, 0x40 | reg >> 3);
	x86_put8(e, 0x0f);
	x86_put8(e, 0x90 | cc);
	x86_put8(e, 0xc0 | (reg & 7));
}

void emit_compare(struct emit *e, enum emit_class cl, enum calc_op op, unsigned int dst,
		  unsigned int left, struct emit_operand right)
{
	unsigned int reg = x86_reg(EMIT_INT, dst);

	if (cl == EMIT_INT)
		int_compare(e, left, right);
	else
		double_compare(e, op, left, right);
	set_byte(e, condition(cl, op), reg);
	if (cl == EMIT_DOUBLE && (op == CALC_EQ || op == CALC_NE)) {
		/* Not-a-number says "equal" and "parity". */
		set_byte(e, op == CALC_EQ ? CC_NP : CC_P, RDX);
		x86_op_reg(e, op == CALC_EQ ? 0x23 : 0x0b, reg, RDX); /* and, or */
	}
	x86_op_reg(e, WIDE | 0x0fb6, reg, reg); /* movzx of the lowest byte */
}

void emit_compare_jump(struct emit *e, enum emit_class cl, enum calc_op op, bool sense,
		       unsigned int left, struct emit_operand right, emit_label to)
{
	emit_label past = emit_label_new(e);
	bool equality = cl == EMIT_DOUBLE && (op == CALC_EQ || op == CALC_NE);

	if (cl == EMIT_INT)
		int_compare(e, left, right);
	else
		double_compare(e, op, left, right);
	/* Not-a-number is unequal. */
	if (equality)
		jump_if(e, CC_P, (op == CALC_NE) == sense ? to : past);
	jump_if(e, condition(cl, op) ^ (sense ? 0 : 1), to);
	emit_label_bind(e, past);
}

void emit_check_index(struct emit *e, unsigned int base, struct emit_operand index,
		      emit_label outside)
{
	/* Compared without sign, so that negative ones are above every length. */
	if (x86_fits_imm(index)) {
		x86_op_mem(e, GROUP_81, GROUP_CMP, x86_reg(EMIT_INT, base), -8);
		x86_put32(e, (uint32_t)index.value);
		jump_if(e, CC_BE, outside);
	} else {
		x86_op_mem(e, CMP, x86_reg(EMIT_INT, (unsigned int)index.value),
			   x86_reg(EMIT_INT, base), -8);
		jump_if(e, CC_AE, outside);
	}
}

static void element(struct emit *e, uint32_t op, unsigned int reg, unsigned int base,
		    struct emit_operand index)
{
	if (index.kind == EMIT_IMM)
		x86_op_mem(e, op, reg, x86_reg(EMIT_INT, base), 8 * (int32_t)index.value);
	else
		x86_op_indexed(e, op, reg, x86_reg(EMIT_INT, base),
			       x86_reg(EMIT_INT, (unsigned int)index.value));
}

void emit_load_element(struct emit *e, enum emit_class cl, unsigned int dst, unsigned int base,
		       struct emit_operand index)
{
	element(e, cl == EMIT_INT ? MOV_LOAD : MOVSD_LOAD, x86_reg(cl, dst), base, index);
}

void emit_store_element(struct emit *e, enum emit_class cl, unsigned int src, unsigned int base,
			struct emit_operand index)
{
	element(e, cl == EMIT_INT ? MOV_STORE : MOVSD_SAVE, x86_reg(cl, src), base, index);
}

void emit_load_at(struct emit *e, enum emit_class cl, unsigned int dst, unsigned int base, int off)
{
	x86_op_mem(e, cl == EMIT_INT ? MOV_LOAD : MOVSD_LOAD, x86_reg(cl, dst),
		   x86_reg(EMIT_INT, base), off);
}

void emit_args_begin(struct emit *e, unsigned int nr)
{
	add_rsp(e, -stack_bytes(nr));
}

void emit_args_end(struct emit *e, unsigned int nr)
{
	add_rsp(e, stack_bytes(nr));
}

void emit_args_store(struct emit *e, enum emit_class cl, unsigned int src, unsigned int index)
{
	x86_op_mem(e, cl == EMIT_INT ? MOV_STORE : MOVSD_SAVE, x86_reg(cl, src), RSP,
		   8 * (int32_t)index);
}

void emit_call(struct emit *e, int entry_off)
{
	x86_op_mem(e, 0xff, 2, RBX, entry_off);
}

void emit_call_helper(struct emit *e, int helper_off, struct emit_operand data)
{
	x86_op_reg(e, MOV_LOAD, RDI, RBX);
	x86_op_reg(e, MOV_LOAD, RSI, RSP);
	if (data.kind == EMIT_IMM)
		x86_load_imm(e, RDX, data.value);
	else
		x86_op_operand(e, MOV_LOAD, EMIT_INT, RDX, data);
	x86_op_mem(e, 0xff, 2, RBX, helper_off);
}

void emit_enter(struct emit *e)
{
	x86_put8(e, 0x55); /* push rbp */
	x86_op_reg(e, MOV_LOAD, RBP, RSP);
	x86_put8(e, 0x53);			/* push rbx */
	add_rsp(e, -(8 + 8 * CALC_MAX_PARAMS)); /* 8 for the alignment */
	x86_op_reg(e, MOV_LOAD, RBX, RDI);
	for (int32_t i = 0; i < CALC_MAX_PARAMS; i++) {
		x86_op_mem(e, MOV_LOAD, RAX, RDX, 8 * i);
		x86_op_mem(e, MOV_STORE, RAX, RSP, 8 * i);
	}
	x86_op_reg(e, 0xff, 2, RSI); /* call rsi */
	x86_op_mem(e, MOV_LOAD, RBX, RBP, -8);
	emit_epilogue(e);
}

#define LAZY_STUB_LEN 10
#define LAZY_HEAD_LEN 32

/* The common part comes first: find the function's code, and go there as if called. */
void emit_lazy(struct emit *e, unsigned int nr, int resolve_off)
{
	emit_label common = emit_label_new(e);

	emit_label_bind(e, common);
	x86_put8(e, 0x55); /* push rbp */
	x86_op_reg(e, MOV_LOAD, RBP, RSP);
	x86_op_reg(e, MOV_LOAD, RDI, RBX);
	x86_op_reg(e, 0x8b, RSI, RAX);
	x86_op_mem(e, 0xff, 2, RBX, resolve_off);
	x86_put8(e, 0x5d);	     /* pop rbp */
	x86_op_reg(e, 0xff, 4, RAX); /* jmp rax */
	while (e->len < LAZY_HEAD_LEN)
		x86_put8(e, 0xcc);
	for (unsigned int i = 0; i < nr; i++) {
		x86_put8(e, 0xb8); /* mov eax, i */
		x86_put32(e, i);
		emit_jump(e, common);
	}
	emit_finish(e);
}

size_t emit_lazy_off(unsigned int index)
{
	return LAZY_HEAD_LEN + (size_t)LAZY_STUB_LEN * index;
}

#endif
