/* SPDX-License-Identifier: BSD-2-Clause */
/* A64: data processing of general registers. */
#include "aarch64_internal.h"

static bool logic(struct vtrace_maker *m, uint32_t word)
{
	static const uint8_t ops[] = { VTRACE_AND, VTRACE_OR, VTRACE_XOR, VTRACE_AND };
	uint32_t opc = a64_bits(word, 29, 2), amount = a64_bits(word, 10, 6);
	bool invert = word >> 21 & 1;
	uint8_t w = a64_width(word), rd = a64_zr(a64_rd(word)), rn = a64_zr(a64_rn(word));
	uint8_t b = a64_zr(a64_rm(word)), op = ops[opc], t = VTRACE_ZERO;

	if (amount >= 8u * w)
		return false;
	m->class = opc == 3 && rd == VTRACE_ZERO   ? VTRACE_CLASS_COMPARE
		   : opc == 1 && rn == VTRACE_ZERO ? VTRACE_CLASS_MOVE
						   : VTRACE_CLASS_LOGIC;
	if (amount || (invert && op != VTRACE_AND))
		t = vtrace_temp(m);
	if (amount) {
		a64_shift(m, w, t, b, a64_bits(word, 22, 2), amount);
		b = t;
	}
	if (invert && op == VTRACE_AND) {
		op = VTRACE_ANDN;
	} else if (invert) {
		vtrace_make_imm(m, VTRACE_XOR, w, t, b, ~0ull);
		b = t;
	}
	vtrace_make(m, op, w, rd, rn, b)->set = opc == 3 ? VTRACE_SET_LOGIC : VTRACE_SET_NONE;
	return true;
}

static void add(struct vtrace_maker *m, uint32_t word, uint8_t rd, uint8_t rn, uint8_t b)
{
	bool sub = word >> 30 & 1, flags = word >> 29 & 1;

	m->class = flags && rd == VTRACE_ZERO ? VTRACE_CLASS_COMPARE : VTRACE_CLASS_ADD;
	vtrace_make(m, sub ? VTRACE_SUB : VTRACE_ADD, a64_width(word), rd, rn, b)->set =
		!flags ? VTRACE_SET_NONE
		: sub  ? VTRACE_SET_SUB_NOT
		       : VTRACE_SET_ADD;
}

static bool add_shifted(struct vtrace_maker *m, uint32_t word)
{
	uint32_t type = a64_bits(word, 22, 2), amount = a64_bits(word, 10, 6);
	uint8_t w = a64_width(word), rd = a64_zr(a64_rd(word)), rn = a64_zr(a64_rn(word));
	uint8_t b = a64_zr(a64_rm(word)), t;

	if (type == 3 || amount >= 8u * w)
		return false;
	if (!a64_bits(word, 29, 2) && !type && amount && amount < 4) {
		m->class = VTRACE_CLASS_ADD;
		vtrace_make(m, VTRACE_LEA, w, rd, rn, b)->x = (uint8_t)amount;
		return true;
	}
	if (amount) {
		t = vtrace_temp(m);
		a64_shift(m, w, t, b, type, amount);
		b = t;
	}
	add(m, word, rd, rn, b);
	return true;
}

static bool add_extended(struct vtrace_maker *m, uint32_t word)
{
	uint32_t amount = a64_bits(word, 10, 3);
	uint8_t rd = a64_rd(word), b, t;

	if (a64_bits(word, 22, 2) || amount > 4)
		return false;
	b = a64_extend(m, a64_zr(a64_rm(word)), a64_bits(word, 13, 3));
	if (amount) {
		t = vtrace_temp(m);
		a64_shift(m, 8, t, b, 0, amount);
		b = t;
	}
	add(m, word, word >> 29 & 1 ? a64_zr(rd) : rd, a64_rn(word), b);
	return true;
}

static bool add_carry(struct vtrace_maker *m, uint32_t word)
{
	bool sub = word >> 30 & 1;
	uint8_t w = a64_width(word), rd = a64_zr(a64_rd(word)), rn = a64_zr(a64_rn(word));
	uint8_t rm = a64_zr(a64_rm(word));

	if (a64_bits(word, 10, 6))
		return false;
	m->class = VTRACE_CLASS_ADD;
	vtrace_make(m, sub ? VTRACE_SBC : VTRACE_ADC, w, rd, rn, rm)->set =
		!(word >> 29 & 1) ? VTRACE_SET_NONE
		: sub		  ? VTRACE_SET_SUB_NOT
				  : VTRACE_SET_ADD;
	return true;
}

