/* SPDX-License-Identifier: BSD-2-Clause */
/* A64: what moves and compares integers in vector registers. Arithmetic of fractions is unknown. */
#include "aarch64_internal.h"

static uint8_t low_of(uint8_t reg)
{
	return a64_vector_chunk(reg, 0);
}

static uint8_t high_of(uint8_t reg)
{
	return a64_vector_chunk(reg, 1);
}

static void zero(struct vtrace_maker *m, uint8_t chunk)
{
	vtrace_make_imm(m, VTRACE_CONST, 8, chunk, VTRACE_ZERO, 0);
}

/* The upper half of @rd is @value, or zero where the instruction writes the lower one alone. */
static void finish(struct vtrace_maker *m, uint8_t rd, bool both, uint8_t low, uint8_t high)
{
	if (low != low_of(rd))
		vtrace_make(m, VTRACE_MOV, 8, low_of(rd), low, VTRACE_ZERO);
	if (!both)
		zero(m, high_of(rd));
	else if (high != high_of(rd))
		vtrace_make(m, VTRACE_MOV, 8, high_of(rd), high, VTRACE_ZERO);
}

/* ---- between general and vector registers ---------------------------------------------------- */

static bool move_general(struct vtrace_maker *m, uint32_t word)
{
	uint32_t type = a64_bits(word, 22, 2), mode = a64_bits(word, 19, 2);
	bool sf = word >> 31, to_vector = word >> 16 & 1, upper = mode == 1;
	uint8_t w = type == 0 ? 4 : type == 3 ? 2 : 8, rd = a64_rd(word), rn = a64_rn(word);

	if (a64_bits(word, 17, 2) != 3 || mode > 1)
		return false;
	if (upper ? type != 2 || !sf : type == 2 || (type == 0 && sf) || (type == 1 && !sf))
		return false;
	m->class = VTRACE_CLASS_MOVE;
	if (!to_vector) {
		vtrace_make(m, VTRACE_MOV, w, a64_zr(rd), a64_vector_chunk(rn, upper), VTRACE_ZERO);
		return true;
	}
	vtrace_make(m, VTRACE_MOV, w, a64_vector_chunk(rd, upper), a64_zr(rn), VTRACE_ZERO);
	if (!upper)
		zero(m, high_of(rd));
	return true;
}

/* The bytes of a lane that imm5 names, and which one; 0: none. */
static uint8_t lane(uint32_t imm5, uint32_t *index)
{
	uint32_t size = imm5 & 15 ? (uint32_t)__builtin_ctz(imm5) : 4;

	*index = imm5 >> (size + 1);
	return size < 4 ? (uint8_t)(1 << size) : 0;
}

/* Lane @index of @reg, zero-extended, into @to. */
static void take(struct vtrace_maker *m, uint8_t w, uint8_t to, uint8_t reg, uint32_t index)
{
	uint32_t at = index * w;

	vtrace_make(m, VTRACE_EXT, w, to, a64_vector_chunk(reg, at / 8), VTRACE_ZERO)->x = at % 8;
}

static void put(struct vtrace_maker *m, uint8_t w, uint8_t reg, uint32_t index, uint8_t from)
{
	uint32_t at = index * w;

	vtrace_make(m, VTRACE_INS, w, a64_vector_chunk(reg, at / 8), from, VTRACE_ZERO)->x = at % 8;
}

