/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86-64: opcodes from a table, with random prefixes, registers, memory operands and immediates.
 * Left out: repeated string instructions (the emulator counts every turn as one), what unicorn
 * 2.0.1 has not (AVX) or does wrong (flags of blsi, bzhi and of neg with lock), and what ends a
 * trace.
 */
#include "oracle.h"

#include <string.h>

#include <unicorn/x86.h>

/* As instructions number them. */
enum { RSP = 4, FIRST_SMALL = 8, NR_SMALL = 4 };

static const uint8_t pointers[] = { 3, RSP, 5, 6, 7, 12, 13, 14, 15 };

enum {
	RM = 1,	 /* an operand in a register or in memory */
	REG = 2, /* in a register alone */
	MEM = 4, /* in memory alone */
	I8 = 8,	 /* immediates */
	IZ = 16, /* two or four bytes, by width */
	IV = 32, /* eight also */
	I16 = 64,
	WIDE = 128,  /* of 2 to 8 bytes, by prefix */
	LOCKS = 256, /* of memory */
	BYTES = 512, /* bytes of registers: rex or not tells which */
	VEX = 1024,  /* @opcode after a VEX prefix of its own */
	PART = 2048, /* not known as a whole */
	JUMP = 4096, /* a short displacement */
	LOW3 = 8192, /* a register in the opcode */
};

/* @opcodes of @nr numbers from the last byte on; @extension: the reg field, 8 any. */
struct encoding {
	uint8_t prefix; /* that must be; 0: none */
	uint8_t opcode[3];
	uint8_t len, nr, extension;
	uint16_t how;
};