static bool compare_if(struct vtrace_maker *m, uint32_t word)
{
	int cc = a64_condition(a64_bits(word, 12, 4));
	bool add_them = !(word >> 30 & 1), imm = word >> 11 & 1;
	uint32_t nzcv = word & 15, flags;
	uint8_t w = a64_width(word), rn = a64_zr(a64_rn(word)), b;
	struct vtrace_uop *u;

	if (!(word >> 29 & 1) || word & (1 << 10) || word & (1 << 4))
		return false;
	m->class = VTRACE_CLASS_COMPARE;
	b = imm ? vtrace_const(m, a64_rm(word)) : a64_zr(a64_rm(word));
	if (cc == A64_ALWAYS) {
		vtrace_make(m, add_them ? VTRACE_ADD : VTRACE_SUB, w, VTRACE_ZERO, rn, b)->set =
			add_them ? VTRACE_SET_ADD : VTRACE_SET_SUB_NOT;
		return true;
	}
	flags = (nzcv & 8 ? VTRACE_S : 0) | (nzcv & 4 ? VTRACE_Z : 0) | (nzcv & 2 ? VTRACE_C : 0) |
		(nzcv & 1 ? VTRACE_O : 0);
	u = vtrace_make(m, VTRACE_CCMP, w, VTRACE_ZERO, rn, b);
	u->x = add_them;
	u->set = (uint8_t)cc;
	u->imm = (uint64_t)flags << 32;
	return true;
}

static bool select_if(struct vtrace_maker *m, uint32_t word)
{
	int cc = a64_condition(a64_bits(word, 12, 4));
	uint32_t op2 = a64_bits(word, 10, 2);
	bool invert = word >> 30 & 1;
	uint8_t w = a64_width(word), rd = a64_zr(a64_rd(word)), rn = a64_zr(a64_rn(word));
	uint8_t b = a64_zr(a64_rm(word)), t;

	if (word >> 29 & 1 || op2 > 1)
		return false;
	m->class = VTRACE_CLASS_SELECT;
	if (cc == A64_ALWAYS) {
		vtrace_make(m, VTRACE_MOV, w, rd, rn, VTRACE_ZERO);
		return true;
	}
	if (invert || op2) {
		t = vtrace_temp(m);
		/* csinc adds one, csinv inverts, csneg negates. */
		if (!invert)
			vtrace_make_imm(m, VTRACE_ADD, w, t, b, 1);
		else if (!op2)
			vtrace_make_imm(m, VTRACE_XOR, w, t, b, ~0ull);
		else
			vtrace_make(m, VTRACE_SUB, w, t, VTRACE_ZERO, b);
		b = t;
	}
	vtrace_make(m, VTRACE_SELECT, w, rd, rn, b)->set = (uint8_t)cc;
	return true;
}

static bool two_sources(struct vtrace_maker *m, uint32_t word)
{
	uint32_t opcode = a64_bits(word, 10, 6);
	uint8_t op;

	if (word >> 29 & 1)
		return false;
	switch (opcode) {
	case 2:
	case 3:
		m->class = VTRACE_CLASS_DIVIDE;
		op = opcode == 2 ? VTRACE_QUOTU : VTRACE_QUOTS;
		break;
	case 8:
	case 9:
	case 10:
	case 11:
		m->class = VTRACE_CLASS_SHIFT;
		op = opcode == 8    ? VTRACE_SHL
		     : opcode == 9  ? VTRACE_SHR
		     : opcode == 10 ? VTRACE_SAR
				    : VTRACE_ROR;
		break;
	default:
		return false;
	}
	vtrace_make(m, op, a64_width(word), a64_zr(a64_rd(word)), a64_zr(a64_rn(word)),
		    a64_zr(a64_rm(word)));
	return true;
}

/* The bytes of each two, or of each four, the other way round. */
static void reverse_parts(struct vtrace_maker *m, uint8_t w, uint8_t rd, uint8_t rn, bool words)
{
	uint8_t a = vtrace_temp(m), b = vtrace_temp(m);

	if (words) {
		vtrace_make(m, VTRACE_BSWAP, 8, a, rn, VTRACE_ZERO);
		vtrace_make_imm(m, VTRACE_ROL, 8, rd, a, 32);
		return;
	}
	vtrace_make_imm(m, VTRACE_AND, w, a, rn, 0x00ff00ff00ff00ff);
	vtrace_make_imm(m, VTRACE_SHL, w, a, a, 8);
	vtrace_make_imm(m, VTRACE_SHR, w, b, rn, 8);
	vtrace_make_imm(m, VTRACE_AND, w, b, b, 0x00ff00ff00ff00ff);
	vtrace_make(m, VTRACE_OR, w, rd, a, b);
}

