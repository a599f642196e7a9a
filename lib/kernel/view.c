/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses in the kernel's code are replaced by places in its image here, so that the code may be
 * shown.
 */
#include <elf.h>
#include <string.h>

#include "base.h"
#include "insn_x86.h"
#include "kernel.h"

/*
 * The upper half of the address space; its last part holds no code and no data, but is what small
 * negative numbers look like. The kernel and its modules lie above TOP_2GIB, which is no secret
 * itself: kernels compute with it.
 */
#define HALF	   UINT64_C(0xffff800000000000)
#define TOP_2GIB   UINT64_C(0xffffffff80000000)
#define NO_ADDRESS UINT64_C(0xffffffffff000000)

static uint64_t get(const uint8_t *p, size_t len)
{
	uint64_t v = 0;

	memcpy(&v, p, len);
	return v;
}

/* Sign-extended, as the processor takes it. */
static uint64_t get_signed(const uint8_t *p, size_t len)
{
	uint64_t v = get(p, len);

	return len == 4	  ? (uint64_t)(int64_t)(int32_t)v
	       : len == 1 ? (uint64_t)(int64_t)(int8_t)v
			  : v;
}

static bool in_own(const struct kernel_view *v, uint64_t addr)
{
	return addr >= v->own_start && addr < v->own_end;
}

/* Where the kernel put its code and data: never shown as it is. */
static bool is_secret(uint64_t value)
{
	return value > TOP_2GIB && value < NO_ADDRESS;
}

/* @wide: any address of the kernel fits. */
static void hide_absolute(const struct kernel_view *v, uint8_t *p, size_t len, bool wide)
{
	uint64_t value = get_signed(p, len), shown = 0;

	if (in_own(v, value))
		shown = value - v->addr + v->at;
	else if (!is_secret(value) && !(wide && value >= HALF && value < TOP_2GIB))
		return;
	memcpy(p, &shown, len);
}

/* The distance at @p counts from @end, an offset in the code. */
static void hide_relative(const struct kernel_view *v, uint8_t *p, size_t len, size_t end)
{
	uint64_t target = v->addr + end + get_signed(p, len), shown;

	if (len < 4 || in_own(v, target))
		return;
	shown = v->place(v->ctx, target) - (v->at + end);
	memcpy(p, &shown, len);
}

/* ---- x86-64 ---------------------------------------------------------------------------------- */

/*
 * Addresses that are data between the code, and end in the instruction at @at; but for such as come
 * of a -1 that an instruction has at its end. Wherever the kernel lies: so that equal code is shown
 * as equal.
 */
static void hide_data(uint8_t *code, size_t at, const struct insn_x86_numbers *i)
{
	for (size_t end = at + 1; end <= at + i->len; end++) {
		if (end < 8 || (i->imm_len >= 4 && end == at + i->len))
			continue;
		if (is_secret(get(code + end - 8, 8)))
			memset(code + end - 8, 0, 8);
	}
}

static size_t hide_x86(const struct kernel_view *v, uint8_t *code, size_t len)
{
	struct insn_x86_numbers i;
	size_t at = 0;

	for (; at < len; at += i.len) {
		uint8_t *imm, *disp;

		if (!insn_x86_find_numbers(true, code + at, len - at, &i))
			break;
		imm = code + at + i.imm_at;
		disp = code + at + i.disp_at;
		if (i.branch)
			hide_relative(v, imm, i.imm_len, at + i.len);
		else if (i.address)
			hide_absolute(v, imm, i.imm_len, i.imm_len == 8);
		if (i.pc_relative)
			hide_relative(v, disp, i.disp_len, at + i.len);
		else if (i.disp_len >= 4)
			hide_absolute(v, disp, i.disp_len, i.disp_len == 8);
		hide_data(code, at, &i);
	}
	return at;
}

/* ---- aarch64 --------------------------------------------------------------------------------- */

enum { A64_IMM16_AT = 5 };