static const struct encoding encodings[] = {
	{ 0, { 0x00 }, 1, 8, 8, RM | BYTES | LOCKS }, /* arithmetic; every eighth, see below */
	{ 0, { 0x01 }, 1, 8, 8, RM | WIDE | LOCKS },
	{ 0, { 0x02 }, 1, 8, 8, RM | BYTES },
	{ 0, { 0x03 }, 1, 8, 8, RM | WIDE },
	{ 0, { 0x04 }, 1, 8, 0, I8 },
	{ 0, { 0x05 }, 1, 8, 0, IZ | WIDE },
	{ 0, { 0x80 }, 1, 1, 8, RM | BYTES | I8 },
	{ 0, { 0x81 }, 1, 1, 8, RM | WIDE | IZ },
	{ 0, { 0x83 }, 1, 1, 8, RM | WIDE | I8 },
	{ 0, { 0x84 }, 1, 1, 8, RM | BYTES },
	{ 0, { 0x85 }, 1, 1, 8, RM | WIDE },
	{ 0, { 0x86 }, 1, 1, 8, RM | BYTES },
	{ 0, { 0x87 }, 1, 1, 8, RM | WIDE },
	{ 0, { 0x88 }, 1, 1, 8, RM | BYTES },
	{ 0, { 0x89 }, 1, 1, 8, RM | WIDE },
	{ 0, { 0x8a }, 1, 1, 8, RM | BYTES },
	{ 0, { 0x8b }, 1, 1, 8, RM | WIDE },
	{ 0, { 0x8d }, 1, 1, 8, MEM | WIDE },
	{ 0, { 0x63 }, 1, 1, 8, RM | WIDE },
	{ 0, { 0x90 }, 1, 8, 0, WIDE | LOW3 },
	{ 0, { 0x98 }, 1, 2, 0, WIDE },
	{ 0, { 0xa8 }, 1, 1, 0, I8 },
	{ 0, { 0xa9 }, 1, 1, 0, IZ | WIDE },
	{ 0, { 0xb0 }, 1, 8, 0, I8 | LOW3 },
	{ 0, { 0xb8 }, 1, 8, 0, IV | WIDE | LOW3 },
	{ 0, { 0xc0 }, 1, 1, 8, RM | BYTES | I8 | PART }, /* shifts, with rcl, rcr */
	{ 0, { 0xc1 }, 1, 1, 8, RM | WIDE | I8 | PART },
	{ 0, { 0xc1 }, 1, 1, 4, RM | WIDE | I8 },
	{ 0, { 0xc1 }, 1, 1, 5, RM | WIDE | I8 },
	{ 0, { 0xc1 }, 1, 1, 7, RM | WIDE | I8 },
	{ 0, { 0xd0 }, 1, 1, 8, RM | BYTES | PART },
	{ 0, { 0xd1 }, 1, 1, 8, RM | WIDE | PART },
	{ 0, { 0xd2 }, 1, 1, 8, RM | BYTES | PART },
	{ 0, { 0xd3 }, 1, 1, 8, RM | WIDE | PART },
	{ 0, { 0xd3 }, 1, 1, 0, RM | WIDE },
	{ 0, { 0xd3 }, 1, 1, 1, RM | WIDE },
	{ 0, { 0xc6 }, 1, 1, 0, RM | BYTES | I8 },
	{ 0, { 0xc7 }, 1, 1, 0, RM | WIDE | IZ },
	{ 0, { 0xf6 }, 1, 1, 0, RM | BYTES | I8 },
	{ 0, { 0xf7 }, 1, 1, 0, RM | WIDE | IZ },
	{ 0, { 0xf6 }, 1, 1, 2, RM | BYTES | LOCKS },
	{ 0, { 0xf7 }, 1, 1, 2, RM | WIDE | LOCKS },
	{ 0, { 0xf6 }, 1, 1, 3, RM | BYTES },
	{ 0, { 0xf7 }, 1, 1, 3, RM | WIDE },
	{ 0, { 0xf6 }, 1, 1, 4, RM | BYTES },
	{ 0, { 0xf7 }, 1, 1, 4, RM | WIDE },
	{ 0, { 0xf6 }, 1, 1, 5, RM | BYTES },
	{ 0, { 0xf7 }, 1, 1, 5, RM | WIDE },
	{ 0, { 0xf6 }, 1, 1, 6, RM | BYTES | PART }, /* a wide dividend may be unknown */
	{ 0, { 0xf7 }, 1, 1, 6, RM | WIDE | PART },
	{ 0, { 0xf6 }, 1, 1, 7, RM | BYTES | PART },
	{ 0, { 0xf7 }, 1, 1, 7, RM | WIDE | PART },
	{ 0, { 0xfe }, 1, 1, 0, RM | BYTES | LOCKS },
	{ 0, { 0xfe }, 1, 1, 1, RM | BYTES | LOCKS },
	{ 0, { 0xff }, 1, 1, 0, RM | WIDE | LOCKS },
	{ 0, { 0xff }, 1, 1, 1, RM | WIDE | LOCKS },
	{ 0, { 0xff }, 1, 1, 6, RM | WIDE },
	{ 0, { 0xff }, 1, 1, 2, REG },
	{ 0, { 0xff }, 1, 1, 4, REG },
	{ 0, { 0x69 }, 1, 1, 8, RM | WIDE | IZ },
	{ 0, { 0x6b }, 1, 1, 8, RM | WIDE | I8 },
	{ 0, { 0x50 }, 1, 16, 0, WIDE | LOW3 },
	{ 0, { 0x68 }, 1, 1, 0, IZ },
	{ 0, { 0x6a }, 1, 1, 0, I8 },
	{ 0, { 0x8f }, 1, 1, 0, RM | WIDE },
	{ 0, { 0xc9 }, 1, 1, 0, 0 },
	{ 0, { 0xc3 }, 1, 1, 0, 0 },
	{ 0, { 0xc2 }, 1, 1, 0, I16 },
	{ 0, { 0xeb }, 1, 1, 0, JUMP },
	{ 0, { 0x70 }, 1, 16, 0, JUMP },
	{ 0, { 0xe0 }, 1, 4, 0, JUMP },
	{ 0, { 0x9c }, 1, 1, 0, PART },
	{ 0, { 0x9e }, 1, 2, 0, PART },
	{ 0, { 0xf5 }, 1, 1, 0, PART },
	{ 0, { 0xf8 }, 1, 2, 0, 0 },
	{ 0, { 0xa4 }, 1, 4, 0, WIDE }, /* strings */
	{ 0, { 0xaa }, 1, 6, 0, WIDE },
	{ 0, { 0x0f, 0x40 }, 2, 16, 8, RM | WIDE },
	{ 0, { 0x0f, 0x90 }, 2, 16, 0, RM | BYTES },
	{ 0, { 0x0f, 0xa3 }, 2, 1, 8, REG | WIDE },
	{ 0, { 0x0f, 0xab }, 2, 1, 8, REG | WIDE },
	{ 0, { 0x0f, 0xb3 }, 2, 1, 8, REG | WIDE },
	{ 0, { 0x0f, 0xbb }, 2, 1, 8, REG | WIDE },
	{ 0, { 0x0f, 0xa3 }, 2, 1, 8, MEM | WIDE | PART },
	{ 0, { 0x0f, 0xab }, 2, 1, 8, MEM | WIDE | PART | LOCKS },
	{ 0, { 0x0f, 0xba }, 2, 1, 4, RM | WIDE | I8 },
	{ 0, { 0x0f, 0xba }, 2, 1, 5, RM | WIDE | I8 | LOCKS },
	{ 0, { 0x0f, 0xba }, 2, 1, 6, RM | WIDE | I8 | LOCKS },
	{ 0, { 0x0f, 0xba }, 2, 1, 7, RM | WIDE | I8 | LOCKS },
	{ 0, { 0x0f, 0xa4 }, 2, 1, 8, RM | WIDE | I8 | PART },
	{ 0, { 0x0f, 0xa5 }, 2, 1, 8, RM | WIDE | PART },
	{ 0, { 0x0f, 0xac }, 2, 1, 8, RM | WIDE | I8 | PART },
	{ 0, { 0x0f, 0xad }, 2, 1, 8, RM | WIDE | PART },
	{ 0, { 0x0f, 0xaf }, 2, 1, 8, RM | WIDE },
	{ 0, { 0x0f, 0xb0 }, 2, 1, 8, RM | BYTES | LOCKS },
	{ 0, { 0x0f, 0xb1 }, 2, 1, 8, RM | WIDE | LOCKS },
	{ 0, { 0x0f, 0xb6 }, 2, 2, 8, RM | WIDE },
	{ 0, { 0x0f, 0xbe }, 2, 2, 8, RM | WIDE },
	{ 0, { 0x0f, 0xbc }, 2, 2, 8, RM | WIDE | PART },
	{ 0xf3, { 0x0f, 0xbc }, 2, 2, 8, RM | WIDE },
	{ 0xf3, { 0x0f, 0xb8 }, 2, 1, 8, RM | WIDE },
	{ 0, { 0x0f, 0xc0 }, 2, 1, 8, RM | BYTES | LOCKS },
	{ 0, { 0x0f, 0xc1 }, 2, 1, 8, RM | WIDE | LOCKS },
	{ 0, { 0x0f, 0xc8 }, 2, 8, 0, WIDE | LOW3 | PART },
	{ 0, { 0x0f, 0xc7 }, 2, 1, 1, MEM | WIDE | LOCKS | PART },
	{ 0, { 0x0f, 0x1f }, 2, 1, 8, RM | WIDE },
	{ 0, { 0x0f, 0xae }, 2, 1, 8, RM | PART }, /* fences, fxsave and the like */
	{ 0, { 0x0f, 0xa2 }, 2, 1, 0, PART },
	{ 0, { 0x0f, 0x38, 0xf0 }, 3, 2, 8, MEM | WIDE },
	{ 2, { 0, 0xf2 }, 2, 1, 8, VEX | RM },	      /* andn */
	{ 2, { 0, 0xf7 }, 2, 1, 8, VEX | RM | PART }, /* bextr */
	{ 2, { 0, 0xf3 }, 2, 1, 1, VEX | RM },
	{ 2, { 0, 0xf3 }, 2, 1, 2, VEX | RM },
	{ 2, { 3, 0xf6 }, 2, 1, 8, VEX | RM },
	{ 2, { 1, 0xf7 }, 2, 1, 8, VEX | RM },
	{ 2, { 2, 0xf7 }, 2, 1, 8, VEX | RM },
	{ 2, { 3, 0xf7 }, 2, 1, 8, VEX | RM },
	{ 2, { 3, 0xf5 }, 2, 1, 8, VEX | RM | PART },
	{ 3, { 3, 0xf0 }, 2, 1, 8, VEX | RM | I8 },
	{ 0, { 0x0f, 0x10 }, 2, 8, 8, RM | PART }, /* vectors */
	{ 0x66, { 0x0f, 0x10 }, 2, 8, 8, RM | PART },
	{ 0xf3, { 0x0f, 0x10 }, 2, 3, 8, RM | PART },
	{ 0xf2, { 0x0f, 0x10 }, 2, 3, 8, RM | PART },
	{ 0, { 0x0f, 0x28 }, 2, 8, 8, RM | PART },
	{ 0x66, { 0x0f, 0x28 }, 2, 8, 8, RM | PART },
	{ 0xf3, { 0x0f, 0x2a }, 2, 1, 8, RM | PART | WIDE },
	{ 0xf3, { 0x0f, 0x2c }, 2, 2, 8, RM | PART | WIDE },
	{ 0xf2, { 0x0f, 0x2a }, 2, 1, 8, RM | PART | WIDE },
	{ 0xf2, { 0x0f, 0x2c }, 2, 2, 8, RM | PART | WIDE },
	{ 0, { 0x0f, 0x50 }, 2, 16, 8, RM | PART },
	{ 0x66, { 0x0f, 0x50 }, 2, 2, 8, RM | PART },
	{ 0x66, { 0x0f, 0x54 }, 2, 12, 8, RM | PART },
	{ 0xf3, { 0x0f, 0x51 }, 2, 1, 8, RM | PART },
	{ 0xf3, { 0x0f, 0x58 }, 2, 8, 8, RM | PART },
	{ 0xf2, { 0x0f, 0x51 }, 2, 1, 8, RM | PART },
	{ 0xf2, { 0x0f, 0x58 }, 2, 3, 8, RM | PART },
	{ 0xf2, { 0x0f, 0x5c }, 2, 4, 8, RM | PART },
	{ 0x66, { 0x0f, 0x60 }, 2, 16, 8, RM | PART },
	{ 0xf3, { 0x0f, 0x6f }, 2, 1, 8, RM | PART },
	{ 0xf3, { 0x0f, 0x7e }, 2, 2, 8, RM | PART },
	{ 0x66, { 0x0f, 0x6e }, 2, 1, 8, RM | PART | WIDE },
	{ 0x66, { 0x0f, 0x7e }, 2, 1, 8, RM | PART | WIDE },
	{ 0x66, { 0x0f, 0x70 }, 2, 1, 8, RM | I8 | PART },
	{ 0x66, { 0x0f, 0x71 }, 2, 3, 8, REG | I8 | PART },
	{ 0x66, { 0x0f, 0x74 }, 2, 3, 8, RM | PART },
	{ 0x66, { 0x0f, 0x7f }, 2, 1, 8, RM | PART },
	{ 0x66, { 0x0f, 0xc4 }, 2, 3, 8, RM | I8 | PART },
	{ 0x66, { 0x0f, 0xd1 }, 2, 46, 8, RM | PART },
	{ 0x66, { 0x0f, 0x38, 0x00 }, 3, 12, 8, RM | PART },
	{ 0x66, { 0x0f, 0x3a, 0x0f }, 3, 1, 8, RM | I8 | PART },
	{ 0x66, { 0x0f, 0x3a, 0x14 }, 3, 3, 8, RM | I8 | PART | WIDE },
	{ 0x66, { 0x0f, 0x3a, 0x20 }, 3, 1, 8, RM | I8 | PART },
	{ 0x66, { 0x0f, 0x3a, 0x22 }, 3, 1, 8, RM | I8 | PART | WIDE },
	{ 0x66, { 0x0f, 0x3a, 0x63 }, 3, 1, 8, RM | I8 | PART },
	{ 0x66, { 0x0f, 0x73 }, 2, 1, 3, REG | I8 | PART },
	{ 0x66, { 0x0f, 0x73 }, 2, 1, 7, REG | I8 | PART },
	{ 0x66, { 0x0f, 0x38, 0x38 }, 3, 10, 8, RM | PART },
};

