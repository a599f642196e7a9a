/* SPDX-License-Identifier: BSD-2-Clause */
/* Lengths of x86-64 instructions, by the opcode maps of the processor manuals; meanings are not
 * needed. */

#include "base.h"
#include "kernel.h"

enum { INSN_MOST = 15 };

/* What follows an opcode. */
enum {
	NONE = 0,
	MODRM = 1,
	IMM8 = 2,
	IMMZ = 4, /* 32 bits; 16 with the operand prefix */
	REL8 = 8,
	REL32 = 16,
	BAD = 32,
	SPECIAL = 64,
};

struct decode {
	const uint8_t *code;
	size_t len, at;
	bool short_operand, short_address, wide;
	uint8_t reg; /* the middle bits of a ModRM byte */
	struct kernel_insn *out;
};

static bool in(uint8_t op, uint8_t from, uint8_t to)
{
	return op >= from && op <= to;
}

static unsigned int one_byte_low(uint8_t op)
{
	switch (op & 7) {
	case 4:
		return IMM8;
	case 5:
		return IMMZ;
	case 6:
	case 7:
		return BAD;
	default:
		return MODRM;
	}
}

static unsigned int one_byte(uint8_t op)
{
	if (op < 0x40)
		return one_byte_low(op);
	switch (op) {
	case 0x68:
	case 0xa9:
		return IMMZ;
	case 0x6a:
	case 0xa8:
	case 0xcd:
		return IMM8;
	case 0x69:
	case 0x81:
	case 0xc7:
		return MODRM | IMMZ;
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xc0:
	case 0xc1:
	case 0xc6:
		return MODRM | IMM8;
	case 0x63:
	case 0xfe:
	case 0xff:
		return MODRM;
	case 0xe8:
	case 0xe9:
		return REL32;
	case 0xeb:
		return REL8;
	case 0xc2:
	case 0xc8:
	case 0xca:
	case 0xf6:
	case 0xf7:
		return SPECIAL;
	case 0x60:
	case 0x61:
	case 0x82:
	case 0x9a:
	case 0xce:
	case 0xd4:
	case 0xd5:
	case 0xea:
		return BAD;
	}
	if (in(op, 0x70, 0x7f) || in(op, 0xe0, 0xe3))
		return REL8;
	if (in(op, 0x84, 0x8f) || in(op, 0xd0, 0xd3) || in(op, 0xd8, 0xdf))
		return MODRM;
	if (in(op, 0xa0, 0xa3) || in(op, 0xb8, 0xbf))
		return SPECIAL;
	if (in(op, 0xb0, 0xb7) || in(op, 0xe4, 0xe7))
		return IMM8;
	return NONE;
}

