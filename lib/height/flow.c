/* SPDX-License-Identifier: BSD-2-Clause */
/* All paths through a routine from its entry, and the state of the stack along them. */
#include <errno.h>
#include <string.h>

#include "height_internal.h"

/* ---- states ---------------------------------------------------------------------------------- */

void height_state_entry(struct height_state *s)
{
	memset(s, 0, sizeof(*s));
	s->reg[HEIGHT_SP] = (struct height_value){ .off = -8, .kind = HEIGHT_STACK };
	s->reg[HEIGHT_FP].kind = HEIGHT_OLD_FP;
	s->reg[HEIGHT_LINK].kind = HEIGHT_OLD_LINK;
}

static void meet(struct height_value *a, const struct height_value *b)
{
	if (a->kind != b->kind || a->off != b->off)
		memset(a, 0, sizeof(*a));
	else
		a->assumed |= b->assumed;
}

void height_state_drop_copy(struct height_state *s)
{
	memset(&s->copy, 0, sizeof(s->copy));
	memset(&s->copied, 0, sizeof(s->copied));
}

/* Keep of *@s as much as holds where *@with may be too. */
static void height_state_meet(struct height_state *s, const struct height_state *with)
{
	for (size_t i = 0; i < HEIGHT_NR_REGS; i++)
		meet(&s->reg[i], &with->reg[i]);
	for (size_t i = 0; i < HEIGHT_NR_SAVED; i++)
		meet(&s->saved[i], &with->saved[i]);
	meet(&s->copy, &with->copy);
	meet(&s->copied, &with->copied);
	if (s->copy.kind != HEIGHT_STACK || s->copied.kind != HEIGHT_STACK)
		height_state_drop_copy(s);
}

static void height_states_clear(struct height_states *t)
{
	for (uint32_t n = 1; n <= t->nr; n++)
		t->slot[t->at[n]] = 0;
	t->nr = 0;
}