static const int general[] = {
	UC_X86_REG_RAX, UC_X86_REG_RDX,	    UC_X86_REG_RCX,	UC_X86_REG_RBX, UC_X86_REG_RSI,
	UC_X86_REG_RDI, UC_X86_REG_RBP,	    UC_X86_REG_RSP,	UC_X86_REG_R8,	UC_X86_REG_R9,
	UC_X86_REG_R10, UC_X86_REG_R11,	    UC_X86_REG_R12,	UC_X86_REG_R13, UC_X86_REG_R14,
	UC_X86_REG_R15, UC_X86_REG_FS_BASE, UC_X86_REG_GS_BASE,
};

static const uint8_t numbers[] = { 0, 1,  2,  3,  4,  5,  6,  7,	  8,
				   9, 10, 11, 12, 13, 14, 15, VTRACE_TLS, VTRACE_GS };

static const int vectors[] = {
	UC_X86_REG_XMM0,  UC_X86_REG_XMM1,  UC_X86_REG_XMM2,  UC_X86_REG_XMM3,
	UC_X86_REG_XMM4,  UC_X86_REG_XMM5,  UC_X86_REG_XMM6,  UC_X86_REG_XMM7,
	UC_X86_REG_XMM8,  UC_X86_REG_XMM9,  UC_X86_REG_XMM10, UC_X86_REG_XMM11,
	UC_X86_REG_XMM12, UC_X86_REG_XMM13, UC_X86_REG_XMM14, UC_X86_REG_XMM15,
};

