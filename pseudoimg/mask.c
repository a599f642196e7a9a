/* SPDX-License-Identifier: BSD-2-Clause */
/* Which operands change where code, or what it refers to, is moved. */
#include <elf.h>
#include <string.h>

#include "pseudoimg_internal.h"

/* ---- x86-64: lengths of instructions, and where their operands stand ------------------------ */

enum {
	NONE = 0,
	MODRM = 1,
	IMM8 = 2,
	IMM16 = 4,
	IMMZ = 8,     /* 4 bytes, 2 with an operand size prefix */
	IMMV = 16,    /* 8 bytes with REX.W, else as IMMZ */
	MOFFS = 32,   /* an address */
	REL8 = 64,    /* of the next instruction */
	REL32 = 128,  /* likewise */
	GROUP3 = 256, /* an immediate, if the register field is 0 or 1 */
	BAD = 512,
	PREFIX = 1024,
	REX = 2048,
	OPERANDS = IMM8 | IMM16 | IMMZ | IMMV | MOFFS | REL8 | REL32,
};

struct range {
	uint8_t first, last;
	uint16_t what;
};

/* Opcodes of one byte, as far as the table of the lowest eight (below) does not say it. */
static const struct range one_byte[] = {
	{ 0x26, 0x26, PREFIX },
	{ 0x2e, 0x2e, PREFIX },
	{ 0x36, 0x36, PREFIX },
	{ 0x3e, 0x3e, PREFIX },
	{ 0x40, 0x4f, REX },
	{ 0x50, 0x5f, NONE },
	{ 0x60, 0x62, BAD },
	{ 0x63, 0x63, MODRM },
	{ 0x64, 0x67, PREFIX },
	{ 0x68, 0x68, IMMZ },
	{ 0x69, 0x69, MODRM | IMMZ },
	{ 0x6a, 0x6a, IMM8 },
	{ 0x6b, 0x6b, MODRM | IMM8 },
	{ 0x6c, 0x6f, NONE },
	{ 0x70, 0x7f, REL8 },
	{ 0x80, 0x80, MODRM | IMM8 },
	{ 0x81, 0x81, MODRM | IMMZ },
	{ 0x82, 0x82, BAD },
	{ 0x83, 0x83, MODRM | IMM8 },
	{ 0x84, 0x8f, MODRM },
	{ 0x9a, 0x9a, BAD },
	{ 0x90, 0x9f, NONE },
	{ 0xa0, 0xa3, MOFFS },
	{ 0xa8, 0xa8, IMM8 },
	{ 0xa9, 0xa9, IMMZ },
	{ 0xa4, 0xaf, NONE },
	{ 0xb0, 0xb7, IMM8 },
	{ 0xb8, 0xbf, IMMV },
	{ 0xc0, 0xc1, MODRM | IMM8 },
	{ 0xc2, 0xc2, IMM16 },
	{ 0xc3, 0xc3, NONE },
	{ 0xc4, 0xc5, BAD },
	{ 0xc6, 0xc6, MODRM | IMM8 },
	{ 0xc7, 0xc7, MODRM | IMMZ },
	{ 0xc8, 0xc8, IMM16 | IMM8 },
	{ 0xca, 0xca, IMM16 },
	{ 0xcd, 0xcd, IMM8 },
	{ 0xce, 0xce, BAD },
	{ 0xc9, 0xcf, NONE },
	{ 0xd0, 0xd3, MODRM },
	{ 0xd4, 0xd6, BAD },
	{ 0xd7, 0xd7, NONE },
	{ 0xd8, 0xdf, MODRM },
	{ 0xe0, 0xe3, REL8 },
	{ 0xe4, 0xe7, IMM8 },
	{ 0xe8, 0xe9, REL32 },
	{ 0xea, 0xea, BAD },
	{ 0xeb, 0xeb, REL8 },
	{ 0xf0, 0xf0, PREFIX },
	{ 0xf2, 0xf3, PREFIX },
	{ 0xf6, 0xf6, MODRM | IMM8 | GROUP3 },
	{ 0xfe, 0xff, MODRM },
	{ 0xf7, 0xf7, MODRM | IMMZ | GROUP3 },
	{ 0xec, 0xfd, NONE },
};

