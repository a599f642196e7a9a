/* SPDX-License-Identifier: BSD-2-Clause */
/* States of the stack: what they have in common, and numbers for them. */
#include <string.h>

#include "height_internal.h"

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

void height_state_meet(struct height_state *s, const struct height_state *with)
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

void height_states_clear(struct height_states *t)
{
	for (uint32_t n = 1; n <= t->nr; n++)
		t->slot[t->at[n]] = 0;
	t->nr = 0;
}

uint16_t height_states_add(struct height_states *t, const struct height_state *s)
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
