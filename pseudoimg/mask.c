/* SPDX-License-Identifier: BSD-2-Clause */
/* Which operands change where code, or what it refers to, is moved. */
#include <elf.h>
#include <string.h>

#include "insn_x86.h"
#include "pseudoimg_internal.h"

/* ---- x86-64 -------------------------------------------------------------------------------- */

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

/* Zero a number of 64 bits: an address, or a constant that may be one. */
static bool mask_number(uint8_t *at, size_t len)
{
	bool any = false;

	for (size_t i = 0; i < len; i++) {
		any |= at[i] != 0;
		at[i] = 0;
	}
	return any;
}

/* Behind bytes that are no instruction all stays as it is: they are data, or the rest is. */
static bool mask_x86(uint8_t *code, size_t len)
{
	struct insn_x86_numbers n;
	bool any = false;

	for (size_t pos = 0; pos < len && insn_x86_find_numbers(true, code + pos, len - pos, &n);) {
		uint8_t *disp = code + pos + n.disp_at, *imm = code + pos + n.imm_at;

		pos += n.len;
		if (n.pc_relative)
			any |= mask_distance(disp, n.disp_len, (int64_t)pos, len);
		if (n.branch)
			any |= mask_distance(imm, n.imm_len, (int64_t)pos, len);
		if (n.disp_len == 8)
			any |= mask_number(disp, n.disp_len);
		if (n.imm_len == 8)
			any |= mask_number(imm, n.imm_len);
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
