/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A routine whose runtime says how the frame is where it is entered: a trace of LuaJIT, which is
 * entered and left by jumps and works on the frame of the interpreter. Nothing in such code proves
 * where its caller is; what its instructions do with the stack is followed all the same.
 */
#include <errno.h>

#include "height_internal.h"

enum { FAR = 1 << 24 };

static bool place_good(int32_t off, int32_t lowest)
{
	return off == HEIGHT_IN_REGISTER || off == HEIGHT_LOST ||
	       (off % 8 == 0 && off <= -16 && off >= lowest);
}

/* Below the stack pointer nothing is saved, and a frame pointer has one value. */
static bool entry_good(const struct height_entry *e)
{
	int32_t lowest = -FAR;

	if (e->cfa < (e->by_fp ? -FAR : 8) || e->cfa > FAR)
		return false;
	if (!e->by_fp)
		lowest = -e->cfa;
	return place_good(e->fp, lowest) && place_good(e->link, lowest) &&
	       !(e->by_fp && e->fp == HEIGHT_IN_REGISTER);
}

static struct height_value at_cfa(int32_t off)
{
	return (struct height_value){ .off = off, .kind = HEIGHT_STACK };
}

/* The caller's register: in memory, still there (then of @kind), or nowhere. */
static void tell(struct height_value *reg, struct height_value *saved, int32_t off,
		 enum height_kind kind)
{
	if (off == HEIGHT_IN_REGISTER)
		reg->kind = (uint16_t)kind;
	else if (off != HEIGHT_LOST)
		*saved = at_cfa(off);
}

static void tell_state(const struct height_entry *e, struct height_state *s)
{
	*s = (struct height_state){ 0 };
	if (!entry_good(e))
		return;
	tell(&s->reg[HEIGHT_FP], &s->saved[HEIGHT_SAVED_FP], e->fp, HEIGHT_OLD_FP);
	tell(&s->reg[HEIGHT_LINK], &s->saved[HEIGHT_SAVED_LINK], e->link, HEIGHT_OLD_LINK);
	s->reg[e->by_fp ? HEIGHT_FP : HEIGHT_SP] = at_cfa(-e->cfa);
}

int height_told(struct height *h)
{
	struct height_state s;
	int r = 0;

	height_flow_begin(h);
	for (size_t i = 0; r >= 0 && i < h->nr_told; i++) {
		tell_state(&h->told[i], &s);
		r = height_flow_enter(h, h->told[i].off, &s);
	}
	if (r >= 0)
		r = height_flow_end(h);
	if (r == -DCPI_ELIMIT)
		h->refused = HEIGHT_TOO_LARGE;
	else if (r >= 0)
		height_prove_told(h);
	if (r < 0 && r != -DCPI_ELIMIT)
		return r;
	height_keep(h);
	return 0;
}
