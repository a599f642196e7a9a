/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A routine whose frame another one makes: V8's baseline code calls a builtin first, which puts the
 * frame there and comes back, and is left by a jump to one that takes it away. Its code shows that
 * rbp is a frame pointer: it reads and writes below it, and nowhere changes it.
 */
#include <errno.h>
#include <string.h>

#include "height_internal.h"
#include "insn_x86.h"

enum { MAX_BEFORE = 16, LEAST_USES = 2 };

static bool is_as(const struct height_value *v, const struct height_value *as)
{
	return v->kind == as->kind && v->off == as->off;
}

/* Behind the call that makes the frame: nothing before it changes the stack or rbp. 0: there is
 * none. */
static uint64_t behind_maker(struct height *h)
{
	struct height_state entry, s;
	struct height_step step;
	uint64_t off = 0;

	height_state_entry(&entry);
	s = entry;
	for (size_t n = 0; n < MAX_BEFORE && off < h->len; n++) {
		height_step(h, off, &s, &step);
		off += step.len;
		if (step.flow == HEIGHT_CALL)
			return off < h->len ? off : 0;
		if (step.flow != HEIGHT_NEXT || step.does ||
		    !is_as(&s.reg[HEIGHT_SP], &entry.reg[HEIGHT_SP]) ||
		    !is_as(&s.reg[HEIGHT_FP], &entry.reg[HEIGHT_FP]))
			break;
	}
	return 0;
}

/* A word of its frame: at a multiple of 8 below rbp. */
static bool uses_frame(const struct height *h, const struct height_insn *i)
{
	struct insn_x86 in;

	if (!insn_x86_decode(true, h->code + i->off, h->len - i->off, &in))
		return false;
	for (uint8_t n = 0; n < in.head.operand_count_visible; n++) {
		const ZydisDecodedOperand *op = &in.op[n];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == ZYDIS_REGISTER_RBP &&
		    op->mem.index == ZYDIS_REGISTER_NONE && op->mem.disp.value < 0 &&
		    op->mem.disp.value % 8 == 0)
			return true;
	}
	return false;
}

/* Do all paths leave rbp as it is, and use it? */
static bool is_framed(const struct height *h)
{
	const uint16_t never = HEIGHT_WRITES_FP | HEIGHT_FRAMES | HEIGHT_SP_FROM_FP;
	size_t uses = 0;

	for (size_t n = 0; n < h->nr; n++) {
		const struct height_insn *i = &h->insns[n];

		if (i->does & never || i->flow == HEIGHT_RETURN || i->flow == HEIGHT_BAD)
			return false;
		uses += uses < LEAST_USES && uses_frame(h, i);
	}
	return uses >= LEAST_USES;
}

int height_use(struct height *h)
{
	struct height_state frame = { 0 };
	uint64_t off;
	int r;

	if (h->refused != HEIGHT_NO_PROOF)
		return 0;
	off = behind_maker(h);
	if (!off)
		return 0;
	frame.reg[HEIGHT_FP] = (struct height_value){ .off = -16, .kind = HEIGHT_STACK };
	frame.saved[HEIGHT_SAVED_FP] = frame.reg[HEIGHT_FP];
	h->steps = (uint64_t)h->len * 2;
	r = height_flow(h, (uint32_t)off, &frame);
	if (r < 0 || !is_framed(h))
		return r == -ENOMEM ? r : 0;
	h->proof = HEIGHT_BY_USE;
	height_keep_use(h);
	return 0;
}