/* The number of the state; 0: there are too many. */
static uint16_t height_states_add(struct height_states *t, const struct height_state *s)
{
	size_t at = base_hash64(s, sizeof(*s)) % HEIGHT_STATE_SLOTS;

	while (t->slot[at] && memcmp(&t->v[t->slot[at]], s, sizeof(*s)) != 0)
		at = (at + 1) % HEIGHT_STATE_SLOTS;
	if (t->slot[at])
		return t->slot[at];
	if (t->nr + 1 == HEIGHT_MAX_STATES)
		return 0;
	t->v[++t->nr] = *s;
	t->slot[at] = (uint16_t)t->nr;
	t->at[t->nr] = (uint16_t)at;
	return (uint16_t)t->nr;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* The state at @off may also be *@s. What changes by that is looked at again. */
static int join(struct height *h, uint64_t off, const struct height_state *s)
{
	struct height_state both = *s;
	uint16_t n;

	if (off >= h->len)
		return 0;
	if (h->state[off])
		height_state_meet(&both, height_states_at(&h->states, h->state[off]));
	n = height_states_add(&h->states, &both);
	if (!n)
		return -DCPI_ELIMIT;
	if (n == h->state[off])
		return 0;
	h->state[off] = n;
	if (off < h->low)
		h->low = off;
	if (off >= h->high)
		h->high = off + 1;
	if (!h->queued[off]) {
		h->queued[off] = 1;
		h->queue[h->nr_queue++] = (uint32_t)off;
	}
	return 0;
}

/* The routine calls a part of itself: that is entered as the routine is. */
static int join_called(struct height *h, uint64_t target)
{
	struct height_state entry;

	height_state_entry(&entry);
	return join(h, target - h->vaddr, &entry);
}

static int follow(struct height *h, uint32_t off)
{
	struct height_state s = *height_states_at(&h->states, h->state[off]);
	struct height_step step;
	int r = 0;

	height_step(h, off, &s, &step);
	h->step[off] = step;
	if (step.flow == HEIGHT_CALL && step.direct)
		r = join_called(h, step.target);
	if (r == 0 && (step.flow == HEIGHT_BRANCH || step.flow == HEIGHT_JUMP))
		r = join(h, step.target - h->vaddr, &s);
	if (r == 0 &&
	    (step.flow == HEIGHT_NEXT || step.flow == HEIGHT_BRANCH || step.flow == HEIGHT_CALL))
		r = join(h, (uint64_t)off + step.len, &s);
	return r;
}

/* Each state only loses what it says, in a few steps, so this ends. */
static int follow_all(struct height *h)
{
	int r = 0;

	while (r == 0 && h->nr_queue) {
		if (!h->steps)
			return -DCPI_ELIMIT;
		h->steps--;
		h->queued[h->queue[--h->nr_queue]] = 0;
		r = follow(h, h->queue[h->nr_queue]);
	}
	return r;
}

/* ---- the instructions that were reached ------------------------------------------------------ */

static int add_insn(struct height *h, uint32_t off)
{
	/* It was followed in this state, or again since. */
	const struct height_step step = h->step[off];
	bool within;
	int r;

	r = base_grow(&h->insns, &h->cap_insns, h->nr + 1, sizeof(*h->insns));
	if (r < 0)
		return r;
	within = step.direct && step.target - h->vaddr < h->len;
	h->insns[h->nr] = (struct height_insn){
		.off = off,
		.target = within ? (uint32_t)(step.target - h->vaddr) : HEIGHT_NO_TARGET,
		.state = h->state[off],
		.len = step.len,
		.flow = step.flow,
		.does = step.does,
	};
	h->index[off] = (uint32_t)++h->nr;
	return 0;
}

void height_flow_clear(struct height *h, size_t from, size_t end)
{
	size_t nr = end > from ? end - from : 0;

	memset(h->state + from, 0, nr * sizeof(*h->state));
	memset(h->queued + from, 0, nr);
	memset(h->index + from, 0, nr * sizeof(*h->index));
	h->nr = 0;
}

/* The same of what the last flow reached, which is all that it listed, if it came to its end. */
static void clear_last(struct height *h)
{
	if (!h->listed)
		height_flow_clear(h, h->low, h->high);
	for (size_t n = 0; n < h->nr; n++) {
		h->state[h->insns[n].off] = 0;
		h->index[h->insns[n].off] = 0;
	}
	h->nr = 0;
}

/* The first place from @i on, up to @end, that was reached. */
static size_t next_reached(const struct height *h, size_t i, size_t end)
{
	uint64_t four;

	for (; i + 4 <= end; i += 4) {
		memcpy(&four, &h->state[i], sizeof(four));
		if (four)
			break;
	}
	while (i < end && !h->state[i])
		i++;
	return i;
}

static int list_insns(struct height *h)
{
	int r = 0;

	for (size_t i = next_reached(h, h->low, h->high); r >= 0 && i < h->high;
	     i = next_reached(h, i + 1, h->high))
		r = add_insn(h, (uint32_t)i);
	h->listed = r >= 0;
	return r < 0 ? r : 0;
}

void height_flow_begin(struct height *h)
{
	clear_last(h);
	h->listed = false;
	h->low = h->len;
	h->high = 0;
	h->nr_queue = 0;
	height_states_clear(&h->states);
}

int height_flow_enter(struct height *h, uint64_t off, const struct height_state *s)
{
	return join(h, off, s);
}

int height_flow_end(struct height *h)
{
	int r = follow_all(h);

	return r < 0 ? r : list_insns(h);
}

int height_flow(struct height *h, uint32_t off, const struct height_state *s)
{
	int r;

	height_flow_begin(h);
	r = height_flow_enter(h, off, s);
	return r < 0 ? r : height_flow_end(h);
}

int height_flow_entries(struct height *h, const uint32_t *offs, size_t nr)
{
	struct height_state entry;
	int r = 0;

	height_state_entry(&entry);
	height_flow_begin(h);
	for (size_t i = 0; r >= 0 && i < nr; i++)
		r = height_flow_enter(h, offs[i], &entry);
	return r < 0 ? r : height_flow_end(h);
}

struct height_insn *height_insn_at(const struct height *h, uint64_t off)
{
	return off < h->len && h->index[off] ? &h->insns[h->index[off] - 1] : NULL;
}
