/* SPDX-License-Identifier: BSD-2-Clause */
/* Translator of A64, by groups: general registers, immediates, branches, system. */
#include <string.h>

#include "aarch64_internal.h"

/* ---- general registers ----------------------------------------------------------------------- */

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

/*
 * @dst = @reg without its authentication code, or unknown where its length cannot be told.
 *
 * A pointer that is found good is the address without the code in its upper bits; one that is not
 * ends the program. How long the code is follows from how long addresses are, and that from where
 * this code stands, unless it stands low. A signed pointer itself depends on a key that no
 * process can read, and is unknown.
 */
static void a64_authenticate(struct vtrace_maker *m, uint8_t dst, uint8_t reg)
{
	uint32_t middle = m->pc >> 39 & 0x1ff;
	bool kernel = m->pc >> 55 & 1;

	if (middle == (kernel ? 0x1ff : 0))
		vtrace_taint(m, dst);
	else if (kernel)
		vtrace_make_imm(m, VTRACE_OR, 8, dst, reg, 0xffffull << 48);
	else
		vtrace_make_imm(m, VTRACE_AND, 8, dst, reg, ~(0xffull << 48));
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

static bool a64_register(struct vtrace_maker *m, uint32_t word)
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
static void a64_register_unknown(struct vtrace_maker *m, uint32_t word)
{
	vtrace_taint(m, a64_rd(word));
	vtrace_make_imm(m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO, VTRACE_FLAGS);
}

/* ---- immediates ------------------------------------------------------------------------------ */

/* @reg is the address @to, which moves with the code. */
static void link_to(struct vtrace_maker *m, uint8_t reg, uint64_t to)
{
	vtrace_relative(m, vtrace_make_imm(m, VTRACE_CONST, 8, reg, VTRACE_ZERO, 0), to);
}

static void jump_to(struct vtrace_maker *m, uint64_t to)
{
	vtrace_relative(m, vtrace_make_imm(m, VTRACE_JUMP, 8, VTRACE_ZERO, VTRACE_ZERO, 0), to);
	vtrace_successor(m, to);
	m->ends = true;
}

static bool address(struct vtrace_maker *m, uint32_t word)
{
	uint64_t offset = a64_signed(word, 5, 19) << 2 | a64_bits(word, 29, 2);
	uint64_t to = word >> 31 ? (m->pc & ~0xfffull) + (offset << 12) : m->pc + offset;

	m->class = VTRACE_CLASS_LEA;
	link_to(m, a64_zr(a64_rd(word)), to);
	return true;
}

static bool add_immediate(struct vtrace_maker *m, uint32_t word)
{
	bool sub = word >> 30 & 1, flags = word >> 29 & 1;
	uint64_t imm = (uint64_t)a64_bits(word, 10, 12) << (word >> 22 & 1 ? 12 : 0);
	uint8_t rd = a64_rd(word), rn = a64_rn(word);

	m->class = flags && rd == 31 ? VTRACE_CLASS_COMPARE : VTRACE_CLASS_ADD;
	if (!flags && !sub && !imm && (rd == A64_SP || rn == A64_SP))
		m->class = VTRACE_CLASS_MOVE;
	vtrace_make_imm(m, sub ? VTRACE_SUB : VTRACE_ADD, a64_width(word), flags ? a64_zr(rd) : rd,
			rn, imm)
		->set = !flags ? VTRACE_SET_NONE
			: sub  ? VTRACE_SET_SUB_NOT
			       : VTRACE_SET_ADD;
	return true;
}

/* The pattern that three fields describe; false: none. */
static bool bit_pattern(uint32_t word, uint64_t *out)
{
	uint32_t immr = a64_bits(word, 16, 6), imms = a64_bits(word, 10, 6);
	uint32_t sizes = a64_bits(word, 22, 1) << 6 | (~imms & 63), size = 64, ones;
	uint64_t v;

	while (size > 1 && !(sizes & size))
		size /= 2;
	ones = (imms & (size - 1)) + 1;
	if (size < 2 || ones == size || (size == 64 && !(word >> 31)))
		return false;
	immr &= size - 1;
	v = ~0ull >> (64 - ones);
	if (immr)
		v = (v >> immr | v << (size - immr)) & ~0ull >> (64 - size);
	for (; size < 64; size *= 2)
		v |= v << size;
	*out = v;
	return true;
}

static bool logic_immediate(struct vtrace_maker *m, uint32_t word)
{
	static const uint8_t ops[] = { VTRACE_AND, VTRACE_OR, VTRACE_XOR, VTRACE_AND };
	uint32_t opc = a64_bits(word, 29, 2);
	uint8_t rd = a64_rd(word), rn = a64_rn(word);
	uint64_t imm;

	if (!bit_pattern(word, &imm))
		return false;
	m->class = opc == 3 && rd == 31	  ? VTRACE_CLASS_COMPARE
		   : opc == 1 && rn == 31 ? VTRACE_CLASS_MOVE
					  : VTRACE_CLASS_LOGIC;
	vtrace_make_imm(m, ops[opc], a64_width(word), opc == 3 ? a64_zr(rd) : rd, a64_zr(rn), imm)
		->set = opc == 3 ? VTRACE_SET_LOGIC : VTRACE_SET_NONE;
	return true;
}

static bool move_wide(struct vtrace_maker *m, uint32_t word)
{
	uint32_t opc = a64_bits(word, 29, 2), at = a64_bits(word, 21, 2);
	uint64_t imm = (uint64_t)a64_bits(word, 5, 16) << 16 * at;
	uint8_t w = a64_width(word), rd = a64_zr(a64_rd(word));

	if (opc == 1 || (w == 4 && at > 1))
		return false;
	m->class = VTRACE_CLASS_MOVE;
	if (opc == 3) {
		if (w == 4)
			vtrace_make(m, VTRACE_MOV, 4, rd, rd, VTRACE_ZERO);
		vtrace_make(m, VTRACE_INS, 2, rd, vtrace_const(m, a64_bits(word, 5, 16)),
			    VTRACE_ZERO)
			->x = (uint8_t)(2 * at);
		return true;
	}
	imm = opc ? imm : ~imm;
	vtrace_make_imm(m, VTRACE_CONST, 8, rd, VTRACE_ZERO, w == 4 ? (uint32_t)imm : imm);
	return true;
}

/* Up to the highest bit and down again; what falls out at the top is not part of the field. */
static bool bitfield(struct vtrace_maker *m, uint32_t word)
{
	uint32_t opc = a64_bits(word, 29, 2), immr = a64_bits(word, 16, 6);
	uint32_t imms = a64_bits(word, 10, 6), nr, up, down;
	uint8_t w = a64_width(word), top = 8 * w - 1, rd = a64_zr(a64_rd(word));
	uint8_t from = a64_zr(a64_rn(word)), to = opc == 1 ? vtrace_temp(m) : rd;
	uint64_t mask;

	if (opc == 3 || a64_bits(word, 22, 1) != word >> 31 || immr > top || imms > top)
		return false;
	m->class = VTRACE_CLASS_SHIFT;
	up = top - imms;
	down = (immr - imms - 1) & top;
	nr = imms >= immr ? imms - immr + 1 : imms + 1;
	mask = (~0ull >> (64 - nr)) << (imms >= immr ? 0 : top + 1 - immr);
	if (up || !down)
		a64_shift(m, w, to, from, 0, up);
	if (down)
		a64_shift(m, w, to, up ? to : from, opc ? 1 : 2, down);
	if (opc != 1)
		return true;
	from = vtrace_temp(m);
	vtrace_make_imm(m, VTRACE_AND, w, from, rd, ~mask);
	vtrace_make(m, VTRACE_OR, w, rd, from, to);
	return true;
}

static bool extract(struct vtrace_maker *m, uint32_t word)
{
	uint8_t w = a64_width(word);
	uint32_t amount = a64_bits(word, 10, 6);

	if (a64_bits(word, 29, 2) || a64_bits(word, 21, 1) || a64_bits(word, 22, 1) != word >> 31 ||
	    amount >= 8u * w)
		return false;
	m->class = VTRACE_CLASS_SHIFT;
	vtrace_make(m, VTRACE_FUNNEL, w, a64_zr(a64_rd(word)), a64_zr(a64_rn(word)),
		    a64_zr(a64_rm(word)))
		->imm = amount;
	return true;
}

static bool immediate(struct vtrace_maker *m, uint32_t word)
{
	switch (a64_bits(word, 23, 3)) {
	case 0:
	case 1:
		return address(m, word);
	case 2:
		return add_immediate(m, word);
	case 4:
		return logic_immediate(m, word);
	case 5:
		return move_wide(m, word);
	case 6:
		return bitfield(m, word);
	case 7:
		return extract(m, word);
	default: /* memory tags */
		return false;
	}
}

/* ---- branches -------------------------------------------------------------------------------- */

static bool jump(struct vtrace_maker *m, uint32_t word)
{
	uint64_t to = m->pc + (a64_signed(word, 0, 26) << 2);

	m->class = word >> 31 ? VTRACE_CLASS_CALL : VTRACE_CLASS_JUMP;
	if (word >> 31)
		link_to(m, A64_LR, m->next_pc);
	jump_to(m, to);
	return true;
}

static struct vtrace_uop *branch(struct vtrace_maker *m, enum vtrace_op op, uint8_t w, uint8_t reg,
				 uint64_t to)
{
	m->class = VTRACE_CLASS_BRANCH;
	m->ends = true;
	vtrace_successor(m, m->next_pc);
	vtrace_successor(m, to);
	return vtrace_relative(m, vtrace_make_imm(m, op, w, VTRACE_ZERO, reg, 0), to);
}

static bool branch_if(struct vtrace_maker *m, uint32_t word)
{
	uint64_t to = m->pc + (a64_signed(word, 5, 19) << 2);
	int cc = a64_condition(word & 15);

	if (word & 16)
		return false;
	if (cc == A64_ALWAYS) {
		m->class = VTRACE_CLASS_JUMP;
		jump_to(m, to);
	} else {
		branch(m, VTRACE_JUMP_IF, 8, VTRACE_ZERO, to)->set = (uint8_t)cc;
	}
	return true;
}

static bool branch_zero(struct vtrace_maker *m, uint32_t word)
{
	branch(m, word >> 24 & 1 ? VTRACE_JUMP_NZ : VTRACE_JUMP_Z, a64_width(word),
	       a64_zr(a64_rd(word)), m->pc + (a64_signed(word, 5, 19) << 2));
	return true;
}

static bool branch_bit(struct vtrace_maker *m, uint32_t word)
{
	uint32_t bit = word >> 31 << 5 | a64_bits(word, 19, 5);
	uint8_t t = vtrace_temp(m);

	vtrace_make_imm(m, VTRACE_AND, 8, t, a64_zr(a64_rd(word)), 1ull << bit);
	branch(m, word >> 24 & 1 ? VTRACE_JUMP_NZ : VTRACE_JUMP_Z, 8, t,
	       m->pc + (a64_signed(word, 5, 14) << 2));
	return true;
}

static bool jump_register(struct vtrace_maker *m, uint32_t word)
{
	static const uint8_t classes[] = { VTRACE_CLASS_JUMP_INDIRECT, VTRACE_CLASS_CALL_INDIRECT,
					   VTRACE_CLASS_RETURN };
	uint32_t opc = a64_bits(word, 21, 4), op3 = a64_bits(word, 10, 6);
	bool authenticated = op3 == 2 || op3 == 3, is_ret = (opc & 7) == 2;
	uint8_t rn = authenticated && is_ret ? A64_LR : a64_zr(a64_rn(word)), t;

	if (a64_bits(word, 16, 5) != 31 || (opc & 7) > 2 || (op3 && !authenticated) ||
	    (opc & 8 && !authenticated))
		return false;
	m->class = classes[opc & 7];
	m->ends = true;
	t = vtrace_temp(m);
	if (authenticated)
		a64_authenticate(m, t, rn);
	else
		vtrace_make(m, VTRACE_MOV, 8, t, rn, VTRACE_ZERO);
	vtrace_make_imm(m, VTRACE_NEED, 8, VTRACE_ZERO, t, 0);
	if ((opc & 7) == 1)
		link_to(m, A64_LR, m->next_pc);
	vtrace_make(m, VTRACE_JUMP_TO, 8, VTRACE_ZERO, t, VTRACE_ZERO);
	return true;
}

/* ---- system ---------------------------------------------------------------------------------- */

/* The forms that sign and authenticate have fixed registers. */
static void hint(struct vtrace_maker *m, uint32_t nr)
{
	switch (nr) {
	case 7: /* xpaclri */
		a64_authenticate(m, A64_LR, A64_LR);
		break;
	case 8: /* pacia1716, pacib1716 */
	case 10:
		vtrace_taint(m, 17);
		break;
	case 12: /* autia1716, autib1716 */
	case 14:
		a64_authenticate(m, 17, 17);
		break;
	case 24: /* paciaz, paciasp, pacibz, pacibsp */
	case 25:
	case 26:
	case 27:
		vtrace_taint(m, A64_LR);
		break;
	case 28: /* autiaz, autiasp, autibz, autibsp */
	case 29:
	case 30:
	case 31:
		a64_authenticate(m, A64_LR, A64_LR);
		break;
	default:
		break;
	}
}

/* N, Z, C, V at bits 31 to 28. */
static void read_flags(struct vtrace_maker *m, uint8_t rd)
{
	static const uint8_t conditions[] = { 8, 4, 2, 0 };
	uint8_t all = vtrace_temp(m), t = vtrace_temp(m);

	for (unsigned int i = 0; i < 4; i++) {
		vtrace_make(m, VTRACE_SETCC, 8, t, VTRACE_ZERO, VTRACE_ZERO)->set = conditions[i];
		vtrace_make_imm(m, VTRACE_SHL, 8, t, t, 31 - i);
		vtrace_make(m, VTRACE_OR, 8, all, i ? all : VTRACE_ZERO, t);
	}
	vtrace_make(m, VTRACE_MOV, 8, rd, all, VTRACE_ZERO);
}

static bool system_register(struct vtrace_maker *m, uint32_t word)
{
	enum { TPIDR_EL0 = 0xde82, NZCV = 0xda10 };
	uint32_t reg = a64_bits(word, 5, 16) | 0x8000;
	bool reads = word >> 21 & 1;
	uint8_t rt = a64_zr(a64_rd(word));

	if (reads && reg == TPIDR_EL0)
		vtrace_make(m, VTRACE_MOV, 8, rt, VTRACE_TLS, VTRACE_ZERO);
	else if (reads && reg == NZCV)
		read_flags(m, rt);
	else if (reads)
		vtrace_taint(m, rt);
	else if (reg == TPIDR_EL0)
		vtrace_make(m, VTRACE_MOV, 8, VTRACE_TLS, rt, VTRACE_ZERO);
	else if (reg == NZCV)
		vtrace_make_imm(m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO, VTRACE_FLAGS);
	return true;
}

/* Calls of operations on caches and the like: dc zva and its relatives write. */
static bool system_operation(struct vtrace_maker *m, uint32_t word)
{
	if (word >> 21 & 1)
		vtrace_taint(m, a64_zr(a64_rd(word)));
	else if (a64_bits(word, 16, 3) == 3 && a64_bits(word, 8, 8) == 0x74)
		vtrace_make_imm(m, VTRACE_TAINT_MEMORY, 8, VTRACE_ZERO, VTRACE_ZERO, 1);
	return true;
}

static bool system_word(struct vtrace_maker *m, uint32_t word)
{
	m->class = VTRACE_CLASS_SYSTEM;
	switch (a64_bits(word, 19, 3)) {
	case 0: /* hints, barriers, flags of the processor's state */
		if ((word & 0xfffff01f) == 0xd503201f)
			hint(m, a64_bits(word, 5, 7));
		else if ((word & 0xfffff000) != 0xd5033000)
			vtrace_make_imm(m, VTRACE_TAINT_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO,
					VTRACE_FLAGS);
		return true;
	case 1:
	case 5:
		return system_operation(m, word);
	case 2:
	case 3:
	case 6:
	case 7:
		return system_register(m, word);
	default:
		return false;
	}
}

static bool branch_or_system(struct vtrace_maker *m, uint32_t word)
{
	if (a64_bits(word, 26, 5) == 5)
		return jump(m, word);
	if (a64_bits(word, 25, 6) == 0x1a)
		return branch_zero(m, word);
	if (a64_bits(word, 25, 6) == 0x1b)
		return branch_bit(m, word);
	switch (word >> 24) {
	case 0x54:
		return branch_if(m, word);
	case 0xd5:
		return !a64_bits(word, 22, 2) && system_word(m, word);
	case 0xd6:
	case 0xd7:
		if (jump_register(m, word))
			return true;
		break;
	case 0xd4:
		break;
	default:
		return false;
	}
	/* Calls of the system, breakpoints, returns from an exception. */
	m->class = VTRACE_CLASS_SYSTEM;
	vtrace_stop(m, VTRACE_SYSTEM);
	return true;
}

/* ---- one instruction ------------------------------------------------------------------------- */

static void immediate_unknown(struct vtrace_maker *m, uint32_t word)
{
	vtrace_taint(m, a64_rd(word));
}

static void branch_unknown(struct vtrace_maker *m, uint32_t word)
{
	(void)word;
	vtrace_stop(m, VTRACE_UNDECODED);
}

/* Kinds by bits 28-25; NULL: none. SVE and SME have no kind: they end the trace. */
static const struct a64_kind *kind_of(uint32_t word)
{
	static const struct a64_kind immediates = { immediate, immediate_unknown };
	static const struct a64_kind branches = { branch_or_system, branch_unknown };
	static const struct a64_kind registers = { a64_register, a64_register_unknown };
	static const struct a64_kind *const kinds[16] = {
		[4] = &a64_memory,  [5] = &registers,  [6] = &a64_memory,  [7] = &a64_vector,
		[8] = &immediates,  [9] = &immediates, [10] = &branches,   [11] = &branches,
		[12] = &a64_memory, [13] = &registers, [14] = &a64_memory, [15] = &a64_vector,
	};

	return kinds[a64_bits(word, 25, 4)];
}

size_t vtrace_aarch64_insn(struct insn_disasm *d, struct vtrace_maker *m, const uint8_t *code,
			   size_t len)
{
	const struct a64_kind *kind;
	struct insn_text text;
	uint32_t word;

	if (len < sizeof(word))
		return 0;
	word = (uint32_t)(code[0] | code[1] << 8 | code[2] << 16) | (uint32_t)code[3] << 24;
	kind = kind_of(word);
	m->next_pc = m->pc + sizeof(word);
	if (!kind)
		return 0;
	if (kind->translate(m, word))
		return sizeof(word);
	/* No instruction, or one that is not translated. */
	insn_disasm_text(d, code, len, m->pc, &text);
	if (text.is_data)
		return 0;
	m->class = VTRACE_CLASS_OTHER;
	kind->unknown(m, word);
	return sizeof(word);
}
