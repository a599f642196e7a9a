/* SPDX-License-Identifier: BSD-2-Clause */
/* A64: loads, stores, atomic operations. */
#include "aarch64_internal.h"

struct place {
	uint8_t a, b, x;
	uint64_t imm;
	uint8_t marks; /* VTRACE_PC_RELATIVE, or none */
};

static void set_place(struct vtrace_uop *u, const struct place *p, uint64_t offset)
{
	u->x = p->x;
	u->marks = p->marks;
	u->imm = p->imm + offset;
}

/* The value that moves to or from memory. */
struct transfer {
	uint8_t w;		    /* bytes; 16: a whole vector */
	bool vector, load, nothing; /* nothing: a prefetch */
	uint8_t extends;	    /* a load that extends the sign: to so many bytes */
};

/* The low bits of the register, which is zero above. */
static void load_vector(struct vtrace_maker *m, uint8_t w, uint8_t rt, const struct place *p)
{
	uint8_t low = a64_vector_chunk(rt, 0), high = a64_vector_chunk(rt, 1);

	if (w == 16) {
		set_place(vtrace_make(m, VTRACE_LOAD, 8, high, p->a, p->b), p, 8);
		w = 8;
	} else {
		vtrace_make_imm(m, VTRACE_CONST, 8, high, VTRACE_ZERO, 0);
	}
	set_place(vtrace_make(m, VTRACE_LOAD, w, low, p->a, p->b), p, 0);
}

static void store_vector(struct vtrace_maker *m, uint8_t w, uint8_t rt, const struct place *p)
{
	if (w == 16) {
		set_place(vtrace_make(m, VTRACE_STORE, 8, a64_vector_chunk(rt, 1), p->a, p->b), p,
			  8);
		w = 8;
	}
	set_place(vtrace_make(m, VTRACE_STORE, w, a64_vector_chunk(rt, 0), p->a, p->b), p, 0);
}

/* The first byte is met last: that is the address an entry of the trace tells. */
static void transfer(struct vtrace_maker *m, const struct transfer *t, uint8_t rt,
		     const struct place *p)
{
	uint8_t reg = a64_zr(rt);
	struct vtrace_uop *u;

	if (t->nothing)
		return;
	if (t->vector) {
		t->load ? load_vector(m, t->w, rt, p) : store_vector(m, t->w, rt, p);
		return;
	}
	u = vtrace_make(m,
			!t->load     ? VTRACE_STORE
			: t->extends ? VTRACE_LOADS
				     : VTRACE_LOAD,
			t->w, reg, p->a, p->b);
	set_place(u, p, 0);
	if (t->extends == 4)
		vtrace_make(m, VTRACE_MOV, 4, reg, reg, VTRACE_ZERO);
}

static void set_class(struct vtrace_maker *m, const struct transfer *t)
{
	if (t->nothing)
		m->class = VTRACE_CLASS_OTHER;
	else if (t->load)
		m->class = t->vector	? VTRACE_CLASS_LOAD_FP
			   : t->extends ? VTRACE_CLASS_LOAD_SIGNED
					: VTRACE_CLASS_LOAD;
	else
		m->class = t->vector ? VTRACE_CLASS_STORE_FP : VTRACE_CLASS_STORE;
}

/* Decode size, V and opc of a single register's transfer. */
static bool single(uint32_t word, struct transfer *t)
{
	uint32_t size = word >> 30, opc = a64_bits(word, 22, 2);

	*t = (struct transfer){ .w = (uint8_t)(1 << size), .vector = word >> 26 & 1 };
	if (t->vector) {
		t->load = opc & 1;
		if (opc & 2)
			t->w = 16;
		return !(opc & 2) || !size;
	}
	t->load = opc;
	t->nothing = opc == 2 && size == 3;
	if (opc & 2)
		t->extends = opc == 2 ? 8 : 4;
	return opc != 3 || size < 2;
}

static bool offset_unsigned(struct vtrace_maker *m, uint32_t word)
{
	struct place p = { a64_rn(word), VTRACE_ZERO, 0, a64_bits(word, 10, 12), 0 };
	struct transfer t;

	if (!single(word, &t))
		return false;
	p.imm *= t.w;
	set_class(m, &t);
	transfer(m, &t, a64_rd(word), &p);
	return true;
}

