/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of the states that were found along the paths are certain. A routine is proven by what it
 * does: it returns from where it was entered, with the caller's rbp. What stands behind a call
 * is proven by a return that follows: had the call changed the stack, that return would miss.
 */
#include <string.h>

#include "height_internal.h"

enum {
	MAX_SWEEPS = 64,   /* over all instructions; what they do not find stays without proof */
	MAX_PROLOGUE = 16, /* instructions before it */
};

static const struct height_state *state_of(const struct height *h, const struct height_insn *i)
{
	return height_states_at(&h->states, i->state);
}

static bool at_return(const struct height_state *s)
{
	return s->reg[HEIGHT_SP].kind == HEIGHT_STACK && s->reg[HEIGHT_SP].off == -8;
}

static bool leads_out(const struct height_insn *i)
{
	return i->flow == HEIGHT_ELSEWHERE ||
	       (i->target == HEIGHT_NO_TARGET &&
		(i->flow == HEIGHT_BRANCH || i->flow == HEIGHT_JUMP));
}

/* ---- the routine ----------------------------------------------------------------------------- */

/* "push rbp; mov rbp, rsp" on the way straight from the entry. */
static bool has_prologue(const struct height *h)
{
	const struct height_insn *i = height_insn_at(h, 0);
	bool pushed = false;

	for (size_t n = 0; i && n < MAX_PROLOGUE; n++) {
		if (i->does & HEIGHT_FRAMES && (pushed || i->does & HEIGHT_PUSHES_FP))
			return true;
		pushed = i->does & HEIGHT_PUSHES_FP;
		if (i->flow != HEIGHT_NEXT && i->flow != HEIGHT_BRANCH)
			return false;
		i = height_insn_at(h, (uint64_t)i->off + i->len);
	}
	return false;
}

/* An objection to an instruction of a routine that is called; HEIGHT_PROVEN: nothing. */
static enum height_reason objection(const struct height *h, const struct height_insn *i)
{
	const struct height_state *s = state_of(h, i);

	if (i->does & HEIGHT_RISES)
		return HEIGHT_TAKES_CALLERS;
	if (i->flow != HEIGHT_RETURN || s->reg[HEIGHT_SP].kind != HEIGHT_STACK)
		return HEIGHT_PROVEN;
	if (!at_return(s))
		return HEIGHT_OTHER_RETURN;
	return s->reg[HEIGHT_FP].kind == HEIGHT_OLD_FP ? HEIGHT_PROVEN : HEIGHT_FP_CHANGED;
}

static bool overlaps(const struct height *h, size_t n)
{
	const struct height_insn *i = &h->insns[n];

	return n + 1 < h->nr && i[1].off < i->off + i->len && i[1].state != i->state;
}

/* An objection to the routine; HEIGHT_PROVEN: there is none. */
static enum height_reason judge(const struct height *h, bool *returns)
{
	*returns = false;
	for (size_t n = 0; n < h->nr; n++) {
		enum height_reason r = objection(h, &h->insns[n]);

		if (r == HEIGHT_PROVEN && overlaps(h, n))
			r = HEIGHT_OVERLAP;
		if (r != HEIGHT_PROVEN)
			return r;
		*returns |=
			h->insns[n].flow == HEIGHT_RETURN && at_return(state_of(h, &h->insns[n]));
	}
	return HEIGHT_PROVEN;
}

/* ---- backward from the ends ------------------------------------------------------------------ */

/*
 * What is certain where the routine is left in the state of its entry. A return would miss if that
 * were wrong. A jump may also lead to another part of the routine, where any state would do; but a
 * state that is computed from the entry's comes back to it only if all calls did as assumed.
 * (Routines of several parts are a compiler's, which describes them: those that are known to be
 * called have one.)
 */
