/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Comparisons of vectors into mask registers, and what is done with these: the string routines of C
 * libraries are made of them. Which is which is told by map, opcode and prefix, as in the
 * processors' manuals.
 */
#include "x86_internal.h"

enum { PP_NONE, PP_66, PP_F3, PP_F2 };
enum { MAP_0F = 1, MAP_0F38, MAP_0F3A };

struct vex {
	uint8_t map, pp, opcode, w, len; /* len: 0 of 128 bits, 1 of 256, 2 of 512 */
	uint8_t reg, vvvv, mask;	 /* numbers of registers */
	bool evex, zeroing, broadcast;
	/* The last operand: a register, or memory. */
	bool is_memory;
	uint8_t rm;
	struct x86_place place;
	uint8_t imm;
};

/* ---- operands -------------------------------------------------------------------------------- */

static uint8_t bit(uint8_t byte, unsigned int n)
{
	return byte >> n & 1;
}

static void read_prefix(struct vex *v, const ZydisDecodedInstruction *i)
{
	v->evex = i->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;
	v->map = (uint8_t)i->opcode_map;
	v->opcode = i->opcode;
	v->imm = (uint8_t)i->raw.imm[0].value.u;
	v->pp = v->evex ? i->raw.evex.pp : i->raw.vex.pp;
	v->w = v->evex ? i->raw.evex.W : i->raw.vex.W;
	v->len = v->evex ? (uint8_t)(i->raw.evex.L | i->raw.evex.L2 << 1) : i->raw.vex.L;
	v->zeroing = v->evex && i->raw.evex.z;
	v->broadcast = v->evex && i->raw.evex.b;
}

static uint8_t number(const ZydisDecodedOperand *op)
{
	return insn_x86_register(op->reg.value).number;
}

/* False: an operand's place cannot be said. */
static bool read_operands(struct x86 *k, struct vex *v)
{
	for (int i = 0; i < k->nr_ops; i++) {
		if (k->op[i]->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			v->is_memory = true;
			if (!x86_place(k, i, &v->place))
				return false;
		} else if (k->op[i]->encoding == ZYDIS_OPERAND_ENCODING_MODRM_REG) {
			v->reg = number(k->op[i]);
		} else if (k->op[i]->encoding == ZYDIS_OPERAND_ENCODING_NDSNDD) {
			v->vvvv = number(k->op[i]);
		} else if (k->op[i]->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM) {
			v->rm = number(k->op[i]);
		}
	}
	v->mask = v->evex ? k->head->raw.evex.aaa : 0;
	return true;
}

static void memory_op(struct vtrace_maker *m, const struct vex *v, enum vtrace_op op, uint8_t w,
		      uint8_t reg, uint8_t c)
{
	struct vtrace_uop *u = vtrace_make(m, op, w, reg, v->place.a, v->place.b);

	x86_set_place(u, &v->place);
	u->imm += 8u * c;
}

static uint8_t chunk(struct vtrace_maker *m, const struct vex *v, uint8_t c)
{
	uint8_t t;

	if (!v->is_memory)
		return VTRACE_VECTOR + 4 * v->rm + c;
	t = vtrace_temp(m);
	memory_op(m, v, VTRACE_LOAD, 8, t, c);
	m->nr_temps--; /* used at once */
	return t;
}

/* ---- vectors into masks ---------------------------------------------------------------------- */

static uint8_t nr_chunks(const struct vex *v)
{
	return (uint8_t)(2 << v->len);
}

/* Lanes of chunk @c that are all ones in @t, as bits of @sum. The mask comes before: what it leaves
 * out need not be known. */