static bool copy(struct vtrace_maker *m, uint32_t word)
{
	bool q = word >> 30 & 1;
	uint32_t imm4 = a64_bits(word, 11, 4), index, from;
	uint8_t w = lane(a64_rm(word), &index), rd = a64_rd(word), rn = a64_rn(word), t;

	m->class = VTRACE_CLASS_MOVE;
	if (!w)
		return false;
	if (word >> 29 & 1) { /* ins, from a lane */
		if (!q)
			return false;
		from = imm4 / w;
		t = vtrace_temp(m);
		take(m, w, t, rn, from);
		put(m, w, rd, index, t);
		return true;
	}
	switch (imm4) {
	case 0: /* dup, of a lane */
	case 1: /* element of a general register */
		if (w == 8 && !q)
			return false;
		t = vtrace_temp(m);
		if (imm4)
			vtrace_make(m, VTRACE_LANE_DUP, w, t, a64_zr(rn), VTRACE_ZERO);
		else
			take(m, w, t, rn, index);
		if (!imm4)
			vtrace_make(m, VTRACE_LANE_DUP, w, t, t, VTRACE_ZERO);
		finish(m, rd, q, t, t);
		return true;
	case 3: /* ins, from a general register */
		if (q)
			put(m, w, rd, index, a64_zr(rn));
		return q;
	case 5: /* smov */
		if (w == 8 || (w == 4 && !q))
			return false;
		t = vtrace_temp(m);
		take(m, w, t, rn, index);
		vtrace_make(m, VTRACE_SEXT, q ? 8 : 4, a64_zr(rd), t, VTRACE_ZERO)->x = w;
		return true;
	case 7: /* umov */
		if ((w == 8) != q)
			return false;
		take(m, w, a64_zr(rd), rn, index);
		return true;
	default:
		return false;
	}
}

static bool copy_scalar(struct vtrace_maker *m, uint32_t word)
{
	uint32_t index;
	uint8_t w = lane(a64_rm(word), &index), rd = a64_rd(word);

	if (!w)
		return false;
	m->class = VTRACE_CLASS_MOVE;
	take(m, w, low_of(rd), a64_rn(word), index);
	zero(m, high_of(rd));
	return true;
}

/* ---- scalars --------------------------------------------------------------------------------- */

/* 4, 8 or 2 bytes; 0: no such type. */
static uint8_t scalar_width(uint32_t word)
{
	static const uint8_t widths[] = { 4, 8, 0, 2 };

	return widths[a64_bits(word, 22, 2)];
}

static bool move_scalar(struct vtrace_maker *m, uint32_t word)
{
	uint8_t w = scalar_width(word), rd = a64_rd(word);

	if (!w)
		return false;
	m->class = VTRACE_CLASS_MOVE;
	vtrace_make(m, VTRACE_MOV, w, low_of(rd), low_of(a64_rn(word)), VTRACE_ZERO);
	zero(m, high_of(rd));
	return true;
}

static bool select_scalar(struct vtrace_maker *m, uint32_t word)
{
	uint8_t w = scalar_width(word), rd = a64_rd(word);
	int cc = a64_condition(a64_bits(word, 12, 4));

	if (!w)
		return false;
	m->class = VTRACE_CLASS_SELECT;
	if (cc == A64_ALWAYS)
		vtrace_make(m, VTRACE_MOV, w, low_of(rd), low_of(a64_rn(word)), VTRACE_ZERO);
	else
		vtrace_make(m, VTRACE_SELECT, w, low_of(rd), low_of(a64_rn(word)),
			    low_of(a64_rm(word)))
			->set = (uint8_t)cc;
	zero(m, high_of(rd));
	return true;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* Expand an eight-bit immediate to a floating-point number of @w bytes. */
static uint64_t expand_float(uint32_t imm, uint8_t w)
{
	uint32_t exponent_bits = w == 8 ? 11 : w == 4 ? 8 : 5, fraction = 8 * w - 1 - exponent_bits;
	uint64_t sign = imm >> 7, b = imm >> 6 & 1, exponent;

	exponent = (b ? (1ull << (exponent_bits - 3)) - 1 : 0) << 2 | (imm >> 4 & 3);
	exponent |= (b ^ 1) << (exponent_bits - 1);
	return sign << (8 * w - 1) | exponent << fraction | (uint64_t)(imm & 15) << (fraction - 4);
}

static bool constant_scalar(struct vtrace_maker *m, uint32_t word)
{
	uint8_t w = scalar_width(word), rd = a64_rd(word);

	if (!w)
		return false;
	m->class = VTRACE_CLASS_MOVE;
	vtrace_make_imm(m, VTRACE_CONST, 8, low_of(rd), VTRACE_ZERO,
			expand_float(a64_bits(word, 13, 8), w));
	zero(m, high_of(rd));
	return true;
}

static uint64_t spread_bits(uint32_t imm)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < 8; i++)
		v |= imm >> i & 1 ? 0xffull << 8 * i : 0;
	return v;
}