static uint8_t end_found(const struct height *h, const struct height_insn *i)
{
	const struct height_state *s = state_of(h, i);

	if (!at_return(s) || s->reg[HEIGHT_FP].kind != HEIGHT_OLD_FP)
		return 0;
	if (i->flow == HEIGHT_RETURN)
		return HEIGHT_ANCHORED | HEIGHT_VERIFIED;
	if (h->calls != HEIGHT_CALLS_ALL || !(i->does & HEIGHT_POPS_RETURN || leads_out(i)))
		return 0;
	return h->called ? HEIGHT_ANCHORED | HEIGHT_VERIFIED : HEIGHT_VERIFIED;
}

static bool sp_assumed(const struct height *h, const struct height_insn *i)
{
	const struct height_value *sp = &state_of(h, i)->reg[HEIGHT_SP];

	return sp->kind == HEIGHT_STACK && sp->assumed;
}

/* rbp is what it was, or rsp is computed from it. */
static uint8_t inherited_fp(const struct height *h, const struct height_insn *i,
			    const struct height_insn *next)
{
	if (i->does & HEIGHT_SP_FROM_FP)
		return next->found & HEIGHT_VERIFIED && sp_assumed(h, next) ? HEIGHT_VERIFIED_FP
									    : 0;
	if ((i->does & HEIGHT_WRITES_FP && !(i->does & HEIGHT_RESTORES_FP)) ||
	    state_of(h, next)->reg[HEIGHT_FP].kind != HEIGHT_STACK)
		return 0;
	return next->found & HEIGHT_VERIFIED_FP;
}

/* Findings of @next that the instruction before it has too. */
static uint8_t inherited(const struct height *h, const struct height_insn *i,
			 const struct height_insn *next)
{
	uint8_t found;

	if (!next)
		return 0;
	found = next->found & HEIGHT_ANCHORED;
	if (next->found & HEIGHT_VERIFIED && !(i->does & HEIGHT_RESETS) && sp_assumed(h, next) &&
	    state_of(h, i)->reg[HEIGHT_SP].kind == HEIGHT_STACK)
		found |= HEIGHT_VERIFIED;
	if (state_of(h, i)->reg[HEIGHT_FP].kind == HEIGHT_STACK)
		found |= inherited_fp(h, i, next);
	return found;
}

/* The same, as far as it holds across a call. */
static uint8_t inherited_across(const struct height *h, const struct height_insn *i,
				const struct height_insn *next)
{
	uint8_t found = inherited(h, i, next);

	if (i->flow != HEIGHT_CALL || h->calls == HEIGHT_CALLS_ALL)
		return found;
	return h->calls == HEIGHT_CALLS_FP ? found & HEIGHT_VERIFIED_FP : 0;
}

static bool sweep(struct height *h)
{
	bool changed = false;

	for (size_t n = h->nr; n-- > 0;) {
		struct height_insn *i = &h->insns[n];
		uint8_t found = i->found;

		if (height_falls_through(i))
			found |= inherited_across(h, i,
						  height_insn_at(h, (uint64_t)i->off + i->len));
		if (height_leads_to_target(i))
			found |= inherited(h, i, height_insn_at(h, i->target));
		changed |= found != i->found;
		i->found = found;
	}
	return changed;
}

static void find_anchored(struct height *h)
{
	for (size_t n = 0; n < h->nr; n++)
		h->insns[n].found |= end_found(h, &h->insns[n]);
	for (size_t n = 0; n < MAX_SWEEPS && sweep(h); n++)
		;
}

/* ---- forward from where other code may come in ----------------------------------------------- */

/* @why holds of the instruction, unless an end that follows proves its state. */
static void doubt(struct height *h, struct height_insn *i, uint8_t why)
{
	if (!i || i->found & (HEIGHT_ANCHORED | HEIGHT_FROM_SIDE | HEIGHT_CALLED_BEFORE))
		return;
	i->found |= why;
	h->queue[h->nr_queue++] = i->off;
}