static void add_signs(struct vtrace_maker *m, const struct vex *v, uint8_t w, uint8_t t,
		      uint8_t sum, uint8_t c, bool negate)
{
	uint8_t bits = (uint8_t)(8 / w * c);

	if (negate)
		vtrace_make_imm(m, VTRACE_XOR, 8, t, t, UINT64_MAX);
	if (v->mask) {
		uint8_t lanes = vtrace_temp(m);

		vtrace_make_imm(m, VTRACE_LANE_MASK, w, lanes, VTRACE_MASK + v->mask, 0)->x = bits;
		vtrace_make(m, VTRACE_AND, 8, t, t, lanes);
		m->nr_temps--; /* used at once */
	}
	vtrace_make_imm(m, VTRACE_LANE_SIGNS, w, sum, t, 0)->x = bits;
}

/* @negate: the lanes in which it is not so. Lanes that the mask leaves out are 0. */
static void into_mask(struct vtrace_maker *m, const struct vex *v, enum vtrace_op op, uint8_t w,
		      bool swap, bool negate)
{
	uint8_t t = vtrace_temp(m), sum = vtrace_const(m, 0);

	for (uint8_t c = 0; c < nr_chunks(v); c++) {
		uint8_t a = VTRACE_VECTOR + 4 * v->vvvv + c, b = chunk(m, v, c);

		vtrace_make(m, op, op == VTRACE_AND ? 8 : w, t, swap ? b : a, swap ? a : b);
		if (op == VTRACE_AND)
			vtrace_make(m, VTRACE_LANE_EQ, w, t, t, VTRACE_ZERO);
		add_signs(m, v, w, t, sum, c, negate);
	}
	vtrace_make_imm(m, VTRACE_MOV, 8, VTRACE_MASK + (v->reg & 7), sum, 0);
}

/* The lanes of unsigned a <= b are those where the smaller one is a. */
static void below_or_equal(struct vtrace_maker *m, const struct vex *v, uint8_t w, bool swap,
			   bool negate)
{
	uint8_t t = vtrace_temp(m), sum = vtrace_const(m, 0);

	for (uint8_t c = 0; c < nr_chunks(v); c++) {
		uint8_t a = VTRACE_VECTOR + 4 * v->vvvv + c, b = chunk(m, v, c);

		vtrace_make(m, VTRACE_LANE_MINU, w, t, a, b);
		vtrace_make(m, VTRACE_LANE_EQ, w, t, t, swap ? b : a);
		add_signs(m, v, w, t, sum, c, negate);
	}
	vtrace_make_imm(m, VTRACE_MOV, 8, VTRACE_MASK + (v->reg & 7), sum, 0);
}

/* vpcmp[u]b…q: 0 =, 1 <, 2 <=, 3 false, 4 !=, 5 >=, 6 >, 7 true. */
static void by_predicate(struct vtrace_maker *m, const struct vex *v, uint8_t w, bool is_signed)
{
	uint8_t p = v->imm & 7;
	bool negate = p & 4;

	switch (p & 3) {
	case 0:
		into_mask(m, v, VTRACE_LANE_EQ, w, false, negate);
		break;
	case 1:
		if (is_signed)
			into_mask(m, v, VTRACE_LANE_GT, w, true, negate);
		else /* not b <= a */
			below_or_equal(m, v, w, true, !negate);
		break;
	case 2:
		if (is_signed) /* not a > b */
			into_mask(m, v, VTRACE_LANE_GT, w, false, !negate);
		else
			below_or_equal(m, v, w, false, negate);
		break;
	default:
		vtrace_taint(m, VTRACE_MASK + (v->reg & 7));
		break;
	}
}

