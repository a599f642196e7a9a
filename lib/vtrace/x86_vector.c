/* SPDX-License-Identifier: BSD-2-Clause */
/* Vectors of integers, as string routines and compilers use them, in chunks of eight bytes; and
 * comparisons of strings in them. */
#include "x86_internal.h"

/* Forms with a v in front write all of the register, others the low 16 bytes. */
static bool is_vex(const struct x86 *k)
{
	return k->head->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
}

/* The kind that X86_NOTHING has, where operand @i is no register. */
static struct x86_register x86_vector_register(const struct x86 *k, int i)
{
	return k->op[i]->type == ZYDIS_OPERAND_TYPE_REGISTER ? x86_register(k->op[i]->reg.value)
							     : (struct x86_register){ 0 };
}

/* A mask makes it another instruction, as a broadcast does, or a rounding of its own. */
static bool is_masked(const struct x86 *k)
{
	const ZydisDecodedInstructionAvx *avx = &k->head->avx;

	return (avx->mask.reg != ZYDIS_REGISTER_NONE && avx->mask.reg != ZYDIS_REGISTER_K0) ||
	       avx->has_sae || avx->rounding.mode != ZYDIS_ROUNDING_MODE_INVALID ||
	       (avx->broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID && !avx->broadcast.is_static);
}

/* Chunks from @from on become 0, where the instruction is of those that write all of a register. */
static void x86_zero_above(struct x86 *k, uint8_t reg, uint8_t from)
{
	for (uint8_t c = from; is_vex(k) && c < 4; c++)
		vtrace_make_imm(k->m, VTRACE_CONST, 8, reg + c, VTRACE_ZERO, 0);
}

/* Chunk @c of operand @i, of which @w bytes count. */
static uint8_t x86_chunk(struct x86 *k, int i, uint8_t c, uint8_t w)
{
	struct x86_register reg = x86_vector_register(k, i);
	struct x86_place p;
	uint8_t t;

	if (reg.kind == X86_VECTOR)
		return reg.number + c;
	t = vtrace_temp(k->m);
	if (k->op[i]->type == ZYDIS_OPERAND_TYPE_MEMORY && x86_place(k, i, &p)) {
		p.imm += 8u * c;
		x86_load(k, w, t, &p);
	} else {
		vtrace_taint(k->m, t);
	}
	return t;
}

/* ---- bytes and halves that change their places ----------------------------------------------- */

/* The two low chunks of the result, made before either is written. */
static bool put(struct x86 *k, uint8_t low, uint8_t high)
{
	struct x86_register to = x86_vector_register(k, 0);

	k->m->class = VTRACE_CLASS_VECTOR;
	vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number + 1, high, 0);
	vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number, low, 0);
	x86_zero_above(k, to.number, 2);
	return true;
}

static uint8_t copy(struct x86 *k, uint8_t from)
{
	uint8_t t = vtrace_temp(k->m);

	vtrace_make_imm(k->m, VTRACE_MOV, 8, t, from, 0);
	return t;
}

static bool is_small(const struct x86 *k)
{
	struct x86_register to = x86_vector_register(k, 0);

	return to.kind == X86_VECTOR && to.w == 16;
}

/* Bytes chosen by those of the last operand; highest bit set: 0. */
static bool choose_bytes(struct x86 *k)
{
	struct x86_register to = x86_vector_register(k, 0);
	int first = k->nr_ops == 3;
	uint8_t t[4];

	if (to.kind != X86_VECTOR || to.w > 32 || x86_vector_register(k, first).kind != X86_VECTOR)
		return false;
	for (uint8_t c = 0; c < to.w / 8; c++) {
		uint8_t by = x86_chunk(k, first + 1, c, 8);

		t[c] = vtrace_const(k->m, 0);
		for (uint8_t half = 0; half < 2; half++)
			vtrace_make(k->m, VTRACE_LANE_PICK, 1, t[c],
				    x86_chunk(k, first, (c & 2) + half, 8), by)
				->x = 8 * half;
	}
	k->m->class = VTRACE_CLASS_VECTOR;
	for (uint8_t c = 0; c < to.w / 8; c++)
		vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number + c, t[c], 0);
	x86_zero_above(k, to.number, to.w / 8);
	return true;
}

/* Sixteen bytes of the @from, from byte @n of them on; behind these is 0. */
static bool align(struct x86 *k, const uint8_t from[4], uint64_t n)
{
	uint8_t t[2];

	for (uint64_t c = 0; c < 2; c++) {
		uint64_t at = n / 8 + c;
		uint8_t low = at < 4 ? from[at] : VTRACE_ZERO;
		uint8_t high = at + 1 < 4 ? from[at + 1] : VTRACE_ZERO;

		t[c] = vtrace_temp(k->m);
		vtrace_make(k->m, VTRACE_FUNNEL, 8, t[c], n % 8 ? high : low, low)->imm = n % 8 * 8;
	}
	return put(k, t[0], t[1]);
}

