/* SPDX-License-Identifier: BSD-2-Clause */
/* Where two states of a routine differ, and what that looks like. */
#include <elf.h>
#include <string.h>

#include "insn_x86.h"
#include "kdiff.h"

const char *const kdiff_causes[KDIFF_NR_CAUSES] = {
	[KDIFF_KEY] = "static key",
	[KDIFF_TRACE] = "tracing",
	[KDIFF_CALL] = "static call",
	[KDIFF_OTHER] = "other",
};

/* The effect of an instruction, as far as it tells patches apart. */
enum insn_class { NOP, JUMP, CALL, ANY };

#define A64_NOP 0xd503201fu

/* ---- x86-64 ---------------------------------------------------------------------------------- */

static enum insn_class class_x86(const uint8_t *code, size_t len, size_t *n)
{
	ZydisDecodedInstruction i;

	*n = 1;
	if (!insn_x86_decode_head(true, code, len, &i))
		return ANY;
	*n = i.length;
	if (i.mnemonic == ZYDIS_MNEMONIC_NOP)
		return NOP;
	if (!i.raw.imm[0].is_relative)
		return ANY;
	return i.mnemonic == ZYDIS_MNEMONIC_JMP	   ? JUMP
	       : i.mnemonic == ZYDIS_MNEMONIC_CALL ? CALL
						   : ANY;
}

/* At the start, or behind the landing mark of indirect calls (endbr64). */
static bool is_start_x86(const uint8_t *code, size_t at)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };

	return at == 0 || (at == sizeof(endbr) && !memcmp(code, endbr, sizeof(endbr)));
}

/* ---- aarch64 --------------------------------------------------------------------------------- */

static enum insn_class class_a64(const uint8_t *code, size_t len, size_t *n)
{
	uint32_t insn;

	*n = len < 4 ? len : 4;
	if (len < 4)
		return ANY;
	memcpy(&insn, code, sizeof(insn));
	if (insn == A64_NOP)
		return NOP;
	if ((insn & 0xfc000000u) == 0x14000000u)
		return JUMP;
	return (insn & 0xfc000000u) == 0x94000000u ? CALL : ANY;
}

/* The call is the second instruction, the first saves the return address; landing marks before. */
static bool is_start_a64(size_t at)
{
	return at <= 12;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* *n: bytes to the next instruction. */
static enum insn_class class_at(uint32_t machine, const uint8_t *code, size_t len, size_t *n)
{
	return machine == EM_X86_64 ? class_x86(code, len, n) : class_a64(code, len, n);
}

static size_t insn_len(uint32_t machine, const uint8_t *code, size_t len)
{
	size_t n;

	class_at(machine, code, len, &n);
	return n;
}

/* The class of a range: all of it nops, or a single instruction. */
static enum insn_class class_of(uint32_t machine, const uint8_t *code, size_t len)
{
	enum insn_class first = ANY;
	size_t n;

	for (size_t at = 0; at < len; at += n) {
		enum insn_class c = class_at(machine, code + at, len - at, &n);

		if (at == 0)
			first = c;
		else if (c != first || c != NOP)
			return ANY;
	}
	return first;
}

static enum kdiff_cause cause_of(uint32_t machine, const uint8_t *was, const uint8_t *is,
				 const struct kdiff_place *p)
{
	enum insn_class a = class_of(machine, was + p->at, p->len);
	enum insn_class b = class_of(machine, is + p->at, p->len);
	bool start = machine == EM_X86_64 ? is_start_x86(is, p->at) : is_start_a64(p->at);

	if ((a == NOP && b == JUMP) || (a == JUMP && b == NOP))
		return KDIFF_KEY;
	if (start && (a == NOP || a == CALL) && (b == NOP || b == CALL))
		return KDIFF_TRACE;
	if ((a == CALL || a == JUMP) && (b == CALL || b == JUMP || b == NOP))
		return KDIFF_CALL;
	return a == NOP && b == CALL ? KDIFF_CALL : KDIFF_OTHER;
}

bool kdiff_next(uint32_t machine, const uint8_t *was, const uint8_t *is, size_t len, size_t from,
		struct kdiff_place *out)
{
	size_t a = from, b = from, start = from;

	*out = (struct kdiff_place){ 0 };
	/* Both are walked by instructions; where they stand together again, a stretch ends. */
	while (a < len) {
		if (a <= b)
			a += insn_len(machine, was + a, len - a);
		if (b < a)
			b += insn_len(machine, is + b, len - b);
		if (a != b)
			continue;
		if (memcmp(was + start, is + start, a - start) != 0)
			break;
		start = a;
	}
	if (start >= len || memcmp(was + start, is + start, a - start) == 0)
		return false;
	out->at = start;
	out->len = a - start;
	for (size_t i = start; i < a; i++)
		out->bytes += was[i] != is[i];
	out->cause = cause_of(machine, was, is, out);
	return true;
}