/* How many bits below the highest one are as it is. */
static void count_signs(struct vtrace_maker *m, uint8_t w, uint8_t rd, uint8_t rn)
{
	uint8_t t = vtrace_temp(m);

	vtrace_make_imm(m, VTRACE_SAR, w, t, rn, 1);
	vtrace_make(m, VTRACE_XOR, w, t, t, rn);
	vtrace_make(m, VTRACE_CLZ, w, t, t, VTRACE_ZERO);
	vtrace_make_imm(m, VTRACE_SUB, w, rd, t, 1);
}

/* Pointers signed (0-3, 8-11), found good (4-7, 12-15), stripped (16, 17). */
static bool pointer(struct vtrace_maker *m, uint32_t word)
{
	uint32_t opcode = a64_bits(word, 10, 6);
	uint8_t rd = a64_zr(a64_rd(word));

	if (opcode > 17 || !(word >> 31))
		return false;
	if (opcode < 16 && !(opcode & 4))
		vtrace_taint(m, rd);
	else
		a64_authenticate(m, rd, rd);
	return true;
}

static bool one_source(struct vtrace_maker *m, uint32_t word)
{
	uint8_t w = a64_width(word), rd = a64_zr(a64_rd(word)), rn = a64_zr(a64_rn(word));

	if (word >> 29 & 1)
		return false;
	if (a64_rm(word) == 1)
		return pointer(m, word);
	if (a64_rm(word) || a64_bits(word, 10, 6) > 5 || (w == 4 && a64_bits(word, 10, 6) == 3))
		return false;
	m->class = VTRACE_CLASS_SHIFT;
	switch (a64_bits(word, 10, 6)) {
	case 0:
		vtrace_make(m, VTRACE_RBIT, w, rd, rn, VTRACE_ZERO);
		break;
	case 1:
		reverse_parts(m, w, rd, rn, false);
		break;
	case 2:
		if (w == 8)
			reverse_parts(m, w, rd, rn, true);
		else
			vtrace_make(m, VTRACE_BSWAP, w, rd, rn, VTRACE_ZERO);
		break;
	case 3:
		vtrace_make(m, VTRACE_BSWAP, w, rd, rn, VTRACE_ZERO);
		break;
	case 4:
		vtrace_make(m, VTRACE_CLZ, w, rd, rn, VTRACE_ZERO);
		break;
	default:
		count_signs(m, w, rd, rn);
		break;
	}
	return true;
}

static bool three_sources(struct vtrace_maker *m, uint32_t word)
{
	uint32_t op31 = a64_bits(word, 21, 3);
	bool sub = word >> 15 & 1;
	uint8_t w = a64_width(word), rd = a64_zr(a64_rd(word)), rn = a64_zr(a64_rn(word));
	uint8_t rm = a64_zr(a64_rm(word)), ra = a64_zr(a64_bits(word, 10, 5)), t;

	if (a64_bits(word, 29, 2) || (op31 && w == 4))
		return false;
	switch (op31) {
	case 0:
		break;
	case 1: /* smaddl, smsubl */
	case 5: /* umaddl, umsubl */
		rn = a64_extend(m, rn, op31 == 1 ? 6 : 2);
		rm = a64_extend(m, rm, op31 == 1 ? 6 : 2);
		break;
	case 2: /* smulh */
	case 6: /* umulh */
		if (sub)
			return false;
		m->class = VTRACE_CLASS_MULTIPLY;
		vtrace_make(m, op31 == 2 ? VTRACE_MULHS : VTRACE_MULHU, 8, rd, rn, rm);
		return true;
	default:
		return false;
	}
	m->class = VTRACE_CLASS_MULTIPLY;
	t = vtrace_temp(m);
	vtrace_make(m, VTRACE_MUL, w, t, rn, rm);
	vtrace_make(m, sub ? VTRACE_SUB : VTRACE_ADD, w, rd, ra, t);
	return true;
}

bool a64_register(struct vtrace_maker *m, uint32_t word)
{
	switch (a64_bits(word, 24, 5)) {
	case 0x0a:
		return logic(m, word);
	case 0x0b:
		return word >> 21 & 1 ? add_extended(m, word) : add_shifted(m, word);
	case 0x1b:
		return three_sources(m, word);
	case 0x1a:
		break;
	default:
		return false;
	}
	switch (a64_bits(word, 21, 3)) {
	case 0:
		return add_carry(m, word);
	case 2:
		return compare_if(m, word);
	case 4:
		return select_if(m, word);
	case 6:
		return word >> 30 & 1 ? one_source(m, word) : two_sources(m, word);
	default:
		return false;
	}
}

/* Where 31 may be the stack pointer, that is meant; flags are few. */
void a64_register_unknown(struct vtrace_maker *m, uint32_t word)
{
	vtrace_taint(m, a64_rd(word));
	vtrace_make_imm(m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO, VTRACE_FLAGS);
}
