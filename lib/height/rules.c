/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules from the states that are proven, and why there are none from the others. */
#include <string.h>

#include "height_internal.h"

static bool usable(const struct height_value *v, enum height_kind kind, bool verified)
{
	return v->kind == kind && (!v->assumed || verified);
}

/* Where a register of the caller is: in memory, still in the register, or nowhere. */
static uint8_t place(const struct height_value *saved, const struct height_value *reg,
		     enum height_kind kind, bool verified, int16_t *words)
{
	*words = 0;
	if (usable(saved, HEIGHT_STACK, verified) && saved->off / 8 >= INT16_MIN) {
		*words = (int16_t)(saved->off / 8);
		return UNWIND_AT_CFA;
	}
	return usable(reg, kind, verified) ? UNWIND_AT_SAME : UNWIND_AT_LOST;
}

static enum height_reason rule_of(const struct height *h, const struct height_insn *i,
				  struct unwind_rule *rule)
{
	const struct height_state *s = height_states_at(&h->states, i->state);
	const struct height_value *sp = &s->reg[HEIGHT_SP], *fp = &s->reg[HEIGHT_FP];
	bool verified = i->found & HEIGHT_VERIFIED, fp_verified = i->found & HEIGHT_VERIFIED_FP;
	bool by_fp = usable(fp, HEIGHT_STACK, fp_verified);

	*rule = (struct unwind_rule){ .how = UNWIND_NONE };
	if (i->flow == HEIGHT_BAD)
		return HEIGHT_NO_CODE;
	if (i->found & HEIGHT_FROM_SIDE)
		return HEIGHT_SIDE_ENTRY;
	if (i->found & HEIGHT_CALLED_BEFORE)
		return HEIGHT_AFTER_CALL;
	if (!by_fp && !usable(sp, HEIGHT_STACK, verified))
		return sp->kind == HEIGHT_STACK || fp->kind == HEIGHT_STACK ? HEIGHT_AFTER_CALL
									    : HEIGHT_UNKNOWN;
	rule->how = UNWIND_CFA;
	rule->base = by_fp ? UNWIND_FP : UNWIND_SP;
	rule->off = -(by_fp ? fp->off : sp->off);
	rule->fp_at = place(&s->saved[HEIGHT_SAVED_FP], fp, HEIGHT_OLD_FP, verified || fp_verified,
			    &rule->fp_words);
	rule->link_at = place(&s->saved[HEIGHT_SAVED_LINK], &s->reg[HEIGHT_LINK], HEIGHT_OLD_LINK,
			      verified, &rule->link_words);
	return HEIGHT_PROVEN;
}

/* ---- kept ------------------------------------------------------------------------------------ */

/* The number of the rule; 0: there are too many. */
static uint16_t number_of(struct height_rules *t, const struct unwind_rule *rule)
{
	size_t at = base_hash64(rule, sizeof(*rule)) % HEIGHT_RULE_SLOTS;

	while (t->slot[at] && memcmp(&t->v[t->slot[at]], rule, sizeof(*rule)) != 0)
		at = (at + 1) % HEIGHT_RULE_SLOTS;
	if (t->slot[at])
		return t->slot[at];
	if (t->nr + 1 == HEIGHT_MAX_RULES)
		return 0;
	t->v[++t->nr] = *rule;
	t->slot[at] = (uint16_t)t->nr;
	return (uint16_t)t->nr;
}

static bool keep(struct height *h, const struct height_insn *i, enum height_reason reason,
		 const struct unwind_rule *rule)
{
	uint16_t number = reason == HEIGHT_PROVEN ? number_of(&h->rules, rule) : 0;

	if (reason == HEIGHT_PROVEN && !number)
		reason = HEIGHT_TOO_LARGE;
	memset(h->reason + i->off, reason, i->len);
	for (size_t n = 0; n < i->len; n++)
		h->rule[i->off + n] = number;
	return number;
}

void height_keep(struct height *h)
{
	struct unwind_rule rule;

	memset(h->rules.slot, 0, sizeof(h->rules.slot));
	h->rules.nr = 0;
	memset(h->rule, 0, h->len * sizeof(*h->rule));
	memset(h->reason, h->refused != HEIGHT_PROVEN ? h->refused : HEIGHT_UNREACHED, h->len);
	if (h->refused != HEIGHT_PROVEN)
		return;
	for (size_t n = 0; n < h->nr; n++) {
		enum height_reason reason = rule_of(h, &h->insns[n], &rule);

		keep(h, &h->insns[n], reason, &rule);
	}
}

/* Nothing is known of its bytes yet. */
static bool is_open(const struct height *h, const struct height_insn *i)
{
	for (size_t n = 0; n < i->len; n++)
		if (h->reason[i->off + n] != HEIGHT_UNREACHED)
			return false;
	return true;
}

size_t height_keep_trial(struct height *h)
{
	struct unwind_rule rule;
	size_t bytes = 0;

	for (size_t n = 0; n < h->nr; n++) {
		const struct height_insn *i = &h->insns[n];

		if (!(i->found & (HEIGHT_VERIFIED | HEIGHT_VERIFIED_FP)) || !is_open(h, i) ||
		    rule_of(h, i, &rule) != HEIGHT_PROVEN)
			continue;
		bytes += keep(h, i, HEIGHT_PROVEN, &rule) ? i->len : 0;
	}
	return bytes;
}

void height_keep_use(struct height *h)
{
	struct unwind_rule rule;

	for (size_t n = 0; n < h->nr; n++)
		if (rule_of(h, &h->insns[n], &rule) == HEIGHT_PROVEN)
			keep(h, &h->insns[n], HEIGHT_PROVEN, &rule);
}

void height_keep_rule(struct height *h, const struct height_insn *i, const struct unwind_rule *rule)
{
	keep(h, i, HEIGHT_PROVEN, rule);
}

static bool has_rule(const struct height *h, const struct height_insn *i)
{
	for (size_t n = 0; n < i->len; n++)
		if (h->rule[i->off + n])
			return true;
	return false;
}

void height_keep_called(struct height *h)
{
	struct unwind_rule rule;

	for (size_t n = 0; n < h->nr; n++) {
		const struct height_insn *i = &h->insns[n];

		if (i->found & HEIGHT_ANCHORED && !has_rule(h, i) &&
		    rule_of(h, i, &rule) == HEIGHT_PROVEN)
			keep(h, i, HEIGHT_PROVEN, &rule);
	}
}