/* The constant that cmode, op and eight bits describe. */
static bool expand_constant(uint32_t word, uint64_t *out)
{
	uint32_t cmode = a64_bits(word, 12, 4), op = a64_bits(word, 29, 1);
	uint64_t imm = a64_bits(word, 16, 3) << 5 | a64_bits(word, 5, 5);

	if (cmode < 8)
		imm = imm << 8 * (cmode >> 1) | imm << (32 + 8 * (cmode >> 1));
	else if (cmode < 12)
		imm = imm << (cmode & 2 ? 8 : 0) & 0xffff;
	else if (cmode < 14)
		imm = cmode == 12 ? imm << 8 | 0xff : imm << 16 | 0xffff;
	else if (cmode == 14)
		imm = op ? spread_bits((uint32_t)imm) : imm * 0x0101010101010101ull;
	else
		imm = expand_float((uint32_t)imm, op ? 8 : 4);
	if (cmode >= 8 && cmode < 12)
		imm *= 0x0001000100010001ull;
	else if (cmode == 12 || cmode == 13 || (cmode == 15 && !op))
		imm |= imm << 32;
	*out = imm;
	return cmode != 15 || !op || word >> 30 & 1;
}

static bool constant(struct vtrace_maker *m, uint32_t word)
{
	uint32_t cmode = a64_bits(word, 12, 4);
	bool op = word >> 29 & 1, q = word >> 30 & 1, combines = cmode & 1 && cmode < 12;
	uint8_t rd = a64_rd(word);
	uint64_t imm;

	if (word & 1 << 11 || !expand_constant(word, &imm))
		return false;
	m->class = combines ? VTRACE_CLASS_VECTOR : VTRACE_CLASS_MOVE;
	if (op && cmode < 14)
		imm = ~imm;
	for (unsigned int i = 0; i < (q ? 2u : 1u); i++) {
		uint8_t to = a64_vector_chunk(rd, i);

		if (combines)
			vtrace_make_imm(m, op ? VTRACE_AND : VTRACE_OR, 8, to, to, imm);
		else
			vtrace_make_imm(m, VTRACE_CONST, 8, to, VTRACE_ZERO, imm);
	}
	if (!q)
		zero(m, high_of(rd));
	return true;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static void invert(struct vtrace_maker *m, uint8_t to, uint8_t from)
{
	vtrace_make_imm(m, VTRACE_XOR, 8, to, from, ~0ull);
}

/* to = mask ? a : b, bit by bit; the mask is done with. */
static void choose(struct vtrace_maker *m, uint8_t to, uint8_t mask, uint8_t a, uint8_t b)
{
	uint8_t t = vtrace_temp(m);

	vtrace_make(m, VTRACE_AND, 8, t, a, mask);
	vtrace_make(m, VTRACE_ANDN, 8, mask, b, mask);
	vtrace_make(m, VTRACE_OR, 8, to, t, mask);
}

static void logic_chunk(struct vtrace_maker *m, uint32_t which, uint8_t d, uint8_t n, uint8_t k)
{
	static const uint8_t ops[] = { VTRACE_AND, VTRACE_ANDN, VTRACE_OR, VTRACE_OR, VTRACE_XOR };
	uint8_t t;

	if (which < 3 || which == 4) {
		vtrace_make(m, ops[which], 8, d, n, k);
		return;
	}
	t = vtrace_temp(m);
	if (which == 3) {
		invert(m, t, k);
		vtrace_make(m, VTRACE_OR, 8, d, n, t);
	} else if (which == 5) { /* bsl */
		vtrace_make(m, VTRACE_MOV, 8, t, d, VTRACE_ZERO);
		choose(m, d, t, n, k);
	} else { /* bit, bif */
		vtrace_make(m, VTRACE_MOV, 8, t, k, VTRACE_ZERO);
		which == 6 ? choose(m, d, t, n, d) : choose(m, d, t, d, n);
	}
}

static bool logic(struct vtrace_maker *m, uint32_t word)
{
	uint32_t which = (word >> 29 & 1) << 2 | a64_bits(word, 22, 2);
	bool q = word >> 30 & 1;
	uint8_t rd = a64_rd(word), rn = a64_rn(word), rm = a64_rm(word);

	m->class = which == 2 && rn == rm ? VTRACE_CLASS_MOVE : VTRACE_CLASS_VECTOR;
	for (unsigned int i = 0; i < (q ? 2u : 1u); i++)
		logic_chunk(m, which, a64_vector_chunk(rd, i), a64_vector_chunk(rn, i),
			    a64_vector_chunk(rm, i));
	if (!q)
		zero(m, high_of(rd));
	return true;
}

enum lanes_op {
	LANES_NONE,
	LANES_GT,
	LANES_HI,
	LANES_GE,
	LANES_HS,
	LANES_MAXS,
	LANES_MAXU,
	LANES_MINS,
	LANES_MINU,
	LANES_ADD,
	LANES_SUB,
	LANES_TEST,
	LANES_EQ,
	LANES_LT,
	LANES_LE,
};

static void lanes_chunk(struct vtrace_maker *m, enum lanes_op op, uint8_t w, uint8_t d, uint8_t a,
			uint8_t b)
{
	uint8_t t = vtrace_temp(m);

	switch (op) {
	case LANES_ADD:
		vtrace_make(m, VTRACE_LANE_ADD, w, d, a, b);
		break;
	case LANES_SUB:
		vtrace_make(m, VTRACE_LANE_SUB, w, d, a, b);
		break;
	case LANES_EQ:
		vtrace_make(m, VTRACE_LANE_EQ, w, d, a, b);
		break;
	case LANES_TEST:
		vtrace_make(m, VTRACE_AND, 8, t, a, b);
		vtrace_make(m, VTRACE_LANE_EQ, w, t, t, VTRACE_ZERO);
		invert(m, d, t);
		break;
	case LANES_GT:
		vtrace_make(m, VTRACE_LANE_GT, w, d, a, b);
		break;
	case LANES_LT:
		vtrace_make(m, VTRACE_LANE_GT, w, d, b, a);
		break;
	case LANES_GE:
		vtrace_make(m, VTRACE_LANE_GT, w, t, b, a);
		invert(m, d, t);
		break;
	case LANES_LE:
		vtrace_make(m, VTRACE_LANE_GT, w, t, a, b);
		invert(m, d, t);
		break;
	case LANES_HI: /* not: the smaller one is the first */
		vtrace_make(m, VTRACE_LANE_MINU, w, t, a, b);
		vtrace_make(m, VTRACE_LANE_EQ, w, t, t, a);
		invert(m, d, t);
		break;
	case LANES_HS:
		vtrace_make(m, VTRACE_LANE_MAXU, w, t, a, b);
		vtrace_make(m, VTRACE_LANE_EQ, w, d, t, a);
		break;
	case LANES_MINU:
		vtrace_make(m, VTRACE_LANE_MINU, w, d, a, b);
		break;
	case LANES_MAXU:
		vtrace_make(m, VTRACE_LANE_MAXU, w, d, a, b);
		break;
	default: /* LANES_MAXS, LANES_MINS */
		vtrace_make(m, VTRACE_LANE_GT, w, t, a, b);
		op == LANES_MAXS ? choose(m, d, t, a, b) : choose(m, d, t, b, a);
		break;
	}
}

static void lanes(struct vtrace_maker *m, enum lanes_op op, uint32_t word, bool both, uint8_t w,
		  bool with_zero)
{
	uint8_t rd = a64_rd(word), rn = a64_rn(word), rm = a64_rm(word);

	m->class = VTRACE_CLASS_VECTOR;
	for (unsigned int i = 0; i < (both ? 2u : 1u); i++)
		lanes_chunk(m, op, w, a64_vector_chunk(rd, i), a64_vector_chunk(rn, i),
			    with_zero ? VTRACE_ZERO : a64_vector_chunk(rm, i));
	if (!both)
		zero(m, high_of(rd));
}

/* The even bytes of @chunk side by side, in its lower half. */
static void narrow(struct vtrace_maker *m, uint8_t chunk)
{
	uint8_t t = vtrace_temp(m);

	vtrace_make_imm(m, VTRACE_AND, 8, chunk, chunk, 0x00ff00ff00ff00ff);
	vtrace_make_imm(m, VTRACE_SHR, 8, t, chunk, 8);
	vtrace_make(m, VTRACE_OR, 8, chunk, chunk, t);
	vtrace_make_imm(m, VTRACE_AND, 8, chunk, chunk, 0x0000ffff0000ffff);
	vtrace_make_imm(m, VTRACE_SHR, 8, t, chunk, 16);
	vtrace_make(m, VTRACE_OR, 8, chunk, chunk, t);
}

/* Neighbours of bytes: what libc's string functions end with (umaxp, uminp, addp of 16 bytes). */
static void pair_half(struct vtrace_maker *m, enum vtrace_op op, uint8_t to, uint8_t reg)
{
	uint8_t t[2];

	for (unsigned int i = 0; i < 2; i++) {
		uint8_t from = a64_vector_chunk(reg, i);

		t[i] = i ? vtrace_temp(m) : to;
		vtrace_make_imm(m, VTRACE_SHR, 8, t[i], from, 8);
		vtrace_make(m, op, 1, t[i], from, t[i]);
		narrow(m, t[i]);
	}
	vtrace_make(m, VTRACE_INS, 4, to, t[1], VTRACE_ZERO)->x = 4;
}

static bool pairwise(struct vtrace_maker *m, enum vtrace_op op, uint32_t word)
{
	uint8_t rd = a64_rd(word), low = vtrace_temp(m), high = vtrace_temp(m);

	if (a64_bits(word, 22, 2) || !(word >> 30 & 1))
		return false;
	m->class = VTRACE_CLASS_VECTOR;
	pair_half(m, op, low, a64_rn(word));
	pair_half(m, op, high, a64_rm(word));
	finish(m, rd, true, low, high);
	return true;
}

static bool three_same(struct vtrace_maker *m, uint32_t word)
{
	static const uint8_t ops[2][32] = {
		{ [6] = LANES_GT,
		  [7] = LANES_GE,
		  [12] = LANES_MAXS,
		  [13] = LANES_MINS,
		  [16] = LANES_ADD,
		  [17] = LANES_TEST },
		{ [6] = LANES_HI,
		  [7] = LANES_HS,
		  [12] = LANES_MAXU,
		  [13] = LANES_MINU,
		  [16] = LANES_SUB,
		  [17] = LANES_EQ },
	};
	uint32_t opcode = a64_bits(word, 11, 5), size = a64_bits(word, 22, 2);
	uint32_t u = word >> 29 & 1;
	bool q = word >> 30 & 1, minmax = opcode == 12 || opcode == 13;

	if (opcode == 3)
		return logic(m, word);
	if (opcode == 20 && u)
		return pairwise(m, VTRACE_LANE_MAXU, word);
	if (opcode == 21 && u)
		return pairwise(m, VTRACE_LANE_MINU, word);
	if (opcode == 23 && !u)
		return pairwise(m, VTRACE_LANE_ADD, word);
	if (!ops[u][opcode] || (size == 3 && (!q || minmax)))
		return false;
	lanes(m, ops[u][opcode], word, q, (uint8_t)(1 << size), false);
	return true;
}

/* The same of one lane of eight bytes. */
static bool three_same_scalar(struct vtrace_maker *m, uint32_t word)
{
	static const uint8_t ops[2][32] = {
		{ [6] = LANES_GT, [7] = LANES_GE, [16] = LANES_ADD, [17] = LANES_TEST },
		{ [6] = LANES_HI, [7] = LANES_HS, [16] = LANES_SUB, [17] = LANES_EQ },
	};
	enum lanes_op op = ops[word >> 29 & 1][a64_bits(word, 11, 5)];

	if (!op || a64_bits(word, 22, 2) != 3)
		return false;
	lanes(m, op, word, false, 8, false);
	return true;
}

/* Compared with zero, inverted, every second byte taken. */
static bool two_registers(struct vtrace_maker *m, uint32_t word)
{
	static const uint8_t ops[2][32] = {
		{ [8] = LANES_GT, [9] = LANES_EQ, [10] = LANES_LT },
		{ [8] = LANES_GE, [9] = LANES_LE },
	};
	uint32_t opcode = a64_bits(word, 12, 5), size = a64_bits(word, 22, 2);
	uint32_t u = word >> 29 & 1;
	bool q = word >> 30 & 1;
	uint8_t rd = a64_rd(word), rn = a64_rn(word);

	if (opcode == 5 && u && !size) {
		m->class = VTRACE_CLASS_VECTOR;
		invert(m, low_of(rd), low_of(rn));
		q ? invert(m, high_of(rd), high_of(rn)) : zero(m, high_of(rd));
		return true;
	}
	if (!ops[u][opcode] || (size == 3 && !q))
		return false;
	lanes(m, ops[u][opcode], word, q, (uint8_t)(1 << size), true);
	return true;
}

/* The lower one of each pair of bytes, after a shift: xtn, shrn. */
static bool narrow_words(struct vtrace_maker *m, uint32_t word, uint32_t shift)
{
	uint8_t rd = a64_rd(word), rn = a64_rn(word), t[2];
	bool upper = word >> 30 & 1;

	m->class = VTRACE_CLASS_VECTOR;
	for (unsigned int i = 0; i < 2; i++) {
		t[i] = vtrace_temp(m);
		vtrace_make_imm(m, VTRACE_SHR, 8, t[i], a64_vector_chunk(rn, i), shift);
		narrow(m, t[i]);
	}
	vtrace_make(m, VTRACE_INS, 4, t[0], t[1], VTRACE_ZERO)->x = 4;
	vtrace_make(m, VTRACE_MOV, 8, upper ? high_of(rd) : low_of(rd), t[0], VTRACE_ZERO);
	if (!upper)
		zero(m, high_of(rd));
	return true;
}

static void shift_chunk(struct vtrace_maker *m, bool left, uint8_t w, uint8_t d, uint8_t n,
			uint32_t amount)
{
	uint64_t lane_bits = ~0ull >> (64 - 8 * w), mask;
	uint8_t t = vtrace_temp(m);

	mask = amount >= 8u * w ? 0 : left ? lane_bits << amount & lane_bits : lane_bits >> amount;
	for (uint32_t bits = 8u * w; bits < 64; bits *= 2)
		mask |= mask << bits;
	a64_shift(m, 8, t, n, left ? 0 : 1, amount & 63);
	vtrace_make_imm(m, VTRACE_AND, 8, d, t, mask);
}

static bool shift_immediate(struct vtrace_maker *m, uint32_t word)
{
	uint32_t immh = a64_bits(word, 19, 4), imm = a64_bits(word, 16, 7), opcode, amount;
	bool u = word >> 29 & 1, q = word >> 30 & 1, left;
	uint8_t w, rd = a64_rd(word);

	opcode = a64_bits(word, 11, 5);
	if (!immh)
		return false;
	w = (uint8_t)(1 << (31 - __builtin_clz(immh)));
	if (opcode == 16 && !u && w == 1)
		return narrow_words(m, word, 16 - imm);
	left = opcode == 10 && !u;
	if ((!left && (opcode || !u)) || (w == 8 && !q))
		return false;
	m->class = VTRACE_CLASS_VECTOR;
	amount = left ? imm - 8u * w : 16u * w - imm;
	for (unsigned int i = 0; i < (q ? 2u : 1u); i++)
		shift_chunk(m, left, w, a64_vector_chunk(rd, i), a64_vector_chunk(a64_rn(word), i),
			    amount);
	if (!q)
		zero(m, high_of(rd));
	return true;
}

/* ---- lanes that move ------------------------------------------------------------------------- */

/* Bytes from the middle of two registers, one behind the other. */
static bool extract(struct vtrace_maker *m, uint32_t word)
{
	uint32_t at = a64_bits(word, 11, 4);
	bool q = word >> 30 & 1;
	uint8_t rn = a64_rn(word), rm = a64_rm(word), t[2] = { vtrace_temp(m), vtrace_temp(m) };
	uint8_t from[4] = { low_of(rn), high_of(rn), low_of(rm), high_of(rm) };

	if (!q && at > 7)
		return false;
	m->class = VTRACE_CLASS_VECTOR;
	if (!q)
		from[1] = from[2];
	for (unsigned int i = 0; i < (q ? 2u : 1u); i++) {
		uint32_t first = i + at / 8;

		/* The fifth chunk is met only where nothing is taken from it. */
		vtrace_make(m, VTRACE_FUNNEL, 8, t[i], from[first < 3 ? first + 1 : first],
			    from[first])
			->imm = at % 8 * 8;
	}
	finish(m, a64_rd(word), q, t[0], t[1]);
	return true;
}

static void zip_chunk(struct vtrace_maker *m, bool high, uint8_t w, uint8_t to, uint8_t a,
		      uint8_t b)
{
	if (w == 8)
		vtrace_make(m, VTRACE_MOV, 8, to, high ? b : a, VTRACE_ZERO);
	else
		vtrace_make(m, high ? VTRACE_ZIP_HIGH : VTRACE_ZIP_LOW, w, to, a, b);
}

static bool zip(struct vtrace_maker *m, uint32_t word)
{
	uint8_t w = (uint8_t)(1 << a64_bits(word, 22, 2)), rn = a64_rn(word), rm = a64_rm(word);
	bool q = word >> 30 & 1, second = word >> 14 & 1;
	uint8_t low = vtrace_temp(m), high = vtrace_temp(m);
	uint8_t a = a64_vector_chunk(rn, second && q), b = a64_vector_chunk(rm, second && q);

	if (a64_bits(word, 12, 2) != 3 || (w == 8 && !q))
		return false;
	m->class = VTRACE_CLASS_VECTOR;
	zip_chunk(m, second && !q, w, low, a, b);
	if (q)
		zip_chunk(m, true, w, high, a, b);
	finish(m, a64_rd(word), q, low, high);
	return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool translate(struct vtrace_maker *m, uint32_t word)
{
	if ((word & 0x7f20fc00) == 0x1e200000)
		return move_general(m, word);
	if ((word & 0xff3ffc00) == 0x1e204000)
		return move_scalar(m, word);
	if ((word & 0xff201fe0) == 0x1e201000)
		return constant_scalar(m, word);
	if ((word & 0xff200c00) == 0x1e200c00)
		return select_scalar(m, word);
	if ((word & 0x9fe08400) == 0x0e000400)
		return copy(m, word);
	if ((word & 0xffe0fc00) == 0x5e000400)
		return copy_scalar(m, word);
	if ((word & 0x9f200400) == 0x0e200400)
		return three_same(m, word);
	if ((word & 0xdf200400) == 0x5e200400)
		return three_same_scalar(m, word);
	if ((word & 0x9f3e0c00) == 0x0e200800)
		return two_registers(m, word);
	if ((word & 0x9ff80400) == 0x0f000400)
		return constant(m, word);
	if ((word & 0x9f800400) == 0x0f000400)
		return shift_immediate(m, word);
	if ((word & 0xbfe08400) == 0x2e000000)
		return extract(m, word);
	if ((word & 0xbf208c00) == 0x0e000800)
		return zip(m, word);
	return false;
}

/* Comparisons write flags; conversions to integers and lanes general registers; all else vectors.
 */
static void unknown(struct vtrace_maker *m, uint32_t word)
{
	bool scalar = (word & 0x5f000000) == 0x1e000000;
	bool converts = scalar && (word & 0x0000fc00) == 0 && word & 1 << 21;
	bool fixed = scalar && !(word & 1 << 21);
	bool compares =
		scalar && word & 1 << 21 && ((word & 0x3c00) == 0x2000 || (word & 0xc00) == 0x400);
	bool copies = (word & 0x9fe08400) == 0x0e000400;

	m->class = compares ? VTRACE_CLASS_COMPARE : VTRACE_CLASS_FP;
	if (converts || compares)
		vtrace_make_imm(m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO, VTRACE_FLAGS);
	if (compares)
		return;
	if (converts || fixed || copies)
		vtrace_taint(m, a64_zr(a64_rd(word)));
	vtrace_taint(m, low_of(a64_rd(word)));
	vtrace_taint(m, high_of(a64_rd(word)));
}

const struct a64_kind a64_vector = { translate, unknown };