static uint64_t flags_to_machine(uint8_t f)
{
	return 2 | (f & VTRACE_C ? 1 : 0) | (f & VTRACE_P ? 1 << 2 : 0) |
	       (f & VTRACE_Z ? 1 << 6 : 0) | (f & VTRACE_S ? 1 << 7 : 0) |
	       (f & VTRACE_O ? 1 << 11 : 0);
}

static uint8_t flags_of_machine(uint64_t f)
{
	return (f & 1 ? VTRACE_C : 0) | (f >> 2 & 1 ? VTRACE_P : 0) | (f >> 6 & 1 ? VTRACE_Z : 0) |
	       (f >> 7 & 1 ? VTRACE_S : 0) | (f >> 11 & 1 ? VTRACE_O : 0);
}

/* By DWARF's number. */
static uint64_t content(int number)
{
	if (number == 7)
		return oracle_pointer() & ~15ull;
	if ((number >= 3 && number <= 6) || (number >= 12 && number <= 15))
		return oracle_pointer() & ~(oracle_random() & 15);
	if (number >= FIRST_SMALL)
		return oracle_random() % 64;
	return oracle_value();
}

/* ---- one instruction ------------------------------------------------------------------------- */

struct operands {
	uint8_t modrm, sib, disp;
	bool has_sib, has_disp;
	uint8_t rex; /* r, x, b */
};