static bool compares(struct vtrace_maker *m, const struct vex *v)
{
	uint8_t wide = v->w ? 8 : 4, narrow = v->w ? 2 : 1;

	if (!v->evex || v->len > 1 || v->broadcast)
		return false;
	if (v->map == MAP_0F3A && v->pp == PP_66 && (v->opcode == 0x3e || v->opcode == 0x3f))
		by_predicate(m, v, narrow, v->opcode == 0x3f);
	else if (v->map == MAP_0F3A && v->pp == PP_66 && (v->opcode == 0x1e || v->opcode == 0x1f))
		by_predicate(m, v, wide, v->opcode == 0x1f);
	else if (v->map == MAP_0F && v->pp == PP_66 && v->opcode >= 0x74 && v->opcode <= 0x76)
		into_mask(m, v, VTRACE_LANE_EQ, (uint8_t)(1 << (v->opcode - 0x74)), false, false);
	else if (v->map == MAP_0F && v->pp == PP_66 && v->opcode >= 0x64 && v->opcode <= 0x66)
		into_mask(m, v, VTRACE_LANE_GT, (uint8_t)(1 << (v->opcode - 0x64)), false, false);
	else if (v->map == MAP_0F38 && v->pp == PP_66 && v->opcode == 0x29)
		into_mask(m, v, VTRACE_LANE_EQ, 8, false, false);
	else if (v->map == MAP_0F38 && v->pp == PP_66 && v->opcode == 0x37)
		into_mask(m, v, VTRACE_LANE_GT, 8, false, false);
	else if (v->map == MAP_0F38 && (v->opcode == 0x26 || v->opcode == 0x27) &&
		 (v->pp == PP_66 || v->pp == PP_F3))
		/* vptestm: where a & b is not 0; vptestnm: where it is. */
		into_mask(m, v, VTRACE_AND, v->opcode == 0x26 ? narrow : wide, false,
			  v->pp == PP_66);
	else
		return false;
	m->class = VTRACE_CLASS_COMPARE;
	return true;
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* The bits for which the function of three bits is 1 (@rows), or 0 if these are fewer: a block has
 * no room for more than four rows of each chunk. */
static void ternary(struct vtrace_maker *m, const struct vex *v)
{
	uint8_t sum = vtrace_temp(m), t = vtrace_temp(m);
	bool negate = __builtin_popcount(v->imm) > 4;
	uint8_t rows = negate ? (uint8_t)~v->imm : v->imm;

	for (uint8_t c = 0; c < nr_chunks(v); c++) {
		uint8_t in[3] = { VTRACE_VECTOR + 4 * v->reg + c, VTRACE_VECTOR + 4 * v->vvvv + c,
				  chunk(m, v, c) };

		vtrace_make_imm(m, VTRACE_CONST, 8, sum, VTRACE_ZERO, 0);
		for (int row = 0; row < 8; row++) {
			if (!bit(rows, (unsigned int)row))
				continue;
			vtrace_make_imm(m, VTRACE_XOR, 8, t, in[0], row & 4 ? 0 : UINT64_MAX);
			vtrace_make(m, row & 2 ? VTRACE_AND : VTRACE_ANDN, 8, t, t, in[1]);
			vtrace_make(m, row & 1 ? VTRACE_AND : VTRACE_ANDN, 8, t, t, in[2]);
			vtrace_make(m, VTRACE_OR, 8, sum, sum, t);
		}
		vtrace_make_imm(m, VTRACE_XOR, 8, in[0], sum, negate ? UINT64_MAX : 0);
	}
	for (uint8_t c = nr_chunks(v); c < 4; c++)
		vtrace_make_imm(m, VTRACE_CONST, 8, VTRACE_VECTOR + 4 * v->reg + c, VTRACE_ZERO, 0);
	m->class = VTRACE_CLASS_VECTOR;
}

/* From a general register to all lanes. */
static void broadcast(struct vtrace_maker *m, const struct vex *v, uint8_t w)
{
	for (uint8_t c = 0; c < 4; c++) {
		uint8_t to = VTRACE_VECTOR + 4 * v->reg + c;

		if (c < nr_chunks(v))
			vtrace_make_imm(m, VTRACE_LANE_DUP, w, to, x86_general(v->rm), 0);
		else
			vtrace_make_imm(m, VTRACE_CONST, 8, to, VTRACE_ZERO, 0);
	}
	m->class = VTRACE_CLASS_VECTOR;
}

/* vmovdqu8, 16, 32, 64 and their aligned forms. */
static void move(struct vtrace_maker *m, const struct vex *v, bool store)
{
	for (int c = 0; c < (store ? nr_chunks(v) : 4); c++) {
		uint8_t reg = VTRACE_VECTOR + 4 * v->reg + c;

		if (store)
			v->is_memory
				? memory_op(m, v, VTRACE_STORE, 8, reg, c)
				: (void)vtrace_make_imm(m, VTRACE_MOV, 8, chunk(m, v, c), reg, 0);
		else if (c >= nr_chunks(v))
			vtrace_make_imm(m, VTRACE_CONST, 8, reg, VTRACE_ZERO, 0);
		else
			vtrace_make_imm(m, VTRACE_MOV, 8, reg, chunk(m, v, c), 0);
	}
	m->class = !v->is_memory ? VTRACE_CLASS_VECTOR
		   : store	 ? VTRACE_CLASS_STORE_FP
				 : VTRACE_CLASS_LOAD_FP;
}

/* The upper half of a register of 64 bytes is not modelled, but what it stores is stored. */
static void move_wide(struct vtrace_maker *m, const struct vex *v, bool store)
{
	uint8_t unknown = vtrace_temp(m);

	vtrace_taint(m, unknown);
	for (uint8_t c = 0; c < 4; c++)
		if (store)
			memory_op(m, v, VTRACE_STORE, 8, VTRACE_VECTOR + 4 * v->reg + c, c);
		else
			memory_op(m, v, VTRACE_LOAD, 8, VTRACE_VECTOR + 4 * v->reg + c, c);
	for (uint8_t c = 4; store && c < 8; c++)
		memory_op(m, v, VTRACE_STORE, 8, unknown, c);
	m->class = store ? VTRACE_CLASS_STORE_FP : VTRACE_CLASS_LOAD_FP;
}

/* Lanes that the mask leaves out stay, or become 0. */
static void move_masked(struct vtrace_maker *m, const struct vex *v, bool store, uint8_t w)
{
	uint8_t lanes = vtrace_temp(m), t = vtrace_temp(m), old = vtrace_temp(m);

	for (uint8_t c = 0; c < nr_chunks(v); c++) {
		uint8_t reg = VTRACE_VECTOR + 4 * v->reg + c, other = chunk(m, v, c);
		uint8_t from = store ? reg : other, to = store ? other : reg;

		vtrace_make_imm(m, VTRACE_LANE_MASK, w, lanes, VTRACE_MASK + v->mask, 0)->x =
			(uint8_t)(8 / w * c);
		vtrace_make(m, VTRACE_ANDN, 8, old, v->zeroing ? VTRACE_ZERO : to, lanes);
		vtrace_make(m, VTRACE_AND, 8, t, from, lanes);
		vtrace_make(m, VTRACE_OR, 8, t, t, old);
		if (store && v->is_memory)
			memory_op(m, v, VTRACE_STORE, 8, t, c);
		else
			vtrace_make_imm(m, VTRACE_MOV, 8, to, t, 0);
	}
	for (uint8_t c = nr_chunks(v); c < 4 && !(store && v->is_memory); c++)
		vtrace_make_imm(m, VTRACE_CONST, 8,
				VTRACE_VECTOR + 4 * (store ? v->rm : v->reg) + c, VTRACE_ZERO, 0);
	m->class = store ? VTRACE_CLASS_STORE_FP : VTRACE_CLASS_LOAD_FP;
}

/* Bytes of a lane of these moves. */
static uint8_t move_width(const struct vex *v)
{
	if (v->opcode != 0x6f && v->opcode != 0x7f)
		return v->pp == PP_66 ? 8 : 4;
	if (v->pp == PP_F2)
		return v->w ? 2 : 1;
	return v->w ? 8 : 4;
}

static bool is_move(const struct vex *v, bool *store)
{
	*store = v->opcode == 0x7f || v->opcode == 0x11 || v->opcode == 0x29 || v->opcode == 0xe7;
	if (v->map != MAP_0F || !v->evex || v->broadcast)
		return false;
	if (v->opcode == 0x6f || v->opcode == 0x7f)
		return v->pp != PP_NONE;
	if (v->opcode == 0xe7)
		return v->pp == PP_66;
	return (v->opcode == 0x10 || v->opcode == 0x11 || v->opcode == 0x28 || v->opcode == 0x29) &&
	       v->pp <= PP_66;
}

static bool vectors(struct vtrace_maker *m, const struct vex *v)
{
	bool store;

	if (is_move(v, &store) && v->len <= 2) {
		if (v->mask && v->len < 2)
			move_masked(m, v, store, move_width(v));
		else if (v->mask)
			return false;
		else if (v->len < 2)
			move(m, v, store);
		else if (v->is_memory)
			move_wide(m, v, store);
		else
			return false;
		return true;
	}
	if (!v->evex || v->len > 1 || v->mask || v->broadcast)
		return false;
	if (v->map == MAP_0F3A && v->pp == PP_66 && v->opcode == 0x25)
		ternary(m, v);
	else if (v->map == MAP_0F38 && v->pp == PP_66 && !v->is_memory && v->opcode == 0x7a)
		broadcast(m, v, 1);
	else if (v->map == MAP_0F38 && v->pp == PP_66 && !v->is_memory && v->opcode == 0x7b)
		broadcast(m, v, 2);
	else if (v->map == MAP_0F38 && v->pp == PP_66 && !v->is_memory && v->opcode == 0x7c)
		broadcast(m, v, v->w ? 8 : 4);
	else
		return false;
	return true;
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* Bytes of a mask: b, w, d, q are told by W and the prefix. */
static uint8_t mask_width(const struct vex *v)
{
	static const uint8_t by_prefix[2][2] = { { 2, 1 }, { 8, 4 } };

	return by_prefix[v->w][v->pp == PP_66];
}

static void move_mask(struct vtrace_maker *m, const struct vex *v)
{
	/* Between masks and memory as the others, with general registers of their own. */
	uint8_t w = v->opcode <= 0x91 ? mask_width(v)
		    : v->pp == PP_F2  ? v->w ? 8 : 4
		    : v->pp == PP_66  ? 1
				      : 2;

	if (v->opcode == 0x93)
		vtrace_make_imm(m, VTRACE_MOV, w, x86_general(v->reg), VTRACE_MASK + (v->rm & 7),
				0);
	else if (v->opcode == 0x92)
		vtrace_make_imm(m, VTRACE_MOV, w, VTRACE_MASK + (v->reg & 7), x86_general(v->rm),
				0);
	else if (v->is_memory)
		memory_op(m, v, v->opcode == 0x91 ? VTRACE_STORE : VTRACE_LOAD, w,
			  VTRACE_MASK + (v->reg & 7), 0);
	else
		vtrace_make_imm(m, VTRACE_MOV, w, VTRACE_MASK + (v->reg & 7),
				VTRACE_MASK + (v->rm & 7), 0);
	m->class = VTRACE_CLASS_MOVE;
}

/* Z: the union is empty; C: it is full (kortest). Of ktest Z: the intersection, C: b without a. */
static void test_masks(struct vtrace_maker *m, const struct vex *v)
{
	uint8_t w = mask_width(v), a = VTRACE_MASK + (v->reg & 7), b = VTRACE_MASK + (v->rm & 7);
	uint8_t t = vtrace_temp(m), full = vtrace_temp(m);

	m->class = VTRACE_CLASS_COMPARE;
	if (v->opcode == 0x98) {
		vtrace_make(m, VTRACE_OR, w, t, a, b);
		vtrace_make_imm(m, VTRACE_XOR, w, full, t, UINT64_MAX);
	} else {
		vtrace_make(m, VTRACE_AND, w, t, a, b);
		vtrace_make(m, VTRACE_ANDN, w, full, b, a);
	}
	x86_empty_flags(m, w, t, full);
}

static bool masks(struct vtrace_maker *m, const struct vex *v)
{
	static const uint8_t ops[16] = { [1] = VTRACE_AND,
					 [2] = VTRACE_ANDN,
					 [5] = VTRACE_OR,
					 [7] = VTRACE_XOR,
					 [10] = VTRACE_ADD };
	uint8_t a = VTRACE_MASK + (v->vvvv & 7), b = VTRACE_MASK + (v->rm & 7);
	uint8_t to = VTRACE_MASK + (v->reg & 7), w = mask_width(v);
	enum vtrace_op op = VTRACE_NOP;

	if (v->evex || v->map != MAP_0F)
		return false;
	if (v->opcode >= 0x90 && v->opcode <= 0x93) {
		move_mask(m, v);
		return true;
	}
	if (v->is_memory || v->pp > PP_66)
		return false;
	if ((v->opcode == 0x98 || v->opcode == 0x99) && !v->len) {
		test_masks(m, v);
		return true;
	}
	m->class = VTRACE_CLASS_LOGIC;
	if (v->opcode == 0x44 && !v->len) {
		vtrace_make_imm(m, VTRACE_XOR, w, to, b, UINT64_MAX);
		return true;
	}
	if (v->opcode == 0x46 && v->len) {
		vtrace_make(m, VTRACE_XOR, w, to, a, b);
		vtrace_make_imm(m, VTRACE_XOR, w, to, to, UINT64_MAX);
		return true;
	}
	if (v->opcode == 0x4b && v->len) {
		/* The low half of b below that of a. */
		uint8_t half = v->pp == PP_66 ? 1 : v->w ? 4 : 2, t = vtrace_temp(m);

		vtrace_make_imm(m, VTRACE_EXT, half, t, b, 0);
		vtrace_make_imm(m, VTRACE_INS, half, t, a, 0)->x = half;
		vtrace_make_imm(m, VTRACE_MOV, 8, to, t, 0);
		return true;
	}
	if (v->opcode >> 4 == 4 && v->len)
		op = ops[v->opcode & 15];
	if (op == VTRACE_ANDN)
		vtrace_make(m, op, w, to, b, a);
	else if (op)
		vtrace_make(m, op, w, to, a, b);
	return op;
}

/* kshiftl, kshiftr. */
static bool mask_shifts(struct vtrace_maker *m, const struct vex *v)
{
	uint8_t w = (v->opcode & 1 ? 4 : 1) << v->w, bits = 8 * w;
	uint8_t to = VTRACE_MASK + (v->reg & 7), from = VTRACE_MASK + (v->rm & 7);
	bool left = v->opcode & 2;

	if (v->evex || v->map != MAP_0F3A || v->pp != PP_66 || v->opcode < 0x30 ||
	    v->opcode > 0x33 || v->is_memory)
		return false;
	m->class = VTRACE_CLASS_SHIFT;
	if (v->imm >= bits)
		vtrace_make_imm(m, VTRACE_CONST, 8, to, VTRACE_ZERO, 0);
	else
		vtrace_make_imm(m, left ? VTRACE_SHL : VTRACE_SHR, w, to, from, v->imm);
	return true;
}

bool x86_evex(struct x86 *k)
{
	struct vtrace_maker *m = k->m;
	uint16_t before = m->code->block.nr_uops;
	struct vex v = { 0 };

	if (k->head->encoding != ZYDIS_INSTRUCTION_ENCODING_VEX &&
	    k->head->encoding != ZYDIS_INSTRUCTION_ENCODING_EVEX)
		return false;
	read_prefix(&v, k->head);
	if (read_operands(k, &v) &&
	    (compares(m, &v) || vectors(m, &v) || masks(m, &v) || mask_shifts(m, &v)))
		return true;
	m->code->block.nr_uops = before;
	m->nr_temps = 0;
	m->class = VTRACE_CLASS_OTHER;
	return false;
}