/* ldur and its like, and those that move the base before (3) or behind (1). */
static bool offset_signed(struct vtrace_maker *m, uint32_t word)
{
	uint32_t mode = a64_bits(word, 10, 2);
	uint8_t rn = a64_rn(word), rt = a64_rd(word);
	uint64_t offset = a64_signed(word, 12, 9);
	struct place p = { rn, VTRACE_ZERO, 0, mode == 1 ? 0 : offset, 0 };
	struct transfer t;
	bool moves = mode & 1;

	if (!single(word, &t) || (mode == 2 && t.vector) || (moves && t.nothing))
		return false;
	/* The result is undefined then. */
	if (moves && !t.vector && rt == rn && rn != A64_SP)
		return false;
	set_class(m, &t);
	transfer(m, &t, rt, &p);
	if (moves)
		vtrace_make_imm(m, VTRACE_ADD, 8, rn, rn, offset);
	return true;
}

static bool offset_register(struct vtrace_maker *m, uint32_t word)
{
	uint32_t option = a64_bits(word, 13, 3), shift;
	struct place p = { a64_rn(word), 0, 0, 0, 0 };
	struct transfer t;

	if (!single(word, &t) || !(option & 2))
		return false;
	set_class(m, &t);
	if (t.nothing)
		return true;
	shift = word >> 12 & 1 ? (uint32_t)__builtin_ctz(t.w) : 0;
	p.b = a64_extend(m, a64_zr(a64_rm(word)), option);
	p.x = (uint8_t)shift;
	if (shift > 3) {
		p.x = vtrace_temp(m);
		a64_shift(m, 8, p.x, p.b, 0, shift);
		p.b = p.x;
		p.x = 0;
	}
	transfer(m, &t, a64_rd(word), &p);
	return true;
}