static bool align_two(struct x86 *k)
{
	int first = k->nr_ops == 4;

	if (!is_small(k) || k->op[k->nr_ops - 1]->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	return align(k,
		     (uint8_t[4]){ x86_chunk(k, first + 1, 0, 8), x86_chunk(k, first + 1, 1, 8),
				   x86_chunk(k, first, 0, 8), x86_chunk(k, first, 1, 8) },
		     (uint8_t)k->op[k->nr_ops - 1]->imm.value.u);
}

static bool shift_bytes(struct x86 *k, bool left)
{
	int first = k->nr_ops == 3;
	uint64_t n = k->op[k->nr_ops - 1]->type == ZYDIS_OPERAND_TYPE_IMMEDIATE
			     ? (uint8_t)k->op[k->nr_ops - 1]->imm.value.u
			     : 0;
	uint8_t low, high;

	if (!is_small(k) || k->op[k->nr_ops - 1]->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	low = x86_chunk(k, first, 0, 8);
	high = x86_chunk(k, first, 1, 8);
	n = n < 16 ? n : 16;
	return left ? align(k, (uint8_t[4]){ VTRACE_ZERO, VTRACE_ZERO, low, high }, 16 - n)
		    : align(k, (uint8_t[4]){ low, high, VTRACE_ZERO, VTRACE_ZERO }, n);
}

/* movhlps, movlhps, shufpd: a chunk of the first operand and one of the last. */
static bool chunks(struct x86 *k, int last, uint8_t low_of, uint8_t low, uint8_t high_of,
		   uint8_t high)
{
	int of[2] = { last - 1, last };

	if (!is_small(k) || last < 1)
		return false;
	return put(k, copy(k, x86_chunk(k, of[low_of], low, 8)),
		   copy(k, x86_chunk(k, of[high_of], high, 8)));
}

static bool choose_chunks(struct x86 *k)
{
	uint64_t imm = k->op[k->nr_ops - 1]->imm.value.u;

	return k->op[k->nr_ops - 1]->type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	       chunks(k, k->nr_ops - 2, 0, imm & 1, 1, imm >> 1 & 1);
}

/* Two words of the first operand, then two of the second. */
static bool choose_words(struct x86 *k)
{
	int first = k->nr_ops == 4;
	uint8_t t[2], word;

	if (!is_small(k) || k->op[k->nr_ops - 1]->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	word = vtrace_temp(k->m);
	for (int i = 0; i < 4; i++) {
		uint8_t x = k->op[k->nr_ops - 1]->imm.value.u >> 2 * i & 3;

		if (i % 2 == 0)
			t[i / 2] = vtrace_const(k->m, 0);
		vtrace_make_imm(k->m, VTRACE_EXT, 4, word, x86_chunk(k, first + i / 2, x / 2, 8), 0)
			->x = x % 2 * 4;
		vtrace_make_imm(k->m, VTRACE_INS, 4, t[i / 2], word, 0)->x = i % 2 * 4;
	}
	return put(k, t[0], t[1]);
}

/* @w bytes of a vector, by number, to a general register or memory. */
static bool extract(struct x86 *k, uint8_t w)
{
	struct x86_register from = x86_vector_register(k, 1);
	uint8_t at, t = vtrace_temp(k->m);

	if (from.kind != X86_VECTOR || k->nr_ops != 3 ||
	    k->op[2]->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	k->m->class = VTRACE_CLASS_MOVE;
	at = (uint8_t)(k->op[2]->imm.value.u * w % 16);
	vtrace_make_imm(k->m, VTRACE_EXT, w, t, from.number + at / 8, 0)->x = at % 8;
	x86_write(k, 0, t);
	return true;
}

static bool insert(struct x86 *k, uint8_t w)
{
	int first = k->nr_ops == 4, last = k->nr_ops - 1;
	struct x86_register from = x86_vector_register(k, first);
	uint8_t at, value, t[2];

	if (!is_small(k) || from.kind != X86_VECTOR ||
	    k->op[last]->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	value = x86_read(k, first + 1);
	t[0] = copy(k, from.number);
	t[1] = copy(k, from.number + 1);
	at = (uint8_t)(k->op[last]->imm.value.u * w % 16);
	vtrace_make_imm(k->m, VTRACE_INS, w, t[at / 8], value, 0)->x = at % 8;
	return put(k, t[0], t[1]);
}

static bool x86_shuffle(struct x86 *k)
{
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_PSHUFB:
	case ZYDIS_MNEMONIC_VPSHUFB:
		return choose_bytes(k);
	case ZYDIS_MNEMONIC_PALIGNR:
	case ZYDIS_MNEMONIC_VPALIGNR:
		return align_two(k);
	case ZYDIS_MNEMONIC_PSRLDQ:
	case ZYDIS_MNEMONIC_VPSRLDQ:
		return shift_bytes(k, false);
	case ZYDIS_MNEMONIC_PSLLDQ:
	case ZYDIS_MNEMONIC_VPSLLDQ:
		return shift_bytes(k, true);
	case ZYDIS_MNEMONIC_MOVHLPS:
		return chunks(k, 1, 1, 1, 0, 1);
	case ZYDIS_MNEMONIC_VMOVHLPS:
		return chunks(k, 2, 1, 1, 0, 1);
	case ZYDIS_MNEMONIC_MOVLHPS:
		return chunks(k, 1, 0, 0, 1, 0);
	case ZYDIS_MNEMONIC_VMOVLHPS:
		return chunks(k, 2, 0, 0, 1, 0);
	case ZYDIS_MNEMONIC_SHUFPD:
	case ZYDIS_MNEMONIC_VSHUFPD:
		return choose_chunks(k);
	case ZYDIS_MNEMONIC_SHUFPS:
	case ZYDIS_MNEMONIC_VSHUFPS:
		return choose_words(k);
	case ZYDIS_MNEMONIC_PEXTRB:
	case ZYDIS_MNEMONIC_VPEXTRB:
		return extract(k, 1);
	case ZYDIS_MNEMONIC_PEXTRW:
	case ZYDIS_MNEMONIC_VPEXTRW:
		return extract(k, 2);
	case ZYDIS_MNEMONIC_PEXTRD:
	case ZYDIS_MNEMONIC_VPEXTRD:
		return extract(k, 4);
	case ZYDIS_MNEMONIC_PEXTRQ:
	case ZYDIS_MNEMONIC_VPEXTRQ:
		return extract(k, 8);
	case ZYDIS_MNEMONIC_PINSRB:
	case ZYDIS_MNEMONIC_VPINSRB:
		return insert(k, 1);
	case ZYDIS_MNEMONIC_PINSRW:
	case ZYDIS_MNEMONIC_VPINSRW:
		return insert(k, 2);
	case ZYDIS_MNEMONIC_PINSRD:
	case ZYDIS_MNEMONIC_VPINSRD:
		return insert(k, 4);
	case ZYDIS_MNEMONIC_PINSRQ:
	case ZYDIS_MNEMONIC_VPINSRQ:
		return insert(k, 8);
	default:
		return false;
	}
}

/* ---- moves ----------------------------------------------------------------------------------- */

static bool move_all(struct x86 *k)
{
	struct x86_register to = x86_vector_register(k, 0), from = x86_vector_register(k, 1);
	uint8_t w = to.kind == X86_VECTOR ? to.w : from.w;
	struct x86_place p;

	if (w > 32 || k->nr_ops != 2 ||
	    (to.kind != X86_VECTOR && k->op[0]->type != ZYDIS_OPERAND_TYPE_MEMORY))
		return false;
	k->m->class = k->op[1]->type == ZYDIS_OPERAND_TYPE_MEMORY   ? VTRACE_CLASS_LOAD_FP
		      : k->op[0]->type == ZYDIS_OPERAND_TYPE_MEMORY ? VTRACE_CLASS_STORE_FP
								    : VTRACE_CLASS_VECTOR;
	if (to.kind != X86_VECTOR) {
		if (!x86_place(k, 0, &p))
			return false;
		for (uint8_t c = 0; c < w / 8; c++, p.imm += 8)
			x86_store(k, 8, from.number + c, &p);
		return true;
	}
	for (uint8_t c = 0; c < w / 8; c++)
		vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number + c, x86_chunk(k, 1, c, 8), 0);
	x86_zero_above(k, to.number, w / 8);
	return true;
}

/* The low @w bytes, between a vector and a general register, memory, or another vector. */
static bool move_low(struct x86 *k, uint8_t w)
{
	struct x86_register to = x86_vector_register(k, 0), from = x86_vector_register(k, 1);

	if (k->nr_ops != 2)
		return false;
	if (to.kind != X86_VECTOR) {
		k->m->class = k->op[0]->type == ZYDIS_OPERAND_TYPE_MEMORY ? VTRACE_CLASS_STORE_FP
									  : VTRACE_CLASS_MOVE;
		x86_write(k, 0, from.kind == X86_VECTOR ? from.number : x86_read(k, 1));
		return true;
	}
	k->m->class = k->op[1]->type == ZYDIS_OPERAND_TYPE_MEMORY ? VTRACE_CLASS_LOAD_FP
								  : VTRACE_CLASS_MOVE;
	vtrace_make_imm(k->m, VTRACE_MOV, w, to.number,
			from.kind == X86_VECTOR ? from.number : x86_read(k, 1), 0);
	vtrace_make_imm(k->m, VTRACE_CONST, 8, to.number + 1, VTRACE_ZERO, 0);
	x86_zero_above(k, to.number, 2);
	return true;
}

/* movss, movsd: from memory the rest becomes 0, from a register it stays, or is that of another. */
static bool move_scalar(struct x86 *k, uint8_t w)
{
	struct x86_register to = x86_vector_register(k, 0),
			    from = x86_vector_register(k, k->nr_ops - 1),
			    rest = x86_vector_register(k, 1);

	if (k->op[0]->type == ZYDIS_OPERAND_TYPE_MEMORY ||
	    k->op[k->nr_ops - 1]->type == ZYDIS_OPERAND_TYPE_MEMORY)
		return k->nr_ops == 2 && move_low(k, w);
	if (to.kind != X86_VECTOR || from.kind != X86_VECTOR)
		return false;
	k->m->class = VTRACE_CLASS_MOVE;
	if (k->nr_ops == 3) {
		uint8_t t = vtrace_temp(k->m);

		vtrace_make_imm(k->m, VTRACE_MOV, 8, t, rest.number, 0);
		vtrace_make_imm(k->m, VTRACE_INS, w, t, from.number, 0);
		vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number + 1, rest.number + 1, 0);
		vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number, t, 0);
		x86_zero_above(k, to.number, 2);
	} else {
		vtrace_make_imm(k->m, VTRACE_INS, w, to.number, from.number, 0);
	}
	return true;
}

/* One half of a vector from or to memory. */
static bool move_half(struct x86 *k, uint8_t half)
{
	struct x86_register to = x86_vector_register(k, 0), from = x86_vector_register(k, 1);

	if (k->nr_ops != 2)
		return false;
	if (to.kind == X86_VECTOR && k->op[1]->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		k->m->class = VTRACE_CLASS_LOAD_FP;
		vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number + half, x86_read(k, 1), 0);
		return true;
	}
	if (k->op[0]->type != ZYDIS_OPERAND_TYPE_MEMORY || from.kind != X86_VECTOR)
		return false;
	k->m->class = VTRACE_CLASS_STORE_FP;
	x86_write(k, 0, from.number + half);
	return true;
}

