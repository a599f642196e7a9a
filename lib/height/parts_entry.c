/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entry of a method in a routine of many parts, up to where its frame is there: "pop T; …;
 * push T; push rbp; mov rbp, rsp; push S". The frame is proven (parts.c): S is the caller's stack
 * pointer, and what is pushed before rbp is the return address. So S and T are that in all of the
 * code that leads there and leaves both as they are; and before "pop T" the return address is at
 * rsp.
 */
#include <string.h>

#include "height_internal.h"
#include "height_parts.h"

/* One that is looked at. */
struct entry {
	struct height *h;
	size_t first, end; /* instructions of its part */
	size_t frames;	   /* "mov rbp, rsp" */
	int t, s;	   /* T and S */
};

/* Numbers of DWARF, by those that instructions have. */
static uint8_t dwarf(int reg)
{
	static const uint8_t numbers[] = { 0, 2, 1, 3, 7, 6, 4, 5 };

	return reg < 8 ? numbers[reg] : (uint8_t)reg;
}

static bool is_push(const struct height *h, size_t n, int *reg)
{
	struct insn_x86 in;

	if (!height_parts_decode(h, &h->insns[n], &in) || in.head.mnemonic != ZYDIS_MNEMONIC_PUSH)
		return false;
	*reg = height_parts_register(&in.op[0]);
	return *reg >= 0;
}

static bool find_registers(struct entry *e)
{
	int rbp;

	return e->frames >= e->first + 2 && e->frames + 1 < e->end &&
	       is_push(e->h, e->frames - 2, &e->t) && is_push(e->h, e->frames - 1, &rbp) &&
	       rbp == HEIGHT_PARTS_RBP && is_push(e->h, e->frames + 1, &e->s) && e->t != e->s &&
	       e->t != rbp && e->s != rbp && e->t != HEIGHT_PARTS_RSP && e->s != HEIGHT_PARTS_RSP;
}

static bool writes(const struct insn_x86 *in, int reg)
{
	for (uint8_t n = 0; n < in->head.operand_count; n++) {
		const ZydisDecodedOperand *op = &in->op[n];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    insn_x86_register(op->reg.value).class == INSN_X86_GENERAL &&
		    insn_x86_register(op->reg.value).number == reg)
			return true;
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    insn_x86_register(op->reg.value).class == INSN_X86_HIGH &&
		    insn_x86_register(op->reg.value).number == reg)
			return true;
	}
	return false;
}

/* The state behind the instruction, by @state before it; 0: it is not known. */
static uint8_t behind(const struct entry *e, const struct height_insn *i, uint8_t state)
{
	struct insn_x86 in;

	if (!height_parts_decode(e->h, i, &in) || i->flow == HEIGHT_CALL || writes(&in, e->s))
		return 0;
	if (state == HEIGHT_PARTS_POPPED)
		return writes(&in, e->t) ? 0 : state;
	if (in.head.mnemonic == ZYDIS_MNEMONIC_POP && height_parts_register(&in.op[0]) == e->t)
		return HEIGHT_PARTS_POPPED;
	return writes(&in, HEIGHT_PARTS_RSP) ? 0 : state;
}

/* False: another way leads here in another state. */
static bool reach(struct entry *e, struct height_insn *to, uint8_t state)
{
	const uint8_t both = HEIGHT_PARTS_ENTERED | HEIGHT_PARTS_POPPED;
	size_t n = to ? (size_t)(to - e->h->insns) : 0;

	/* Elsewhere nothing is said of it. */
	if (!to || n < e->first || n >= e->end || (to->found & both) == state)
		return true;
	if (to->found & both)
		return false;
	to->found |= state;
	e->h->queue[e->h->nr_queue++] = (uint32_t)n;
	return true;
}

static bool follow(struct entry *e)
{
	struct height *h = e->h;

	h->nr_queue = 0;
	if (!reach(e, &h->insns[e->first], HEIGHT_PARTS_ENTERED))
		return false;
	while (h->nr_queue) {
		size_t n = h->queue[--h->nr_queue];
		struct height_insn *i = &h->insns[n];
		uint8_t state =
			behind(e, i, i->found & (HEIGHT_PARTS_ENTERED | HEIGHT_PARTS_POPPED));

		if (n == e->frames)
			continue;
		if (!state && (height_falls_through(i) || height_leads_to_target(i)))
			return false;
		if (height_falls_through(i) &&
		    !reach(e, height_insn_at(h, (uint64_t)i->off + i->len), state))
			return false;
		if (height_leads_to_target(i) && !reach(e, height_insn_at(h, i->target), state))
			return false;
	}
	return h->insns[e->frames].found & HEIGHT_PARTS_POPPED;
}

/* Only the entry itself is jumped to from elsewhere. */
static bool is_closed(const struct entry *e)
{
	const uint8_t both = HEIGHT_PARTS_ENTERED | HEIGHT_PARTS_POPPED;
	const struct height *h = e->h;

	for (size_t n = 0; n < h->nr; n++) {
		const struct height_insn *i = &h->insns[n], *to = height_insn_at(h, i->target);
		size_t at = to ? (size_t)(to - h->insns) : 0;

		if (i->target == HEIGHT_NO_TARGET || at <= e->first || at >= e->end ||
		    !(to->found & both))
			continue;
		if (n < e->first || n >= e->end || !(i->found & both))
			return false;
	}
	return true;
}

static void keep(struct entry *e)
{
	struct height *h = e->h;
	struct unwind_rule rule = { .how = UNWIND_CFA,
				    .base = dwarf(e->s),
				    .link_at = UNWIND_AT_LOST };

	for (size_t n = e->first; n < e->end; n++) {
		rule.returns = h->insns[n].found & HEIGHT_PARTS_ENTERED
				       ? UNWIND_RETURNS_SP
				       : (uint8_t)(dwarf(e->t) + 1);
		if (h->insns[n].found & (HEIGHT_PARTS_ENTERED | HEIGHT_PARTS_POPPED))
			height_keep_rule(h, &h->insns[n], &rule);
	}
	rule.fp_at = UNWIND_AT_FP;
	rule.returns = UNWIND_RETURNS_FP;
	height_keep_rule(h, &h->insns[e->frames + 1], &rule);
}

bool height_parts_entry(struct height *h, size_t first, size_t end)
{
	struct entry e = { .h = h, .first = first, .end = end, .frames = end };
	size_t nr = 0;

	for (size_t n = first; n < end; n++) {
		if (!(h->insns[n].does & HEIGHT_FRAMES))
			continue;
		e.frames = n;
		nr++;
	}
	if (nr == 1 && find_registers(&e) && follow(&e) && is_closed(&e))
		keep(&e);
	return nr > 0;
}