static void choose_memory(struct operands *o)
{
	uint8_t base = pointers[oracle_random() % sizeof(pointers)];
	bool index = oracle_random() % 2;

	o->modrm |= 0x40 | (base & 7);
	o->rex |= base >> 3;
	o->has_disp = true;
	o->disp = (uint8_t)oracle_random();
	o->has_sib = index || (base & 7) == RSP;
	if (!o->has_sib)
		return;
	o->modrm = (o->modrm & ~7) | 4;
	o->sib = (uint8_t)(oracle_random() % 4 << 6) | (base & 7);
	if (index) {
		o->sib |= (uint8_t)(oracle_random() % NR_SMALL << 3);
		o->rex |= 2;
	} else {
		o->sib |= 4 << 3;
	}
}

static void choose_operands(const struct encoding *e, struct operands *o)
{
	uint8_t reg = oracle_random() % 16;

	memset(o, 0, sizeof(*o));
	if (e->extension < 8)
		reg = e->extension;
	o->modrm = (uint8_t)((reg & 7) << 3);
	o->rex = (uint8_t)(reg >> 3 << 2);
	if (e->how & MEM || (e->how & RM && oracle_random() % 2)) {
		choose_memory(o);
	} else {
		reg = oracle_random() % 16;
		o->modrm |= 0xc0 | (reg & 7);
		o->rex |= reg >> 3;
	}
}