static bool broadcast(struct x86 *k, uint8_t w)
{
	struct x86_register to = x86_vector_register(k, 0), from = x86_vector_register(k, 1);
	uint8_t t = vtrace_temp(k->m);

	if (to.kind != X86_VECTOR || to.w > 32 || k->nr_ops != 2)
		return false;
	k->m->class = VTRACE_CLASS_VECTOR;
	vtrace_make_imm(k->m, VTRACE_LANE_DUP, w, t,
			from.kind == X86_VECTOR ? from.number : x86_read(k, 1), 0);
	for (uint8_t c = 0; c < to.w / 8; c++)
		vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number + c, t, 0);
	x86_zero_above(k, to.number, to.w / 8);
	return true;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Lane by lane; @swap: the second operand is the first of the micro-op. */
static bool lanes(struct x86 *k, enum vtrace_op op, uint8_t w, bool swap)
{
	struct x86_register to = x86_vector_register(k, 0);
	int first = k->nr_ops == 3;
	bool zero = (op == VTRACE_XOR || op == VTRACE_LANE_SUB || op == VTRACE_LANE_EQ) &&
		    k->op[first]->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    k->op[first + 1]->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    k->op[first]->reg.value == k->op[first + 1]->reg.value;

	if (to.kind != X86_VECTOR || to.w > 32 || k->nr_ops < 2 || k->nr_ops > 3 ||
	    x86_vector_register(k, first).kind != X86_VECTOR)
		return false;
	k->m->class = VTRACE_CLASS_VECTOR;
	for (uint8_t c = 0; c < to.w / 8; c++) {
		uint8_t a = zero ? VTRACE_ZERO : x86_chunk(k, first, c, 8);
		uint8_t b = zero ? VTRACE_ZERO : x86_chunk(k, first + 1, c, 8);

		vtrace_make(k->m, op, w, to.number + c, swap ? b : a, swap ? a : b);
	}
	x86_zero_above(k, to.number, to.w / 8);
	return true;
}