static bool literal(struct vtrace_maker *m, uint32_t word)
{
	uint32_t opc = word >> 30;
	struct place p = { .a = VTRACE_ZERO,
			   .b = VTRACE_ZERO,
			   .marks = VTRACE_PC_RELATIVE,
			   .imm = m->pc - m->code->block.pc + (a64_signed(word, 5, 19) << 2) };
	struct transfer t = { .load = true, .vector = word >> 26 & 1 };

	if (t.vector && opc == 3)
		return false;
	t.nothing = opc == 3;
	t.w = (uint8_t)(4 << (opc & (t.vector ? 3 : 1)));
	if (opc == 2 && !t.vector)
		t.extends = 8;
	set_class(m, &t);
	transfer(m, &t, a64_rd(word), &p);
	return true;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static bool pair_transfer(uint32_t word, struct transfer *t)
{
	uint32_t opc = word >> 30;

	*t = (struct transfer){ .vector = word >> 26 & 1, .load = word >> 22 & 1 };
	if (t->vector) {
		t->w = (uint8_t)(4 << (opc & 3));
		return opc != 3;
	}
	t->w = opc == 2 ? 8 : 4;
	t->extends = opc == 1 ? 8 : 0;
	/* Non-temporal pairs have no extending form. */
	return opc != 3 && (opc != 1 || (t->load && a64_bits(word, 23, 2)));
}

/* The second first, lest the base be lost, and because the first tells the address. */
static void transfer_pair(struct vtrace_maker *m, const struct transfer *t, uint8_t rt, uint8_t rt2,
			  struct place p)
{
	uint8_t base = p.a;
	struct place second = p;

	second.imm += t->w;
	if (t->load && !t->vector && rt2 == base && rt2 != A64_SP) {
		p.a = second.a = vtrace_temp(m);
		vtrace_make(m, VTRACE_MOV, 8, p.a, base, VTRACE_ZERO);
	}
	transfer(m, t, rt2, &second);
	transfer(m, t, rt, &p);
}

static bool pair(struct vtrace_maker *m, uint32_t word)
{
	uint32_t mode = a64_bits(word, 23, 2);
	uint8_t rt = a64_rd(word), rt2 = (uint8_t)a64_bits(word, 10, 5), rn = a64_rn(word);
	bool moves = mode & 1;
	struct transfer t;
	struct place p = { rn, VTRACE_ZERO, 0, 0, 0 };
	uint64_t offset;

	if (!pair_transfer(word, &t) || (t.load && rt == rt2))
		return false;
	if (moves && !t.vector && rn != A64_SP && (rt == rn || rt2 == rn))
		return false;
	offset = a64_signed(word, 15, 7) * t.w;
	p.imm = mode == 1 ? 0 : offset;
	set_class(m, &t);
	transfer_pair(m, &t, rt, rt2, p);
	if (moves)
		vtrace_make_imm(m, VTRACE_ADD, 8, rn, rn, offset);
	return true;
}

/* ---- ordered, exclusive, atomic -------------------------------------------------------------- */

/* The outcome of an exclusive store cannot be predicted: the memory there is unknown afterwards. */
static void store_exclusive(struct vtrace_maker *m, uint8_t w, uint8_t status, uint8_t base,
			    bool two)
{
	uint8_t t = vtrace_temp(m);

	vtrace_taint(m, t);
	if (two)
		vtrace_make(m, VTRACE_STORE, w, t, base, VTRACE_ZERO)->imm = w;
	vtrace_make(m, VTRACE_STORE, w, t, base, VTRACE_ZERO);
	vtrace_taint(m, status);
}

static void compare_and_swap(struct vtrace_maker *m, uint8_t w, uint8_t rs, uint8_t rt,
			     uint8_t base)
{
	uint8_t old = vtrace_temp(m), same = vtrace_temp(m), value = vtrace_temp(m);
	uint8_t rest = vtrace_temp(m);

	m->class = VTRACE_CLASS_ATOMIC;
	vtrace_make(m, VTRACE_LOAD, w, old, base, VTRACE_ZERO);
	vtrace_make(m, VTRACE_LANE_EQ, w, same, old, rs);
	vtrace_make(m, VTRACE_AND, 8, value, rt, same);
	vtrace_make(m, VTRACE_ANDN, 8, rest, old, same);
	vtrace_make(m, VTRACE_OR, 8, value, value, rest);
	vtrace_make(m, VTRACE_STORE, w, value, base, VTRACE_ZERO);
	vtrace_make(m, VTRACE_MOV, 8, rs, old, VTRACE_ZERO);
}

static bool ordered(struct vtrace_maker *m, uint32_t word)
{
	uint32_t size = word >> 30, kind = a64_bits(word, 21, 3);
	bool load = kind & 2, two = kind & 1;
	uint8_t w = (uint8_t)(1 << size), rt = a64_rd(word), rn = a64_rn(word);
	uint8_t rs = a64_rm(word), rt2 = (uint8_t)a64_bits(word, 10, 5);
	struct place p = { rn, VTRACE_ZERO, 0, 0, 0 };
	struct transfer t = { .w = w, .load = load };

	if ((kind & 5) == 5) {
		if (rt2 != 31)
			return false;
		compare_and_swap(m, w, a64_zr(rs), a64_zr(rt), rn);
		return true;
	}
	/* casp, and a status in a register that is used otherwise. */
	if (two && (size < 2 || (load && rt == rt2)))
		return false;
	m->class = load ? VTRACE_CLASS_LOAD : VTRACE_CLASS_STORE;
	if (kind & 4 || (load && !two))
		transfer(m, &t, rt, &p);
	else if (load)
		transfer_pair(m, &t, rt, rt2, p);
	else
		store_exclusive(m, w, a64_zr(rs), rn, two);
	return true;
}

/* The value that an atomic operation stores: from @old and @rs, @w bytes. */
static uint8_t combine(struct vtrace_maker *m, uint32_t opc, uint8_t w, uint8_t old, uint8_t rs)
{
	static const uint8_t ops[] = {
		VTRACE_ADD, VTRACE_ANDN, VTRACE_XOR,	   VTRACE_OR,
		VTRACE_NOP, VTRACE_NOP,	 VTRACE_LANE_MAXU, VTRACE_LANE_MINU
	};
	uint8_t value = vtrace_temp(m), rest = vtrace_temp(m), greater = vtrace_temp(m);

	if (ops[opc] != VTRACE_NOP) {
		vtrace_make(m, ops[opc], w, value, old, rs);
		return value;
	}
	vtrace_make(m, VTRACE_LANE_GT, w, greater, opc == 4 ? old : rs, opc == 4 ? rs : old);
	vtrace_make(m, VTRACE_AND, 8, value, old, greater);
	vtrace_make(m, VTRACE_ANDN, 8, rest, rs, greater);
	vtrace_make(m, VTRACE_OR, 8, value, value, rest);
	return value;
}

static bool atomic(struct vtrace_maker *m, uint32_t word)
{
	uint32_t opc = a64_bits(word, 12, 3);
	bool other = word >> 15 & 1;
	uint8_t w = (uint8_t)(1 << (word >> 30)), rs = a64_zr(a64_rm(word)), rn = a64_rn(word);
	uint8_t rt = a64_zr(a64_rd(word)), old, value;

	if (word >> 26 & 1 || (other && opc && opc != 4))
		return false;
	if (other && opc == 4) { /* ldapr */
		m->class = VTRACE_CLASS_LOAD;
		vtrace_make(m, VTRACE_LOAD, w, rt, rn, VTRACE_ZERO);
		return rs == VTRACE_ZERO;
	}
	m->class = VTRACE_CLASS_ATOMIC;
	old = vtrace_temp(m);
	vtrace_make(m, VTRACE_LOAD, w, old, rn, VTRACE_ZERO);
	value = other ? rs : combine(m, opc, w, old, rs);
	vtrace_make(m, VTRACE_STORE, w, value, rn, VTRACE_ZERO);
	vtrace_make(m, VTRACE_MOV, 8, rt, old, VTRACE_ZERO);
	return true;
}

/* ---- structures of vectors ------------------------------------------------------------------- */

/* ld1 and st1 of one to four whole registers: how many; 0: something else. */
static uint32_t plain_registers(uint32_t word)
{
	switch (a64_bits(word, 12, 4)) {
	case 7:
		return 1;
	case 10:
		return 2;
	case 6:
		return 3;
	case 2:
		return 4;
	default:
		return 0;
	}
}

static bool structures(struct vtrace_maker *m, uint32_t word)
{
	uint32_t nr = plain_registers(word);
	bool moves = word >> 23 & 1;
	uint8_t rn = a64_rn(word), rm = a64_rm(word);
	struct transfer t = { .w = word >> 30 & 1 ? 16 : 8,
			      .vector = true,
			      .load = word >> 22 & 1 };
	struct place p = { rn, VTRACE_ZERO, 0, 0, 0 };

	if (!nr || word >> 31 || word >> 24 & 1 || word >> 21 & 1 || (!moves && rm))
		return false;
	set_class(m, &t);
	for (uint32_t i = nr; i--;) {
		p.imm = (uint64_t)i * t.w;
		transfer(m, &t, (a64_rd(word) + i) & 31, &p);
	}
	if (moves && rm == 31)
		vtrace_make_imm(m, VTRACE_ADD, 8, rn, rn, (uint64_t)nr * t.w);
	else if (moves)
		vtrace_make(m, VTRACE_ADD, 8, rn, rn, rm);
	return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool translate(struct vtrace_maker *m, uint32_t word)
{
	if ((word & 0x3f000000) == 0x08000000)
		return ordered(m, word);
	if ((word & 0xbe000000) == 0x0c000000)
		return structures(m, word);
	if ((word & 0x3b000000) == 0x18000000)
		return literal(m, word);
	if ((word & 0x3f200c00) == 0x19000000)
		return offset_signed(m, word);
	if ((word & 0x38000000) == 0x28000000)
		return pair(m, word);
	if ((word & 0x3b000000) == 0x39000000)
		return offset_unsigned(m, word);
	if ((word & 0x3b200000) == 0x38000000)
		return offset_signed(m, word);
	if ((word & 0x3b200c00) == 0x38200800)
		return offset_register(m, word);
	if ((word & 0x3b200c00) == 0x38200000)
		return atomic(m, word);
	return false;
}

static void unknown(struct vtrace_maker *m, uint32_t word)
{
	/* Structures of vectors, and pairs of vectors with a base that moves. */
	bool vector = word >> 26 & 1;
	uint8_t rt = a64_rd(word);

	vtrace_make_imm(m, VTRACE_TAINT_MEMORY, 8, VTRACE_ZERO, VTRACE_ZERO, 1);
	for (unsigned int i = 0; i < 4 && vector; i++) {
		vtrace_taint(m, a64_vector_chunk((rt + i) & 31, 0));
		vtrace_taint(m, a64_vector_chunk((rt + i) & 31, 1));
	}
	vtrace_taint(m, a64_rn(word));
	if (vector)
		return;
	/* Also the second of two, which a pair of exclusives and casp have: that after the first.
	 */
	vtrace_taint(m, a64_zr(rt));
	vtrace_taint(m, a64_zr((rt + 1) & 31));
	vtrace_taint(m, a64_zr((uint8_t)a64_bits(word, 10, 5)));
	vtrace_taint(m, a64_zr(a64_rm(word)));
	vtrace_taint(m, a64_zr((a64_rm(word) + 1) & 31));
}

const struct a64_kind a64_memory = { translate, unknown };
