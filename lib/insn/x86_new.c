/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions that are newer than the disassembler (capstone 4 does not know most of AVX-512): how
 * long they are and what they touch, from the layout of VEX and EVEX in the manuals.
 */
#include "x86.h"

struct shape {
	const uint8_t *code;
	size_t len, at; /* at: of ModRM, once it is known */
	uint8_t map, opcode;
	uint8_t base_high, index_high; /* added to the registers' numbers */
	bool evex;
};

/* Bytes of prefixes and opcode; at is left at ModRM. */
static bool parse_vex(struct shape *s)
{
	const uint8_t *c = s->code;

	if (c[0] == 0xc5 && s->len > 3) {
		s->map = 1;
		s->at = 3;
	} else if (c[0] == 0xc4 && s->len > 4) {
		s->map = c[1] & 31;
		s->index_high = c[1] & 0x40 ? 0 : 8;
		s->base_high = c[1] & 0x20 ? 0 : 8;
		s->at = 4;
	} else if (c[0] == 0x62 && s->len > 6) {
		s->evex = true;
		s->map = c[1] & 7;
		s->index_high = c[1] & 0x40 ? 0 : 8;
		s->base_high = c[1] & 0x20 ? 0 : 8;
		s->at = 5;
	} else {
		return false;
	}
	s->opcode = c[s->at - 1];
	return s->map >= 1 && s->map <= 6;
}

/* Those of shadow stacks: f3 [rex] 0f 1e or ae, with registers only. */
static bool parse_shadow(struct shape *s)
{
	size_t i = 1;

	if (s->len < 5 || s->code[0] != 0xf3)
		return false;
	if ((s->code[i] & 0xf0) == 0x40)
		i++;
	if (s->code[i] != 0x0f || (s->code[i + 1] != 0x1e && s->code[i + 1] != 0xae))
		return false;
	s->at = i + 2;
	return s->code[s->at] >= 0xc0;
}

static bool has_number(const struct shape *s)
{
	if (s->map == 3)
		return true;
	return s->map == 1 && ((s->opcode >= 0x70 && s->opcode <= 0x73) || s->opcode == 0xc2 ||
			       (s->opcode >= 0xc4 && s->opcode <= 0xc6));
}

/* ModRM and what it brings along. Returns their length. */
static size_t operand_len(const struct shape *s, struct insn *out)
{
	uint8_t modrm = s->code[s->at], mod = modrm >> 6, rm = modrm & 7;
	size_t n = 1;

	if (mod == 3)
		return n;
	out->kinds |= INSN_LOAD;
	if (rm == 4) {
		uint8_t sib = s->at + 1 < s->len ? s->code[s->at + 1] : 0; /* or it is cut */

		n++;
		out->index = (uint8_t)((sib >> 3 & 7) + s->index_high);
		if (out->index == 4)
			out->index = INSN_NO_REGISTER;
		if ((sib & 7) == 5 && mod == 0)
			return n + 4;
		rm = sib & 7;
	} else if (rm == 5 && mod == 0) {
		return n + 4;
	}
	out->base = (uint8_t)(rm + s->base_high);
	return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

bool insn_x86_new(const uint8_t *code, size_t len, struct insn *out)
{
	struct shape s = { .code = code, .len = len };
	bool vector = parse_vex(&s);
	size_t n;

	if ((!vector && !parse_shadow(&s)) || s.at >= len)
		return false;
	n = s.at + operand_len(&s, out);
	if (vector) {
		out->kinds |= INSN_VECTOR;
		n += has_number(&s);
	}
	if (out->base != INSN_NO_REGISTER)
		out->reads.gpr |= 1ull << out->base;
	if (out->index != INSN_NO_REGISTER)
		out->reads.gpr |= 1ull << out->index;
	/* kortest, ktest and comparisons of vectors set flags. */
	if (vector && s.map == 1 && (s.opcode == 0x98 || s.opcode == 0x99))
		out->writes.gpr |= INSN_FLAGS;
	/* kmov to a general register */
	if (vector && !s.evex && s.opcode == 0x93)
		out->writes.gpr |= 1ull << (code[s.at] >> 3 & 7);
	out->len = (uint8_t)n;
	return n <= len;
}

uint8_t insn_x86_new_place(const uint8_t *code, size_t len)
{
	struct insn out = { .base = INSN_NO_REGISTER, .index = INSN_NO_REGISTER };
	struct shape s = { .code = code, .len = len };
	size_t n;

	if (!parse_vex(&s) || s.at >= len || code[s.at] >> 6 != 0)
		return 0;
	n = operand_len(&s, &out);
	return n > 4 ? (uint8_t)(s.at + n - 4) : 0;
}