static bool signs(struct x86 *k, uint8_t w)
{
	struct x86_register from = x86_vector_register(k, 1), to = x86_vector_register(k, 0);

	if (from.kind != X86_VECTOR || from.w > 32 || to.kind != X86_GENERAL)
		return false;
	k->m->class = VTRACE_CLASS_VECTOR;
	vtrace_make_imm(k->m, VTRACE_CONST, 8, to.number, VTRACE_ZERO, 0);
	for (uint8_t c = 0; c < from.w / 8; c++)
		vtrace_make_imm(k->m, VTRACE_LANE_SIGNS, w, to.number, from.number + c, 0)->x =
			(uint8_t)(8 / w * c);
	return true;
}

/* The last two micro-ops leave C as the first makes it. */
void x86_empty_flags(struct vtrace_maker *m, uint8_t w, uint8_t z, uint8_t c)
{
	vtrace_make_imm(m, VTRACE_SUB, w, VTRACE_ZERO, c, 1)->set = VTRACE_SET_SUB;
	vtrace_make_imm(m, VTRACE_SET_FLAGS, 8, VTRACE_ZERO, VTRACE_ZERO, 0)->x =
		VTRACE_O | VTRACE_S | VTRACE_P;
	vtrace_make_imm(m, VTRACE_ADD, w, VTRACE_ZERO, z, 0)->set = VTRACE_SET_EMPTY;
}

/* Z: the operands have no bit in common; C: the last has none that the first lacks. */
static bool test_bits(struct x86 *k)
{
	struct x86_register first = x86_vector_register(k, 0);
	uint8_t common, other, t;

	if (first.kind != X86_VECTOR || first.w > 32 || k->nr_ops != 2)
		return false;
	k->m->class = VTRACE_CLASS_COMPARE;
	common = vtrace_const(k->m, 0);
	other = vtrace_const(k->m, 0);
	t = vtrace_temp(k->m);
	for (uint8_t c = 0; c < first.w / 8; c++) {
		uint8_t a = first.number + c, b = x86_chunk(k, 1, c, 8);

		vtrace_make(k->m, VTRACE_AND, 8, t, a, b);
		vtrace_make(k->m, VTRACE_OR, 8, common, common, t);
		vtrace_make(k->m, VTRACE_ANDN, 8, t, b, a);
		vtrace_make(k->m, VTRACE_OR, 8, other, other, t);
	}
	x86_empty_flags(k->m, 8, common, other);
	return true;
}

static bool interleave(struct x86 *k, uint8_t w, bool high)
{
	struct x86_register to = x86_vector_register(k, 0);
	int first = k->nr_ops == 3;
	uint8_t a, b, t;

	if (to.kind != X86_VECTOR || to.w > 16 || x86_vector_register(k, first).kind != X86_VECTOR)
		return false;
	k->m->class = VTRACE_CLASS_VECTOR;
	a = x86_chunk(k, first, high, 8);
	b = x86_chunk(k, first + 1, high, 8);
	t = vtrace_temp(k->m);
	if (w == 8) {
		vtrace_make_imm(k->m, VTRACE_MOV, 8, t, b, 0);
		vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number, a, 0);
	} else {
		uint8_t low = vtrace_temp(k->m);

		vtrace_make(k->m, VTRACE_ZIP_HIGH, w, t, a, b);
		vtrace_make(k->m, VTRACE_ZIP_LOW, w, low, a, b);
		vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number, low, 0);
	}
	vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number + 1, t, 0);
	x86_zero_above(k, to.number, 2);
	return true;
}