/* b, bl: 26 bits of words from here. */
static uint32_t hide_branch(const struct kernel_view *v, uint32_t insn, size_t at)
{
	int64_t words = (int32_t)(insn << 6) >> 6;
	uint64_t target = v->addr + at + (uint64_t)(words * 4), shown;

	if (in_own(v, target))
		return insn;
	shown = v->place(v->ctx, target) - (v->at + at);
	return (insn & 0xfc000000u) | ((uint32_t)(shown >> 2) & 0x03ffffffu);
}

/* adrp: 21 bits of pages. Where the image has the same pages, the distance in it is the same. */
static uint32_t hide_page(const struct kernel_view *v, uint32_t insn, size_t at)
{
	int64_t pages = (int32_t)((insn >> 5 & 0x7ffff) << 13) >> 11 | (int32_t)(insn >> 29 & 3);
	uint64_t target = ((v->addr + at) & ~UINT64_C(4095)) + (uint64_t)(pages * 4096);

	return in_own(v, target) && !((v->addr - v->at) & 4095) ? insn : insn & 0x9f00001fu;
}

static bool is_wide_move(uint32_t insn, bool keep)
{
	uint32_t op = insn & 0xff800000u;

	return keep ? op == 0xf2800000u : op == 0xd2800000u || op == 0x92800000u;
}

/* movz or movn, then movk of the same register: what it makes of them. Length of the row in @nr. */
static uint64_t moved_value(const uint8_t *code, size_t len, size_t at, size_t *nr)
{
	uint32_t insn = (uint32_t)get(code + at, 4), first = insn;
	uint64_t value = (uint64_t)(insn >> A64_IMM16_AT & 0xffff) << (insn >> 21 & 3) * 16;

	if ((insn & 0xff800000u) == 0x92800000u)
		value = ~value;
	for (*nr = 1; at + *nr * 4 + 4 <= len; ++*nr) {
		unsigned int shift;

		insn = (uint32_t)get(code + at + *nr * 4, 4);
		if (!is_wide_move(insn, true) || (insn & 31) != (first & 31))
			break;
		shift = (insn >> 21 & 3) * 16;
		value &= ~(UINT64_C(0xffff) << shift);
		value |= (uint64_t)(insn >> A64_IMM16_AT & 0xffff) << shift;
	}
	return value;
}

/* A kernel address that is put together from 16-bit parts: all of them become zero. */
static void hide_moves(uint8_t *code, size_t len, size_t at)
{
	size_t nr;
	uint64_t value = moved_value(code, len, at, &nr);

	if (nr < 2 || value < HALF || value >= NO_ADDRESS)
		return;
	for (size_t i = 0; i < nr; i++) {
		uint32_t insn = (uint32_t)get(code + at + i * 4, 4);

		insn &= ~(0xffffu << A64_IMM16_AT);
		memcpy(code + at + i * 4, &insn, 4);
	}
}

/* Addresses that are data between the code: no instruction begins with so many ones. */
static void hide_words(uint8_t *code, size_t len)
{
	for (size_t at = 0; at + 8 <= len; at += 4) {
		uint64_t value = get(code + at, 8);

		if (value >= HALF && value < NO_ADDRESS)
			memset(code + at, 0, sizeof(value));
	}
}

static size_t hide_a64(const struct kernel_view *v, uint8_t *code, size_t len)
{
	size_t at = 0;

	for (; at + 4 <= len; at += 4) {
		uint32_t insn = (uint32_t)get(code + at, 4);

		if ((insn & 0x7c000000u) == 0x14000000u)
			insn = hide_branch(v, insn, at);
		else if ((insn & 0x9f000000u) == 0x90000000u)
			insn = hide_page(v, insn, at);
		memcpy(code + at, &insn, 4);
		if (is_wide_move(insn, false))
			hide_moves(code, len, at);
	}
	hide_words(code, at);
	return at;
}

size_t kernel_view_hide(const struct kernel_view *v, uint8_t *code, size_t len)
{
	size_t good = 0;

	if (v->machine == EM_X86_64)
		good = hide_x86(v, code, len);
	else if (v->machine == EM_AARCH64)
		good = hide_a64(v, code, len);
	memset(code + good, 0, len - good);
	return good;
}
