/* SPDX-License-Identifier: BSD-2-Clause */
/* Code without the operands that change when it, or what it calls or reads, is moved. */
#include <elf.h>
#include <string.h>

#include "insn.h"
#include "insn_x86.h"

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

/* The signed number in bits [at, at + bits) of @w. */
static int64_t field(uint32_t w, unsigned int at, unsigned int bits)
{
	return (int32_t)(w << (32 - at - bits)) >> (32 - bits);
}

struct span {
	uint64_t start, end; /* of the procedure, vaddr */
};

static bool inside(const struct span *s, uint64_t vaddr)
{
	return vaddr >= s->start && vaddr < s->end;
}

/* ---- aarch64 --------------------------------------------------------------------------------- */

enum { IMM26 = 0x03ffffff, IMM19 = 0x00ffffe0, IMM14 = 0x0007ffe0, IMM16 = 0x001fffe0 };

/* Branches, and loads from beside the code: what they reach for, if that is outside. */
static uint32_t aarch64_reach(uint32_t w, uint64_t vaddr, const struct span *s)
{
	uint32_t mask = 0;
	int64_t distance = 0;

	if ((w & 0x7c000000) == 0x14000000) { /* b, bl */
		mask = IMM26;
		distance = field(w, 0, 26);
	} else if ((w & 0xff000010) == 0x54000000 || (w & 0x7e000000) == 0x34000000 ||
		   (w & 0x3b000000) == 0x18000000) { /* b.cond, cbz, cbnz, ldr of a literal */
		mask = IMM19;
		distance = field(w, 5, 19);
	} else if ((w & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		mask = IMM14;
		distance = field(w, 5, 14);
	}
	return inside(s, vaddr + (uint64_t)(distance * 4)) ? 0 : mask;
}

static bool is_movk(uint32_t w)
{
	return (w & 0xff800000) == 0xf2800000;
}

/* @next: the instruction behind, 0 for none; *@page: register + 1 that adrp wrote just before. */
static uint32_t aarch64_mask(uint32_t w, uint32_t next, uint64_t vaddr, const struct span *s,
			     uint32_t *page)
{
	uint32_t before = *page, rd = w & 31, rn = w >> 5 & 31;

	*page = 0;
	if ((w & 0x1f000000) == 0x10000000) { /* adr, adrp */
		*page = rd + 1;
		return 0x60ffffe0;
	}
	if (before && rn + 1 == before &&
	    ((w & 0x7f800000) == 0x11000000 || (w & 0x3b000000) == 0x39000000))
		return 0x003ffc00; /* add, or load and store: the place within the page */
	/* A number put together of pieces; one that fits a single piece is a constant. */
	if (is_movk(w) || ((w & 0x9f800000) == 0x92800000 && is_movk(next) && (next & 31) == rd))
		return IMM16;
	return aarch64_reach(w, vaddr, s);
}

static void mask_aarch64(uint8_t *code, size_t len, const struct span *s)
{
	uint32_t page = 0;

	for (size_t i = 0; i + 4 <= len; i += 4) {
		uint32_t w = get32(code + i), next = i + 8 <= len ? get32(code + i + 4) : 0;

		put32(code + i, w & ~aarch64_mask(w, next, s->start + i, s, &page));
	}
}

/* ---- riscv ----------------------------------------------------------------------------------- */

static int64_t jal_distance(uint32_t w)
{
	return field(w, 31, 1) * (1 << 20) | (int64_t)((w >> 12 & 0xff) << 12) |
	       (int64_t)((w >> 20 & 1) << 11) | (int64_t)((w >> 21 & 0x3ff) << 1);
}

/* *@page: register that auipc or lui wrote just before, 0: none. */
static uint32_t riscv_mask(uint32_t w, uint64_t vaddr, const struct span *s, uint32_t *page)
{
	uint32_t op = w & 0x7f, rd = w >> 7 & 31, rs1 = w >> 15 & 31, before = *page;

	*page = 0;
	if (op == 0x17 || op == 0x37) { /* auipc, lui */
		*page = rd;
		return 0xfffff000;
	}
	if (op == 0x6f) /* jal */
		return inside(s, vaddr + (uint64_t)jal_distance(w)) ? 0 : 0xfffff000;
	if (!before || rs1 != before)
		return 0;
	if (op == 0x03 || op == 0x07 || op == 0x13 || op == 0x1b || op == 0x67)
		return 0xfff00000;			  /* loads, additions, jalr */
	return op == 0x23 || op == 0x27 ? 0xfe000f80 : 0; /* stores */
}

static void mask_riscv(uint8_t *code, size_t len, const struct span *s)
{
	uint32_t page = 0;

	for (size_t i = 0; i + 2 <= len;) {
		uint32_t w;

		if ((code[i] & 3) != 3 || i + 4 > len) {
			page = 0;
			i += 2;
			continue;
		}
		w = get32(code + i);
		put32(code + i, w & ~riscv_mask(w, s->start + i, s, &page));
		i += 4;
	}
}

/* ---- x86 ------------------------------------------------------------------------------------- */

static int64_t distance(const uint8_t *p, uint8_t len)
{
	int32_t v = 0;

	if (len == 1)
		return (int8_t)p[0];
	memcpy(&v, p, len < 4 ? len : 4);
	return len == 2 ? (int16_t)v : v;
}

static void mask_x86_at(bool is_64, uint8_t *code, uint64_t vaddr, const struct span *s,
			const struct insn_x86_numbers *n)
{
	uint8_t *imm = code + n->imm_at;
	bool leaves = n->branch && !inside(s, vaddr + n->len + (uint64_t)distance(imm, n->imm_len));

	if (leaves || (is_64 && n->imm_len == 8))
		memset(imm, 0, n->imm_len);
	if (n->no_base)
		memset(code + n->disp_at, 0, n->disp_len);
}

static void mask_x86(bool is_64, uint8_t *code, size_t len, const struct span *s)
{
	struct insn_x86_numbers n;

	for (size_t i = 0; i < len; i += n.len) {
		if (insn_x86_find_numbers(is_64, code + i, len - i, &n))
			mask_x86_at(is_64, code + i, s->start + i, s, &n);
		else
			n.len = 1;
	}
}

/* ---- all ------------------------------------------------------------------------------------- */

void insn_mask(uint32_t machine, uint8_t *code, size_t len, uint64_t vaddr)
{
	struct span s = { vaddr, vaddr + len };

	switch (machine) {
	case EM_X86_64:
	case EM_386:
		mask_x86(machine == EM_X86_64, code, len, &s);
		break;
	case EM_AARCH64:
		mask_aarch64(code, len, &s);
		break;
	case EM_RISCV:
		mask_riscv(code, len, &s);
		break;
	default:
		break;
	}
}