static bool shuffle_words(struct x86 *k)
{
	struct x86_register to = x86_vector_register(k, 0);
	uint8_t from[2], t[2], x;

	if (to.kind != X86_VECTOR || to.w > 16 || k->nr_ops != 3 ||
	    k->op[2]->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	k->m->class = VTRACE_CLASS_VECTOR;
	for (uint8_t c = 0; c < 2; c++)
		from[c] = x86_chunk(k, 1, c, 8);
	for (uint8_t i = 0; i < 4; i++) {
		x = k->op[2]->imm.value.u >> 2 * i & 3;
		if (i % 2 == 0)
			t[i / 2] = vtrace_temp(k->m);
		if (i % 2 == 0) {
			vtrace_make_imm(k->m, VTRACE_EXT, 4, t[i / 2], from[x / 2], 0)->x =
				x % 2 * 4;
		} else {
			uint8_t w = vtrace_temp(k->m);

			vtrace_make_imm(k->m, VTRACE_EXT, 4, w, from[x / 2], 0)->x = x % 2 * 4;
			vtrace_make_imm(k->m, VTRACE_INS, 4, t[i / 2], w, 0)->x = 4;
		}
	}
	for (uint8_t c = 0; c < 2; c++)
		vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number + c, t[c], 0);
	x86_zero_above(k, to.number, 2);
	return true;
}

/* ---- floating point -------------------------------------------------------------------------- */

static uint8_t scalar(struct x86 *k, int i)
{
	struct x86_register from = x86_vector_register(k, i);

	return from.kind == X86_VECTOR ? from.number : x86_read(k, i);
}

static bool compare_numbers(struct x86 *k, uint8_t w)
{
	k->m->class = VTRACE_CLASS_FP;
	vtrace_make(k->m, VTRACE_FP_COMPARE, w, VTRACE_ZERO, scalar(k, 0), scalar(k, 1));
	return true;
}

static bool to_integer(struct x86 *k, uint8_t from)
{
	k->m->class = VTRACE_CLASS_FP;
	vtrace_make_imm(k->m, VTRACE_FP_TO_INT, x86_size(k, 0), x86_target(k, 0), scalar(k, 1), 0)
		->x = from;
	return true;
}

/* The low @w bytes are a number made of the last operand; the rest stays, or is that of another. */
static bool to_number(struct x86 *k, enum vtrace_op op, uint8_t w)
{
	struct x86_register to = x86_vector_register(k, 0), rest = x86_vector_register(k, 1);
	int last = k->nr_ops - 1;
	uint8_t t = vtrace_temp(k->m);
	struct vtrace_uop *u;

	if (to.kind != X86_VECTOR || k->nr_ops < 2 || k->nr_ops > 3)
		return false;
	k->m->class = VTRACE_CLASS_FP;
	u = vtrace_make_imm(k->m, op, op == VTRACE_INT_TO_FP ? x86_size(k, last) : 8, t,
			    scalar(k, last), 0);
	u->x = w;
	if (last == 2) {
		vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number, rest.number, 0);
		vtrace_make_imm(k->m, VTRACE_MOV, 8, to.number + 1, rest.number + 1, 0);
		x86_zero_above(k, to.number, 2);
	}
	vtrace_make_imm(k->m, VTRACE_INS, w, to.number, t, 0);
	return true;
}

static bool numbers(struct x86 *k)
{
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_COMISD:
	case ZYDIS_MNEMONIC_UCOMISD:
	case ZYDIS_MNEMONIC_VCOMISD:
	case ZYDIS_MNEMONIC_VUCOMISD:
		return compare_numbers(k, 8);
	case ZYDIS_MNEMONIC_COMISS:
	case ZYDIS_MNEMONIC_UCOMISS:
	case ZYDIS_MNEMONIC_VCOMISS:
	case ZYDIS_MNEMONIC_VUCOMISS:
		return compare_numbers(k, 4);
	case ZYDIS_MNEMONIC_CVTTSD2SI:
	case ZYDIS_MNEMONIC_VCVTTSD2SI:
		return to_integer(k, 8);
	case ZYDIS_MNEMONIC_CVTTSS2SI:
	case ZYDIS_MNEMONIC_VCVTTSS2SI:
		return to_integer(k, 4);
	case ZYDIS_MNEMONIC_CVTSI2SD:
	case ZYDIS_MNEMONIC_VCVTSI2SD:
		return to_number(k, VTRACE_INT_TO_FP, 8);
	case ZYDIS_MNEMONIC_CVTSI2SS:
	case ZYDIS_MNEMONIC_VCVTSI2SS:
		return to_number(k, VTRACE_INT_TO_FP, 4);
	case ZYDIS_MNEMONIC_CVTSS2SD:
	case ZYDIS_MNEMONIC_VCVTSS2SD:
		return to_number(k, VTRACE_FP_WIDEN, 8);
	default:
		return false;
	}
}

/* ---- which is which -------------------------------------------------------------------------- */

struct lane_op {
	uint16_t id;
	uint8_t op, w;
	bool swap;
};