/* Behind 0f; all else has a ModRM byte and no more. */
static const struct range two_bytes[] = {
	{ 0x04, 0x04, BAD },	      { 0x05, 0x09, NONE },	    { 0x0a, 0x0a, BAD },
	{ 0x0b, 0x0b, NONE },	      { 0x0c, 0x0c, BAD },	    { 0x0e, 0x0e, NONE },
	{ 0x0f, 0x0f, MODRM | IMM8 }, { 0x24, 0x27, BAD },	    { 0x36, 0x36, BAD },
	{ 0x30, 0x37, NONE },	      { 0x38, 0x3f, BAD },	    { 0x70, 0x73, MODRM | IMM8 },
	{ 0x77, 0x77, NONE },	      { 0x80, 0x8f, REL32 },	    { 0xa0, 0xa2, NONE },
	{ 0xa4, 0xa4, MODRM | IMM8 }, { 0xa6, 0xa7, BAD },	    { 0xa8, 0xaa, NONE },
	{ 0xac, 0xac, MODRM | IMM8 }, { 0xba, 0xba, MODRM | IMM8 }, { 0xc2, 0xc2, MODRM | IMM8 },
	{ 0xc4, 0xc6, MODRM | IMM8 }, { 0xc8, 0xcf, NONE },
};

static unsigned int look_up(const struct range *v, size_t nr, uint8_t op, unsigned int otherwise)
{
	for (size_t i = 0; i < nr; i++)
		if (op >= v[i].first && op <= v[i].last)
			return v[i].what;
	return otherwise;
}

static unsigned int of_one_byte(uint8_t op)
{
	static const uint16_t low[8] = { MODRM, MODRM, MODRM, MODRM, IMM8, IMMZ, BAD, BAD };
	unsigned int what =
		look_up(one_byte, sizeof(one_byte) / sizeof(one_byte[0]), op, UINT32_MAX);

	return what != UINT32_MAX ? what : op < 0x40 ? low[op & 7] : BAD;
}

static unsigned int of_two_bytes(uint8_t op)
{
	return look_up(two_bytes, sizeof(two_bytes) / sizeof(two_bytes[0]), op, MODRM);
}

/* What each opcode of the two maps wants, looked up once. */
static uint16_t maps[2][256];

static void make_maps(void)
{
	if (maps[0][0])
		return;
	for (unsigned int op = 255; op < 256; op--) {
		maps[1][op] = (uint16_t)of_two_bytes((uint8_t)op);
		maps[0][op] = (uint16_t)of_one_byte((uint8_t)op);
	}
}

struct x86 {
	const uint8_t *p, *end;
	unsigned int what;
	bool wide, narrow, short_addr; /* REX.W, prefixes 66 and 67 */
	const uint8_t *rip;	       /* a displacement relative to the next instruction */
};

/* Behind a vector prefix: which map, and that the rest is as in it. */
static bool vector_opcode(struct x86 *x, unsigned int map)
{
	if (x->p >= x->end)
		return false;
	switch (map) {
	case 1:
		x->what = maps[1][*x->p] & (unsigned int)~REL32;
		if (*x->p != 0x77)
			x->what |= MODRM;
		break;
	case 2:
	case 5:
	case 6:
		x->what = MODRM;
		break;
	case 3:
		x->what = MODRM | IMM8;
		break;
	default:
		return false;
	}
	x->p++;
	return true;
}

