/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that no path from the entry reaches: handlers of exceptions, targets of tables, loops that
 * are entered in the middle. A state is tried there, and it is right if the paths from there end in
 * a return that it leads to: with another state that return would miss the return address. A call
 * on such a path may never come back, so that it ends the proof, but for a frame pointer that the
 * routine has elsewhere.
 */
#include <errno.h>
#include <string.h>

#include "height_internal.h"

enum { MAX_TRIALS = 64, MAX_STATES = 3, STEPS_PER_BYTE = 2 };

/* Where trials begin, and what is tried there. */
struct trials {
	struct height_state state[MAX_STATES];
	enum height_calls calls[MAX_STATES];
	size_t nr_states, nr;
};

/* ---- what is tried --------------------------------------------------------------------------- */

/* All of it has to be proven. */
static void assume(struct height_state *s)
{
	for (size_t i = 0; i < HEIGHT_NR_REGS; i++)
		s->reg[i].assumed = s->reg[i].kind != HEIGHT_ANYTHING;
	for (size_t i = 0; i < HEIGHT_NR_SAVED; i++)
		s->saved[i].assumed = s->saved[i].kind != HEIGHT_ANYTHING;
}

static void add_state(struct trials *t, const struct height_state *s, enum height_calls calls)
{
	t->calls[t->nr_states] = calls;
	t->state[t->nr_states] = *s;
	assume(&t->state[t->nr_states++]);
}

static uint64_t weight(const struct height *h, uint32_t number, uint32_t count)
{
	const struct height_state *s = height_states_at(&h->states, (uint16_t)number);

	return (uint64_t)(s->reg[HEIGHT_FP].kind == HEIGHT_STACK) << 32 | count;
}

/* Most instructions of the routine have it; or most of those with a frame pointer, if any have. */
static const struct height_state *commonest(const struct height *h)
{
	uint32_t count[HEIGHT_MAX_STATES] = { 0 };
	uint16_t best = 0;

	for (size_t n = 0; n < h->nr; n++)
		count[h->insns[n].state]++;
	for (uint32_t n = 1; n <= h->states.nr; n++)
		if (count[n] && (!best || weight(h, n, count[n]) > weight(h, best, count[best])))
			best = (uint16_t)n;
	return best ? height_states_at(&h->states, best) : NULL;
}

/* With a frame pointer, only that is the same everywhere. A register that is saved is restored from
 * memory. */
static void add_body(const struct height *h, struct trials *t)
{
	const struct height_state *found = commonest(h);
	struct height_state s;

	if (!found)
		return;
	s = *found;
	if (s.reg[HEIGHT_FP].kind == HEIGHT_STACK)
		memset(&s.reg[HEIGHT_SP], 0, sizeof(s.reg[HEIGHT_SP]));
	if (s.saved[HEIGHT_SAVED_FP].kind == HEIGHT_STACK && s.reg[HEIGHT_FP].kind == HEIGHT_OLD_FP)
		memset(&s.reg[HEIGHT_FP], 0, sizeof(s.reg[HEIGHT_FP]));
	memset(&s.reg[HEIGHT_LINK], 0, sizeof(s.reg[HEIGHT_LINK]));
	/* rbx is not checked by returns. */
	memset(&s.saved[HEIGHT_SAVED_LINK], 0, sizeof(s.saved[HEIGHT_SAVED_LINK]));
	height_state_drop_copy(&s);
	add_state(t, &s,
		  s.reg[HEIGHT_FP].kind == HEIGHT_STACK ? HEIGHT_CALLS_FP : HEIGHT_CALLS_NONE);
}

static void add_others(struct trials *t)
{
	struct height_state frame = { 0 }, entry;

	frame.reg[HEIGHT_FP] = (struct height_value){ .off = -16, .kind = HEIGHT_STACK };
	frame.saved[HEIGHT_SAVED_FP] = frame.reg[HEIGHT_FP];
	height_state_entry(&entry);
	memset(&entry.reg[HEIGHT_LINK], 0, sizeof(entry.reg[HEIGHT_LINK]));
	add_state(t, &frame, HEIGHT_CALLS_NONE);
	add_state(t, &entry, HEIGHT_CALLS_NONE);
}

/* ---- where ----------------------------------------------------------------------------------- */

static struct height_step step_at(struct height *h, uint64_t off)
{
	struct height_state any = { 0 };
	struct height_step step;

	height_step(h, off, &any, &step);
	return step;
}

static bool ends_block(const struct height_step *step)
{
	return step->flow == HEIGHT_JUMP || step->flow == HEIGHT_ELSEWHERE ||
	       step->flow == HEIGHT_RETURN || step->flow == HEIGHT_STOP || step->flow == HEIGHT_BAD;
}

/* The next code without a rule, from @off on, that paths may begin at; the length: none. What fills
 * up the space before an aligned block is never run. */
static uint64_t next_open(struct height *h, uint64_t off)
{
	while (off < h->len) {
		struct height_step step;

		if (h->reason[off] != HEIGHT_UNREACHED) {
			off++;
			continue;
		}
		step = step_at(h, off);
		if (step.flow != HEIGHT_STOP && step.flow != HEIGHT_BAD && !step.padding)
			break;
		off += step.len;
	}
	return off;
}

/* Behind the jump or return that ends the instructions at @off. */
static uint64_t behind_block(struct height *h, uint64_t off)
{
	while (off < h->len && h->reason[off] == HEIGHT_UNREACHED) {
		struct height_step step = step_at(h, off);

		off += step.len;
		if (ends_block(&step))
			break;
	}
	return off;
}

/* ---- trials ---------------------------------------------------------------------------------- */

/* 1: rules were found. */
static int try_at(struct height *h, struct trials *t, uint64_t off)
{
	for (size_t i = 0; i < t->nr_states && t->nr < MAX_TRIALS; i++) {
		int r = height_flow(h, (uint32_t)off, &t->state[i]);

		t->nr++;
		if (r == -ENOMEM)
			return r;
		if (r == 0 && height_prove_trial(h, t->calls[i]) && height_keep_trial(h))
			return 1;
	}
	return 0;
}

static int try_gaps(struct height *h, struct trials *t)
{
	uint64_t off = next_open(h, 0);

	while (off < h->len && t->nr < MAX_TRIALS) {
		int r = try_at(h, t, off);

		if (r < 0)
			return r;
		off = next_open(h, h->reason[off] == HEIGHT_UNREACHED ? behind_block(h, off) : off);
	}
	return 0;
}

int height_trials(struct height *h)
{
	struct trials t = { .nr = 0 };

	/* Files have so much code that what this adds is not worth its time. */
	if (h->called || h->refused != HEIGHT_PROVEN)
		return 0;
	h->steps = (uint64_t)h->len * STEPS_PER_BYTE;
	add_body(h, &t);
	add_others(&t);
	return try_gaps(h, &t);
}
