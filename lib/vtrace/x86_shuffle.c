/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes and halves of vectors that change their places. */
#include "x86_internal.h"

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

bool x86_shuffle(struct x86 *k)
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