static bool opcode(struct x86 *x)
{
	uint8_t op = *x->p++;
	size_t left = (size_t)(x->end - x->p);

	if (op == 0xc5 && left >= 2) {
		x->p += 1;
		return vector_opcode(x, 1);
	}
	if (op == 0xc4 && left >= 3) {
		x->p += 2;
		return vector_opcode(x, x->p[-2] & 0x1f);
	}
	if (op == 0x62 && left >= 4) {
		x->p += 3;
		return vector_opcode(x, x->p[-3] & 7);
	}
	x->what = maps[0][op];
	if (op != 0x0f)
		return true;
	if (!left)
		return false;
	op = *x->p++;
	x->what = maps[1][op];
	if (op == 0x38 || op == 0x3a) {
		if (x->p++ >= x->end)
			return false;
		x->what = op == 0x38 ? MODRM : MODRM | IMM8;
	}
	return true;
}

static bool modrm(struct x86 *x)
{
	unsigned int mod, rm, base, len;

	if (x->p >= x->end)
		return false;
	mod = *x->p >> 6;
	rm = *x->p & 7;
	if ((x->what & GROUP3) && (*x->p & 0x38) > 8)
		x->what &= (unsigned int)~(IMM8 | IMMZ);
	x->p++;
	base = rm;
	if (mod != 3 && rm == 4) {
		if (x->p >= x->end)
			return false;
		base = *x->p++ & 7;
	}
	len = mod == 1 ? 1 : mod == 2 || (mod == 0 && base == 5) ? 4 : 0;
	if ((size_t)(x->end - x->p) < len)
		return false;
	if (mod == 0 && rm == 5)
		x->rip = x->p;
	x->p += len;
	return true;
}

static size_t operands_len(const struct x86 *x)
{
	size_t z = x->narrow ? 2 : 4, len = 0;

	len += x->what & (IMM8 | REL8) ? 1 : 0;
	len += x->what & IMM16 ? 2 : 0;
	len += x->what & IMMZ ? z : 0;
	len += x->what & IMMV ? (x->wide ? 8 : z) : 0;
	len += x->what & MOFFS ? (x->short_addr ? 4 : 8) : 0;
	len += x->what & REL32 ? 4 : 0;
	return len;
}

static bool prefixes(struct x86 *x)
{
	for (; x->p < x->end && maps[0][*x->p] == PREFIX; x->p++) {
		x->narrow |= *x->p == 0x66;
		x->short_addr |= *x->p == 0x67;
	}
	if (x->p < x->end && maps[0][*x->p] == REX)
		x->wide = *x->p++ & 8;
	return x->p < x->end;
}

/* Zero @len bytes in @at, the distance from @next on that they hold, if it leaves the code. */
static bool mask_distance(uint8_t *at, size_t len, int64_t next, size_t code_len)
{
	int32_t by = 0;
	int64_t to;

	memcpy(&by, at, len);
	if (len == 1)
		by = (int8_t)by;
	to = next + by;
	if (to >= 0 && to < (int64_t)code_len)
		return false;
	memset(at, 0, len);
	return by != 0;
}

static bool mask_x86_at(uint8_t *code, size_t len, size_t *pos)
{
	struct x86 x = { .p = code + *pos, .end = code + len };
	uint8_t *operands;
	bool any = false;
	size_t n;

	*pos = len;
	if (!prefixes(&x) || !opcode(&x) || (x.what & (BAD | PREFIX | REX)) ||
	    ((x.what & MODRM) && !modrm(&x)))
		return false;
	operands = code + (x.p - code);
	n = x.what & OPERANDS ? operands_len(&x) : 0;
	if ((size_t)(x.end - x.p) < n)
		return false;
	*pos = (size_t)(x.p - code) + n;
	if (!x.rip && !(x.what & (REL8 | REL32 | MOFFS | IMMV)))
		return false;
	if (x.rip)
		any = mask_distance(code + (x.rip - code), 4, (int64_t)*pos, len);
	if (x.what & (REL8 | REL32))
		any |= mask_distance(operands, n, (int64_t)*pos, len);
	if ((x.what & MOFFS) || ((x.what & IMMV) && n == 8)) {
		for (size_t i = 0; i < n; i++)
			any |= operands[i] != 0;
		memset(operands, 0, n);
	}
	return any;
}

