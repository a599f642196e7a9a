/* SPDX-License-Identifier: BSD-2-Clause */
#if defined(__x86_64__)

#include "encode_x86_64.h"

static const uint8_t int_temps[EMIT_NR_TEMPS + 1] = { RAX, RCX, RSI, RDI, R8, R9, R10 };

unsigned int x86_reg(enum emit_class cl, unsigned int temp)
{
	return cl == EMIT_INT ? int_temps[temp] : temp;
}

void x86_put8(struct emit *e, unsigned int byte)
{
	uint8_t b = (uint8_t)byte;

	emit_bytes(e, &b, 1);
}

void x86_put32(struct emit *e, uint32_t value)
{
	emit_bytes(e, &value, 4);
}

/* Prefix, REX with its bits for the three registers, opcode. */
static void put_op(struct emit *e, uint32_t op, unsigned int reg, unsigned int index,
		   unsigned int rm)
{
	unsigned int rex =
		(op & WIDE ? 8u : 0) | (reg >> 3 & 1) << 2 | (index >> 3 & 1) << 1 | (rm >> 3 & 1);

	if (op >> 16 & 0xff)
		x86_put8(e, op >> 16);
	if (rex)
		x86_put8(e, 0x40 | rex);
	if (op >> 8 & 0xff)
		x86_put8(e, op >> 8);
	x86_put8(e, op);
}

void x86_op_reg(struct emit *e, uint32_t op, unsigned int reg, unsigned int rm)
{
	put_op(e, op, reg, 0, rm);
	x86_put8(e, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

/* With [base + disp]. rsp as a base needs the SIB byte. */
void x86_op_mem(struct emit *e, uint32_t op, unsigned int reg, unsigned int base, int32_t disp)
{
	bool is_short = disp >= -128 && disp < 128;

	put_op(e, op, reg, 0, base);
	x86_put8(e, (is_short ? 0x40u : 0x80u) | (reg & 7) << 3 | (base & 7));
	if ((base & 7) == RSP)
		x86_put8(e, 0x24);
	if (is_short)
		x86_put8(e, (unsigned int)disp);
	else
		x86_put32(e, (uint32_t)disp);
}

/* With [base + index * 8]; base not rbp or r13. */
void x86_op_indexed(struct emit *e, uint32_t op, unsigned int reg, unsigned int base,
		    unsigned int index)
{
	put_op(e, op, reg, index, base);
	x86_put8(e, (reg & 7) << 3 | 4);
	x86_put8(e, 3u << 6 | (index & 7) << 3 | (base & 7));
}

void x86_load_imm(struct emit *e, unsigned int reg, int64_t value)
{
	if (value == 0) {
		x86_op_reg(e, XOR32, reg, reg);
	} else if (value > 0 && value <= UINT32_MAX) {
		put_op(e, 0xb8 + (reg & 7), 0, 0, reg);
		x86_put32(e, (uint32_t)value);
	} else if (value >= INT32_MIN && value < 0) {
		x86_op_reg(e, WIDE | 0xc7, 0, reg);
		x86_put32(e, (uint32_t)value);
	} else {
		put_op(e, WIDE | (0xb8 + (reg & 7)), 0, 0, reg);
		emit_bytes(e, &value, 8);
	}
}

void x86_op_operand(struct emit *e, uint32_t op, enum emit_class cl, unsigned int reg,
		    struct emit_operand o)
{
	switch (o.kind) {
	case EMIT_TEMP:
		x86_op_reg(e, op, reg, x86_reg(cl, (unsigned int)o.value));
		break;
	case EMIT_IMM:
		x86_load_imm(e, R11, o.value);
		x86_op_reg(e, op, reg, R11);
		break;
	case EMIT_SLOT:
		x86_op_mem(e, op, reg, RBP, -8 * ((int32_t)o.value + 1));
		break;
	case EMIT_PARAM:
		x86_op_mem(e, op, reg, RBP, 16 + 8 * (int32_t)o.value);
		break;
	case EMIT_RUNTIME:
		x86_op_mem(e, op, reg, RBX, (int32_t)o.value);
		break;
	}
}

bool x86_fits_imm(struct emit_operand o)
{
	return o.kind == EMIT_IMM && o.value >= INT32_MIN && o.value <= INT32_MAX;
}

void x86_op_imm(struct emit *e, unsigned int operation, unsigned int reg, int32_t value)
{
	bool is_short = value >= -128 && value < 128;

	x86_op_reg(e, is_short ? GROUP_83 : GROUP_81, operation, reg);
	if (is_short)
		x86_put8(e, (unsigned int)value);
	else
		x86_put32(e, (uint32_t)value);
}

#endif
