/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Assembly of which a table says one frame throughout, as interpreters' is: LuaJIT's handler of
 * exits pushes all registers, and its .eh_frame knows nothing of that. Where the code's own
 * instructions put other things on the stack, the rule does not hold.
 */
#include <errno.h>
#include <string.h>

#include "height_internal.h"

/* Far enough below the CFA for any block to rise. */
enum { BASE = -(1 << 20) };

/* The stack pointer after the instruction, from what it was at the start of its block; *@known: it
 * still is that and a number. */
static int32_t follow(struct height *h, uint64_t off, int32_t depth, struct height_step *step,
		      bool *known)
{
	struct height_state s = { 0 };

	s.reg[HEIGHT_SP] = (struct height_value){ .off = BASE + depth, .kind = HEIGHT_STACK };
	height_step(h, off, &s, step);
	*known = s.reg[HEIGHT_SP].kind == HEIGHT_STACK && !(step->does & HEIGHT_RESETS) &&
		 s.reg[HEIGHT_SP].off > 2 * BASE;
	return s.reg[HEIGHT_SP].off - BASE;
}

static bool ends_block(const struct height_step *step)
{
	return step->flow == HEIGHT_JUMP || step->flow == HEIGHT_ELSEWHERE ||
	       step->flow == HEIGHT_RETURN || step->flow == HEIGHT_STOP || step->flow == HEIGHT_BAD;
}

/*
 * A block is entered with the whole frame, and comes back to that; or by a call, and makes it. A
 * stack pointer from elsewhere is that of the frame.
 */
int height_steady(struct height *h, const uint8_t *code, size_t len, uint64_t vaddr,
		  const struct unwind_rule *rule,
		  int (*row)(void *ctx, uint64_t addr, const struct unwind_rule *rule), void *ctx)
{
	static const struct unwind_rule none = { .how = UNWIND_NONE };
	const struct unwind_rule *last = NULL, *is;
	struct height_step step;
	int32_t depth = 0;
	bool known;
	int r = 0;

	h->code = code;
	h->len = len;
	h->vaddr = vaddr;
	if (base_grow(&h->step, &h->cap_step, len, sizeof(*h->step)) < 0)
		return -ENOMEM;
	memset(h->step, 0, len * sizeof(*h->step));
	for (uint64_t off = 0; r >= 0 && off < len; off += step.len) {
		int32_t before = depth;

		depth = follow(h, off, depth, &step, &known);
		if (!known || ends_block(&step))
			depth = 0;
		/* A return finds nothing but its address. */
		is = (before == 0 || before == 8 - rule->off) && step.flow != HEIGHT_RETURN ? rule
											    : &none;
		if (is != last)
			r = row(ctx, vaddr + off, is);
		last = is;
	}
	return r < 0 ? r : 0;
}