static bool mask_x86(uint8_t *code, size_t len)
{
	bool any = false;
	size_t pos = 0;

	make_maps();
	while (pos < len) {
		if (maps[0][code[pos]] == NONE)
			pos++;
		else
			any |= mask_x86_at(code, len, &pos);
	}
	return any;
}

/* ---- aarch64 ------------------------------------------------------------------------------- */

static uint32_t word_at(const uint8_t *code, size_t i)
{
	uint32_t w;

	memcpy(&w, code + 4 * i, sizeof(w));
	return w;
}

static bool clear(uint8_t *code, size_t i, uint32_t bits)
{
	uint32_t w = word_at(code, i), to = w & ~bits;

	memcpy(code + 4 * i, &to, sizeof(to));
	return w != to;
}

/* Bits [@low, @low + @nr) as a signed number. */
static int64_t field(uint32_t w, unsigned int low, unsigned int nr)
{
	return (int64_t)((uint64_t)w << (64 - low - nr)) >> (64 - nr);
}

/* The bits of @w, instruction @i, that hold a distance out of the code. */
static uint32_t distance_bits(uint32_t w, size_t i, size_t len)
{
	uint32_t bits;
	int64_t by;

	if ((w & 0x7c000000) == 0x14000000) { /* b, bl */
		bits = 0x03ffffff;
		by = field(w, 0, 26) * 4;
	} else if ((w & 0xff000000) == 0x54000000 || /* b.cond */
		   (w & 0x7e000000) == 0x34000000 || /* cbz, cbnz */
		   (w & 0x3b000000) == 0x18000000) { /* ldr of a literal */
		bits = 0x00ffffe0;
		by = field(w, 5, 19) * 4;
	} else if ((w & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		bits = 0x0007ffe0;
		by = field(w, 5, 14) * 4;
	} else if ((w & 0x9f000000) == 0x10000000) { /* adr */
		bits = 0x60ffffe0;
		by = field(w, 5, 19) * 4 + (w >> 29 & 3);
	} else {
		return 0;
	}
	by += (int64_t)i * 4;
	return by < 0 || by >= (int64_t)len ? bits : 0;
}

/* Behind adrp: where in the page, as the immediate of an addition, or of a load or store. */
static uint32_t low_bits(uint32_t w, uint32_t page)
{
	if ((w >> 5 & 31) != page)
		return 0;
	if ((w & 0xffc00000) == 0x91000000 || (w & 0x3b000000) == 0x39000000)
		return 0x003ffc00;
	return 0;
}

/* A number of more than 32 bits, in pieces of 16: how many instructions make it. */
static size_t nr_pieces(const uint8_t *code, size_t i, size_t nr)
{
	uint32_t first = word_at(code, i);
	size_t n = 1;

	if ((first & 0xff800000) != 0xd2800000 && (first & 0xff800000) != 0x92800000)
		return 0;
	while (i + n < nr && (word_at(code, i + n) & 0xff80001f) == (0xf2800000 | (first & 31)))
		n++;
	return n >= 3 ? n : 0;
}

static bool mask_aarch64(uint8_t *code, size_t len)
{
	size_t nr = len / 4, pieces = 0;
	bool any = false;

	for (size_t i = 0; i < nr; i++) {
		uint32_t w = word_at(code, i);

		if (!pieces)
			pieces = nr_pieces(code, i, nr);
		if (pieces) {
			any |= clear(code, i, 0x001fffe0);
			pieces--;
		} else if ((w & 0x9f000000) == 0x90000000) { /* adrp */
			any |= clear(code, i, 0x60ffffe0);
			if (i + 1 < nr)
				any |= clear(code, i + 1, low_bits(word_at(code, i + 1), w & 31));
		} else {
			any |= clear(code, i, distance_bits(w, i, len));
		}
	}
	return any;
}

bool pseudoimg_mask(uint32_t machine, uint8_t *code, size_t len)
{
	switch (machine) {
	case EM_X86_64:
		return mask_x86(code, len);
	case EM_AARCH64:
		return mask_aarch64(code, len);
	default:
		return false;
	}
}