#define LANES(name, op, w)                                                                         \
	{ ZYDIS_MNEMONIC_##name, op, w, false },                                                   \
	{                                                                                          \
		ZYDIS_MNEMONIC_V##name, op, w, false                                               \
	}

static const struct lane_op lane_ops[] = {
	LANES(PXOR, VTRACE_XOR, 8),
	LANES(XORPS, VTRACE_XOR, 8),
	LANES(XORPD, VTRACE_XOR, 8),
	{ ZYDIS_MNEMONIC_VPXORD, VTRACE_XOR, 8, false },
	{ ZYDIS_MNEMONIC_VPXORQ, VTRACE_XOR, 8, false },
	LANES(PAND, VTRACE_AND, 8),
	LANES(ANDPS, VTRACE_AND, 8),
	LANES(ANDPD, VTRACE_AND, 8),
	{ ZYDIS_MNEMONIC_VPANDD, VTRACE_AND, 8, false },
	{ ZYDIS_MNEMONIC_VPANDQ, VTRACE_AND, 8, false },
	LANES(POR, VTRACE_OR, 8),
	LANES(ORPS, VTRACE_OR, 8),
	LANES(ORPD, VTRACE_OR, 8),
	{ ZYDIS_MNEMONIC_VPORD, VTRACE_OR, 8, false },
	{ ZYDIS_MNEMONIC_VPORQ, VTRACE_OR, 8, false },
	{ ZYDIS_MNEMONIC_PANDN, VTRACE_ANDN, 8, true },
	{ ZYDIS_MNEMONIC_VPANDN, VTRACE_ANDN, 8, true },
	{ ZYDIS_MNEMONIC_VPANDND, VTRACE_ANDN, 8, true },
	{ ZYDIS_MNEMONIC_VPANDNQ, VTRACE_ANDN, 8, true },
	{ ZYDIS_MNEMONIC_ANDNPS, VTRACE_ANDN, 8, true },
	{ ZYDIS_MNEMONIC_VANDNPS, VTRACE_ANDN, 8, true },
	{ ZYDIS_MNEMONIC_ANDNPD, VTRACE_ANDN, 8, true },
	{ ZYDIS_MNEMONIC_VANDNPD, VTRACE_ANDN, 8, true },
	LANES(PCMPEQB, VTRACE_LANE_EQ, 1),
	LANES(PCMPEQW, VTRACE_LANE_EQ, 2),
	LANES(PCMPEQD, VTRACE_LANE_EQ, 4),
	LANES(PCMPEQQ, VTRACE_LANE_EQ, 8),
	LANES(PCMPGTB, VTRACE_LANE_GT, 1),
	LANES(PCMPGTW, VTRACE_LANE_GT, 2),
	LANES(PCMPGTD, VTRACE_LANE_GT, 4),
	LANES(PCMPGTQ, VTRACE_LANE_GT, 8),
	LANES(PADDB, VTRACE_LANE_ADD, 1),
	LANES(PADDW, VTRACE_LANE_ADD, 2),
	LANES(PADDD, VTRACE_LANE_ADD, 4),
	LANES(PADDQ, VTRACE_LANE_ADD, 8),
	LANES(PSUBB, VTRACE_LANE_SUB, 1),
	LANES(PSUBW, VTRACE_LANE_SUB, 2),
	LANES(PSUBD, VTRACE_LANE_SUB, 4),
	LANES(PSUBQ, VTRACE_LANE_SUB, 8),
	LANES(PMINUB, VTRACE_LANE_MINU, 1),
	LANES(PMINUW, VTRACE_LANE_MINU, 2),
	LANES(PMINUD, VTRACE_LANE_MINU, 4),
	LANES(PMAXUB, VTRACE_LANE_MAXU, 1),
	LANES(PMAXUW, VTRACE_LANE_MAXU, 2),
	LANES(PMAXUD, VTRACE_LANE_MAXU, 4),
};

static bool lane_by_lane(struct x86 *k)
{
	for (size_t i = 0; i < sizeof(lane_ops) / sizeof(*lane_ops); i++)
		if (lane_ops[i].id == k->head->mnemonic)
			return lanes(k, lane_ops[i].op, lane_ops[i].w, lane_ops[i].swap);
	return false;
}

static bool vector_moves(struct x86 *k)
{
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_MOVDQA:
	case ZYDIS_MNEMONIC_MOVDQU:
	case ZYDIS_MNEMONIC_MOVAPS:
	case ZYDIS_MNEMONIC_MOVAPD:
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVUPD:
	case ZYDIS_MNEMONIC_LDDQU:
	case ZYDIS_MNEMONIC_MOVNTDQ:
	case ZYDIS_MNEMONIC_MOVNTDQA:
	case ZYDIS_MNEMONIC_MOVNTPS:
	case ZYDIS_MNEMONIC_MOVNTPD:
	case ZYDIS_MNEMONIC_VMOVDQA:
	case ZYDIS_MNEMONIC_VMOVDQU:
	case ZYDIS_MNEMONIC_VMOVAPS:
	case ZYDIS_MNEMONIC_VMOVAPD:
	case ZYDIS_MNEMONIC_VMOVUPS:
	case ZYDIS_MNEMONIC_VMOVUPD:
	case ZYDIS_MNEMONIC_VLDDQU:
	case ZYDIS_MNEMONIC_VMOVNTDQ:
	case ZYDIS_MNEMONIC_VMOVNTDQA:
	case ZYDIS_MNEMONIC_VMOVNTPS:
	case ZYDIS_MNEMONIC_VMOVNTPD:
		return move_all(k);
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_VMOVD:
		return move_low(k, 4);
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_VMOVQ:
		return move_low(k, 8);
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_VMOVSS:
		return move_scalar(k, 4);
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_VMOVSD:
		return move_scalar(k, 8);
	case ZYDIS_MNEMONIC_MOVLPS:
	case ZYDIS_MNEMONIC_MOVLPD:
		return move_half(k, 0);
	case ZYDIS_MNEMONIC_MOVHPS:
	case ZYDIS_MNEMONIC_MOVHPD:
		return move_half(k, 1);
	case ZYDIS_MNEMONIC_VPBROADCASTB:
		return broadcast(k, 1);
	case ZYDIS_MNEMONIC_VPBROADCASTW:
		return broadcast(k, 2);
	case ZYDIS_MNEMONIC_VPBROADCASTD:
		return broadcast(k, 4);
	case ZYDIS_MNEMONIC_VPBROADCASTQ:
		return broadcast(k, 8);
	case ZYDIS_MNEMONIC_VZEROUPPER:
		vtrace_make_imm(k->m, VTRACE_ZERO_UPPER, 8, VTRACE_ZERO, VTRACE_ZERO, 0);
		return true;
	case ZYDIS_MNEMONIC_VZEROALL:
		for (uint8_t c = 0; c < 16 * 4; c++)
			vtrace_make_imm(k->m, VTRACE_CONST, 8, VTRACE_VECTOR + c, VTRACE_ZERO, 0);
		return true;
	default:
		return false;
	}
}