static bool has_imm8_0f(uint8_t op)
{
	return in(op, 0x70, 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
	       in(op, 0xc4, 0xc6) || op == 0x0f;
}

static unsigned int two_bytes(uint8_t op)
{
	if (in(op, 0x80, 0x8f))
		return REL32;
	if (op == 0x04 || op == 0x0a || op == 0x0c || in(op, 0x24, 0x27) || op == 0x36 ||
	    op == 0x39 || in(op, 0x3b, 0x3f))
		return BAD;
	if (in(op, 0x05, 0x09) || op == 0x0b || op == 0x0e || in(op, 0x30, 0x37) || op == 0x77 ||
	    in(op, 0xa0, 0xa2) || in(op, 0xa8, 0xaa) || in(op, 0xc8, 0xcf))
		return NONE;
	return MODRM | (has_imm8_0f(op) ? IMM8 : 0);
}

static bool take(struct decode *d, size_t n)
{
	d->at += n;
	return d->at <= d->len && d->at <= INSN_MOST;
}

static bool immediate(struct decode *d, uint8_t n)
{
	d->out->imm_at = (uint8_t)d->at;
	d->out->imm_len = n;
	return take(d, n);
}

/* Length of the displacement, by the mod and rm bits; 4 without base register. */
static uint8_t displacement(struct decode *d, uint8_t modrm)
{
	uint8_t mod = modrm >> 6, rm = modrm & 7, base = rm;

	if (mod == 3)
		return 0;
	if (rm == 4) {
		if (d->at >= d->len)
			return 0;
		base = d->code[d->at] & 7;
		d->at++;
	} else if (rm == 5 && mod == 0) {
		d->out->pc_relative = true;
	}
	if (mod == 1)
		return 1;
	return mod == 2 || (mod == 0 && base == 5) ? 4 : 0;
}

static bool modrm(struct decode *d, uint8_t *byte)
{
	if (d->at >= d->len)
		return false;
	*byte = d->code[d->at++];
	if (*byte >> 6 != 3 && (*byte & 7) == 4 && d->at >= d->len)
		return false;
	d->reg = *byte >> 3 & 7;
	d->out->disp_len = displacement(d, *byte);
	d->out->disp_at = (uint8_t)d->at;
	return take(d, d->out->disp_len);
}

static bool operands(struct decode *d, unsigned int what)
{
	uint8_t byte;

	if (what & BAD)
		return false;
	if ((what & MODRM) && !modrm(d, &byte))
		return false;
	d->out->branch = what & (REL8 | REL32);
	if (what & (IMM8 | REL8))
		return immediate(d, 1);
	/* The operand prefix does not shorten near branches in 64-bit mode. */
	if (what & REL32)
		return immediate(d, 4);
	if (what & IMMZ)
		return immediate(d, d->short_operand && !d->wide ? 2 : 4);
	return d->at <= INSN_MOST;
}

static bool special(struct decode *d, uint8_t op)
{
	uint8_t byte;

	if (op == 0xf6 || op == 0xf7) {
		if (!modrm(d, &byte))
			return false;
		if ((byte >> 3 & 7) > 1)
			return true;
		return immediate(d, op == 0xf6 ? 1 : d->short_operand && !d->wide ? 2 : 4);
	}
	if (op == 0xc2 || op == 0xca)
		return immediate(d, 2);
	if (op == 0xc8)
		return immediate(d, 3);
	if (in(op, 0xb8, 0xbf))
		return immediate(d, d->wide ? 8 : d->short_operand ? 2 : 4);
	d->out->disp_at = (uint8_t)d->at;
	d->out->disp_len = d->short_address ? 4 : 8;
	return take(d, d->out->disp_len);
}

/* Of maps behind a VEX or EVEX prefix. */
static unsigned int vector(uint8_t map, uint8_t op)
{
	if (map == 1 && op == 0x77)
		return NONE;
	if (map == 1)
		return MODRM | (has_imm8_0f(op) ? IMM8 : 0);
	if (map == 3)
		return MODRM | IMM8;
	return map == 2 || map == 5 || map == 6 ? MODRM : BAD;
}

/* C5, C4 and 62: the prefix holds the map, the opcode follows it. */
static bool vector_insn(struct decode *d, uint8_t op)
{
	size_t more = op == 0xc5 ? 1 : op == 0xc4 ? 2 : 3;
	uint8_t map;

	if (d->at + more >= d->len)
		return false;
	map = op == 0xc5 ? 1 : d->code[d->at] & (op == 0xc4 ? 0x1f : 7);
	d->at += more;
	op = d->code[d->at++];
	return operands(d, vector(map, op));
}

static bool escaped(struct decode *d)
{
	uint8_t op;

	if (d->at >= d->len)
		return false;
	op = d->code[d->at++];
	if (op != 0x38 && op != 0x3a)
		return operands(d, two_bytes(op));
	if (d->at >= d->len)
		return false;
	d->at++;
	return operands(d, op == 0x38 ? MODRM : MODRM | IMM8);
}

static bool is_prefix(uint8_t b)
{
	return b == 0x26 || b == 0x2e || b == 0x36 || b == 0x3e || in(b, 0x64, 0x67) || b == 0xf0 ||
	       b == 0xf2 || b == 0xf3;
}

static void prefixes(struct decode *d)
{
	while (d->at < d->len && d->at < INSN_MOST && is_prefix(d->code[d->at])) {
		d->short_operand |= d->code[d->at] == 0x66;
		d->short_address |= d->code[d->at] == 0x67;
		d->at++;
	}
	if (d->at < d->len && in(d->code[d->at], 0x40, 0x4f))
		d->wide = d->code[d->at++] & 8;
}

/* Moved, added, subtracted, compared or pushed: nothing else is done with an address. A 32-bit
 * operand is extended with zeros, which no kernel address has. */
static bool takes_address(const struct decode *d, uint8_t op)
{
	if (d->out->branch || d->out->imm_len < 4)
		return false;
	if (d->out->imm_len == 8 || op == 0x68)
		return true;
	if (op == 0x81)
		return d->wide && (d->reg == 0 || d->reg == 5 || d->reg == 7);
	return d->wide && (op == 0xc7 || op == 0x05 || op == 0x2d || op == 0x3d);
}

int kernel_insn_x86(const uint8_t *code, size_t len, struct kernel_insn *out)
{
	struct decode d = { .code = code, .len = len, .out = out };
	unsigned int what;
	uint8_t op;
	bool good;

	*out = (struct kernel_insn){ 0 };
	prefixes(&d);
	if (d.at >= len)
		return -DCPI_EFORMAT;
	op = code[d.at++];
	what = one_byte(op);
	if (op == 0x0f)
		good = escaped(&d);
	else if (op == 0xc4 || op == 0xc5 || op == 0x62)
		good = vector_insn(&d, op);
	else if (what == SPECIAL)
		good = special(&d, op);
	else
		good = operands(&d, what);
	if (!good || d.at > len || d.at > INSN_MOST)
		return -DCPI_EFORMAT;
	out->len = (uint8_t)d.at;
	out->address = takes_address(&d, op);
	return 0;
}