static void spread_doubts(struct height *h)
{
	while (h->nr_queue) {
		struct height_insn *i = height_insn_at(h, h->queue[--h->nr_queue]);
		uint8_t why = i->found & (HEIGHT_FROM_SIDE | HEIGHT_CALLED_BEFORE);

		if (height_falls_through(i))
			doubt(h, height_insn_at(h, (uint64_t)i->off + i->len), why);
		if (height_leads_to_target(i))
			doubt(h, height_insn_at(h, i->target), why);
	}
}

/* Decode code that was not reached, from @off up to @end, and doubt all that it leads to. */
static void doubt_targets(struct height *h, uint64_t off, uint64_t end)
{
	while (off < end) {
		struct height_state any = { 0 };
		struct height_step step;
		bool onward;

		height_step(h, off, &any, &step);
		onward = step.flow == HEIGHT_NEXT || step.flow == HEIGHT_BRANCH ||
			 step.flow == HEIGHT_CALL;
		if (step.direct && step.flow != HEIGHT_CALL)
			doubt(h, height_insn_at(h, step.target - h->vaddr), HEIGHT_FROM_SIDE);
		off += step.len;
		if (off >= end && onward)
			doubt(h, height_insn_at(h, off), HEIGHT_FROM_SIDE);
	}
}

static void doubt_sides(struct height *h)
{
	uint64_t end = 0;

	for (size_t n = 0; n < h->nr; n++) {
		const struct height_insn *i = &h->insns[n];

		if (i->off > end)
			doubt_targets(h, end, i->off);
		if (i->off + i->len > end)
			end = (uint64_t)i->off + i->len;
	}
	if (end < h->len)
		doubt_targets(h, end, h->len);
}

/* A call may never come back, and what stands behind it may be of another path. */
static void doubt_behind_calls(struct height *h)
{
	for (size_t n = 0; n < h->nr; n++) {
		const struct height_insn *i = &h->insns[n];

		if (i->flow == HEIGHT_CALL)
			doubt(h, height_insn_at(h, (uint64_t)i->off + i->len),
			      HEIGHT_CALLED_BEFORE);
	}
}

/* False: its ends refuse the whole routine. */
static bool begin(struct height *h, bool *returns)
{
	h->calls = HEIGHT_CALLS_ALL;
	h->proof = HEIGHT_BY_NOTHING;
	h->refused = (uint8_t)judge(h, returns);
	return h->refused == HEIGHT_PROVEN;
}

static void prove_entry(struct height *h)
{
	bool returns;

	if (!begin(h, &returns))
		return;
	h->proof = returns	     ? HEIGHT_BY_RETURN
		   : has_prologue(h) ? HEIGHT_BY_PROLOGUE
		   : h->called	     ? HEIGHT_BY_CALLER
				     : HEIGHT_BY_NOTHING;
	if (h->proof == HEIGHT_BY_NOTHING) {
		h->refused = HEIGHT_NO_PROOF;
		return;
	}
	find_anchored(h);
	h->nr_queue = 0;
	doubt_sides(h);
	doubt_behind_calls(h);
	spread_doubts(h);
}

/* "proof" and "refused" of a routine whose entries were told. */
static void prove_told(struct height *h)
{
	bool returns;

	if (!begin(h, &returns))
		return;
	h->proof = HEIGHT_BY_RUNTIME;
	find_anchored(h);
	/* An entry that was told holds for all ways there. */
	for (size_t n = 0; n < h->nr_told; n++)
		if (height_insn_at(h, h->told[n].off))
			height_insn_at(h, h->told[n].off)->found |= HEIGHT_ANCHORED;
	h->nr_queue = 0;
	doubt_sides(h);
	spread_doubts(h);
}

void height_prove(struct height *h)
{
	if (h->nr_told)
		prove_told(h);
	else
		prove_entry(h);
}

bool height_prove_trial(struct height *h, enum height_calls calls)
{
	bool returns;

	h->calls = (uint8_t)calls;
	if (judge(h, &returns) != HEIGHT_PROVEN || !returns)
		return false;
	find_anchored(h);
	return true;
}