static bool vector_tests(struct x86 *k)
{
	switch (k->head->mnemonic) {
	case ZYDIS_MNEMONIC_PMOVMSKB:
	case ZYDIS_MNEMONIC_VPMOVMSKB:
		return signs(k, 1);
	case ZYDIS_MNEMONIC_MOVMSKPS:
	case ZYDIS_MNEMONIC_VMOVMSKPS:
		return signs(k, 4);
	case ZYDIS_MNEMONIC_MOVMSKPD:
	case ZYDIS_MNEMONIC_VMOVMSKPD:
		return signs(k, 8);
	case ZYDIS_MNEMONIC_PTEST:
	case ZYDIS_MNEMONIC_VPTEST:
		return test_bits(k);
	case ZYDIS_MNEMONIC_PUNPCKLBW:
	case ZYDIS_MNEMONIC_VPUNPCKLBW:
		return interleave(k, 1, false);
	case ZYDIS_MNEMONIC_PUNPCKLWD:
	case ZYDIS_MNEMONIC_VPUNPCKLWD:
		return interleave(k, 2, false);
	case ZYDIS_MNEMONIC_PUNPCKLDQ:
	case ZYDIS_MNEMONIC_VPUNPCKLDQ:
	case ZYDIS_MNEMONIC_UNPCKLPS:
	case ZYDIS_MNEMONIC_VUNPCKLPS:
		return interleave(k, 4, false);
	case ZYDIS_MNEMONIC_PUNPCKLQDQ:
	case ZYDIS_MNEMONIC_VPUNPCKLQDQ:
	case ZYDIS_MNEMONIC_UNPCKLPD:
	case ZYDIS_MNEMONIC_VUNPCKLPD:
		return interleave(k, 8, false);
	case ZYDIS_MNEMONIC_PUNPCKHBW:
	case ZYDIS_MNEMONIC_VPUNPCKHBW:
		return interleave(k, 1, true);
	case ZYDIS_MNEMONIC_PUNPCKHWD:
	case ZYDIS_MNEMONIC_VPUNPCKHWD:
		return interleave(k, 2, true);
	case ZYDIS_MNEMONIC_PUNPCKHDQ:
	case ZYDIS_MNEMONIC_VPUNPCKHDQ:
	case ZYDIS_MNEMONIC_UNPCKHPS:
	case ZYDIS_MNEMONIC_VUNPCKHPS:
		return interleave(k, 4, true);
	case ZYDIS_MNEMONIC_PUNPCKHQDQ:
	case ZYDIS_MNEMONIC_VPUNPCKHQDQ:
	case ZYDIS_MNEMONIC_UNPCKHPD:
	case ZYDIS_MNEMONIC_VUNPCKHPD:
		return interleave(k, 8, true);
	case ZYDIS_MNEMONIC_PSHUFD:
	case ZYDIS_MNEMONIC_VPSHUFD:
		return shuffle_words(k);
	default:
		return false;
	}
}

/* ---- comparisons of strings ------------------------------------------------------------------ */

/*
 * The comparisons of strings that a zero ends (SSE4.2), of bytes: whether each is one of a set, or
 * equals the one at its place. C libraries find words by them.
 */

/* Its fields, as the manuals name them. */
enum { EQUAL_ANY = 0, EQUAL_EACH = 2, NEGATIVE = 1, MASKED_NEGATIVE = 3, NR_BYTES = 16 };

struct string {
	uint8_t chunk[2];
	uint8_t ends; /* a bit for each byte that is 0 */
	uint8_t own;  /* and for each before the first of these */
};

static void add_signs(struct x86 *k, uint8_t sum, uint8_t lanes, uint8_t c)
{
	vtrace_make_imm(k->m, VTRACE_LANE_SIGNS, 1, sum, lanes, 0)->x = 8 * c;
}

static struct string read_string(struct x86 *k, int i, uint8_t t)
{
	struct string s = { .ends = vtrace_const(k->m, 0), .own = vtrace_temp(k->m) };

	for (uint8_t c = 0; c < 2; c++) {
		s.chunk[c] = x86_chunk(k, i, c, 8);
		vtrace_make(k->m, VTRACE_LANE_EQ, 1, t, s.chunk[c], VTRACE_ZERO);
		add_signs(k, s.ends, t, c);
	}
	vtrace_make_imm(k->m, VTRACE_SUB, 2, t, s.ends, 1);
	vtrace_make(k->m, VTRACE_ANDN, 2, s.own, t, s.ends);
	return s;
}

