/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The comparisons of strings that a zero ends (SSE4.2), of bytes: whether each is one of a set, or
 * equals the one at its place. C libraries find words by them.
 */
#include "x86_internal.h"

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
static void compare(struct x86 *k, uint8_t how, uint8_t polarity)
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

bool x86_string_compare(struct x86 *k)
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
	compare(k, how, polarity);
	return true;
}