static size_t put_immediate(uint8_t *code, const struct encoding *e, bool half, bool whole)
{
	uint64_t v = oracle_value();
	size_t len = e->how & I8	    ? 1
		     : e->how & JUMP	    ? 1
		     : e->how & I16	    ? 2
		     : e->how & IV && whole ? 8
		     : e->how & (IZ | IV)   ? (half ? 2 : 4)
					    : 0;

	if (e->how & I16)
		v &= 0x78;
	if (e->how & JUMP)
		v &= 0x7f;
	memcpy(code, &v, len);
	return len;
}

static size_t put_operands(uint8_t *code, const struct operands *o)
{
	size_t n = 0;

	code[n++] = o->modrm;
	if (o->has_sib)
		code[n++] = o->sib;
	if (o->has_disp)
		code[n++] = o->disp;
	return n;
}

/* Prefix 2 and 3 name the map, the first byte of the opcode the prefix that it stands for. */
static size_t put_vex(uint8_t *code, const struct encoding *e)
{
	struct operands o;
	size_t n = 0;
	uint8_t other = oracle_random() % 16, w = oracle_random() % 2;

	choose_operands(e, &o);
	code[n++] = 0xc4;
	code[n++] = (uint8_t)((~o.rex & 7) << 5 | e->prefix);
	if (e->prefix == 3)
		other = 0;
	code[n++] = (uint8_t)(w << 7 | (~other & 15) << 3 | e->opcode[0]);
	code[n++] = e->opcode[1];
	n += put_operands(code + n, &o);
	return n + put_immediate(code + n, e, false, w);
}

static size_t put_legacy(uint8_t *code, const struct encoding *e)
{
	bool half = e->how & WIDE && !e->prefix && oracle_random() % 4 == 0;
	bool whole = e->how & WIDE && oracle_random() % 2;
	bool operands = e->how & (RM | REG | MEM);
	struct operands o = { 0 };
	size_t n = 0;
	uint8_t last = e->opcode[e->len - 1], rex;

	if (operands)
		choose_operands(e, &o);
	/* The arithmetic ones stand eight apart, the others one behind the other. */
	last += (uint8_t)(oracle_random() % e->nr) << (e->len == 1 && last < 6 ? 3 : 0);
	if (o.has_disp && oracle_random() % 16 == 0)
		code[n++] = oracle_random() % 2 ? 0x64 : 0x65;
	/* Of four bytes that are equal it clears the upper half of rax (cmpxchg). */
	whole |= !half && e->opcode[1] == 0xb1 && e->how & WIDE;
	/* It aborts at a comparison with lock, which there is not. */
	if (o.has_disp && e->how & LOCKS && (last & 0xfe) != 0x38 && oracle_random() % 8 == 0)
		code[n++] = 0xf0;
	if (half)
		code[n++] = 0x66;
	if (e->prefix)
		code[n++] = e->prefix;
	rex = o.rex | (whole ? 8 : 0) | (e->how & LOW3 ? oracle_random() % 2 : 0);
	if (rex || (e->how & BYTES && oracle_random() % 2))
		code[n++] = 0x40 | rex;
	memcpy(code + n, e->opcode, e->len);
	n += e->len;
	code[n - 1] = last;
	if (operands)
		n += put_operands(code + n, &o);
	return n + put_immediate(code + n, e, half && !whole, whole);
}

static size_t generate(uint8_t *code, bool *integer, bool *jumps)
{
	const struct encoding *e =
		&encodings[oracle_random() % (sizeof(encodings) / sizeof(encodings[0]))];

	*integer = !(e->how & PART);
	*jumps = e->how & JUMP;
	return e->how & VEX ? put_vex(code, e) : put_legacy(code, e);
}

const struct oracle_arch oracle_x86 = {
	.name = "x86-64",
	.arch = VTRACE_X86_64,
	.uc_arch = UC_ARCH_X86,
	.uc_mode = UC_MODE_64,
	.cpu = UC_CPU_X86_EPYC_ROME,
	.pc = UC_X86_REG_RIP,
	.flags = UC_X86_REG_EFLAGS,
	.general = general,
	.vectors = vectors,
	.numbers = numbers,
	.nr_general = sizeof(numbers),
	.nr_vectors = 16,
	.known_pct = 90,
	.filler = 0xf4, /* hlt */
	.flags_to_machine = flags_to_machine,
	.flags_of_machine = flags_of_machine,
	.flags_compared = VTRACE_FLAGS,
	.content = content,
	.generate = generate,
};