/* Bytes behind the set are none of it: as zeros, which the string has not before its end. */
static void equal_any(struct x86 *k, const struct string *set, const struct string *s, uint8_t sum,
		      uint8_t t)
{
	uint8_t of[2], found = vtrace_temp(k->m);

	for (uint8_t c = 0; c < 2; c++) {
		of[c] = vtrace_temp(k->m);
		vtrace_make_imm(k->m, VTRACE_LANE_MASK, 1, of[c], set->own, 0)->x = 8 * c;
		vtrace_make(k->m, VTRACE_AND, 8, of[c], of[c], set->chunk[c]);
	}
	for (uint8_t c = 0; c < 2; c++) {
		vtrace_make(k->m, VTRACE_LANE_ANY, 1, found, s->chunk[c], of[0]);
		vtrace_make(k->m, VTRACE_LANE_ANY, 1, t, s->chunk[c], of[1]);
		vtrace_make(k->m, VTRACE_OR, 8, found, found, t);
		add_signs(k, sum, found, c);
	}
	vtrace_make(k->m, VTRACE_AND, 2, sum, sum, s->own);
}

/* Behind the ends of both they are equal, behind one of them not. */
static void equal_each(struct x86 *k, const struct string *a, const struct string *b, uint8_t sum,
		       uint8_t t)
{
	for (uint8_t c = 0; c < 2; c++) {
		vtrace_make(k->m, VTRACE_LANE_EQ, 1, t, a->chunk[c], b->chunk[c]);
		add_signs(k, sum, t, c);
	}
	vtrace_make(k->m, VTRACE_AND, 2, sum, sum, a->own);
	vtrace_make(k->m, VTRACE_AND, 2, sum, sum, b->own);
	vtrace_make(k->m, VTRACE_OR, 2, t, a->own, b->own);
	vtrace_make_imm(k->m, VTRACE_XOR, 2, t, t, UINT64_MAX);
	vtrace_make(k->m, VTRACE_OR, 2, sum, sum, t);
}

/* Bit @shift of @flags: @v is not 0. */
static void add_flag(struct x86 *k, uint8_t flags, uint8_t v, uint8_t shift, uint8_t t)
{
	vtrace_make(k->m, VTRACE_SUB, 2, VTRACE_ZERO, VTRACE_ZERO, v)->set = VTRACE_SET_SUB;
	vtrace_make(k->m, VTRACE_SETCC, 1, t, VTRACE_ZERO, VTRACE_ZERO)->set = 2;
	vtrace_make_imm(k->m, VTRACE_SHL, 8, t, t, shift);
	vtrace_make(k->m, VTRACE_OR, 8, flags, flags, t);
}

static void put_flags(struct x86 *k, const struct string *a, const struct string *b, uint8_t sum,
		      uint8_t t)
{
	uint8_t flags = a->own;

	vtrace_make_imm(k->m, VTRACE_AND, 2, flags, sum, 1);
	vtrace_make_imm(k->m, VTRACE_SHL, 8, flags, flags, 4); /* O: the first */
	add_flag(k, flags, sum, 0, t);			       /* C: any */
	add_flag(k, flags, b->ends, 2, t);		       /* Z: there is an end in b */
	add_flag(k, flags, a->ends, 3, t);		       /* S: in a */
	vtrace_make_imm(k->m, VTRACE_PUT_FLAGS, 1, VTRACE_ZERO, flags, 0)->x = VTRACE_FLAGS;
}

/* Where the first is, 16: nowhere. */
static void compare_strings(struct x86 *k, uint8_t how, uint8_t polarity)
{
	uint8_t t = vtrace_temp(k->m), sum = vtrace_const(k->m, 0);
	struct string a = read_string(k, 0, t), b = read_string(k, 1, t);

	k->m->class = VTRACE_CLASS_COMPARE;
	if (how == EQUAL_ANY)
		equal_any(k, &a, &b, sum, t);
	else
		equal_each(k, &a, &b, sum, t);
	if (polarity == NEGATIVE)
		vtrace_make_imm(k->m, VTRACE_XOR, 2, sum, sum, UINT64_MAX);
	else if (polarity == MASKED_NEGATIVE)
		vtrace_make(k->m, VTRACE_XOR, 2, sum, sum, b.own);
	vtrace_make_imm(k->m, VTRACE_OR, 4, t, sum, 1 << NR_BYTES);
	vtrace_make_imm(k->m, VTRACE_CTZ, 4, RCX, t, 0);
	put_flags(k, &a, &b, sum, t);
}

static bool string_compare(struct x86 *k)
{
	uint8_t how, polarity;
	uint64_t imm;

	if ((k->head->mnemonic != ZYDIS_MNEMONIC_PCMPISTRI &&
	     k->head->mnemonic != ZYDIS_MNEMONIC_VPCMPISTRI) ||
	    k->nr_ops != 3 || k->op[2]->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	imm = k->op[2]->imm.value.u;
	how = imm >> 2 & 3;
	polarity = imm >> 4 & 3;
	/* No library uses the forms for words, ranges and parts, or the last index. */
	if (imm & 0x41 || (how != EQUAL_ANY && how != EQUAL_EACH))
		return false;
	compare_strings(k, how, polarity);
	return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

bool x86_vector(struct x86 *k)
{
	uint16_t before = k->m->code->block.nr_uops;
	uint8_t temps = k->m->nr_temps;

	if (string_compare(k))
		return true;
	if (!is_masked(k) &&
	    (vector_moves(k) || vector_tests(k) || lane_by_lane(k) || x86_shuffle(k) || numbers(k)))
		return true;
	/* It may have begun before it found out. */
	k->m->code->block.nr_uops = before;
	k->m->nr_temps = temps;
	k->m->class = VTRACE_CLASS_OTHER;
	return false;
}
