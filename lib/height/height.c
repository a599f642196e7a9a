/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of a routine. All paths from its entry are followed, with the state of the stack along
 * them; prove.c says which states are certain, and those give rules. Else they come from what its
 * runtime says of it, from its parts or from its use of rbp.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "height_internal.h"
#include "insn_x86.h"

/* ---- states ---------------------------------------------------------------------------------- */

/* Before the first instruction after a call. */
static void state_entry(struct height_state *s)
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
	t->nr = t->last = 0;
}

/* The number of the state; 0: there are too many. */
static uint16_t height_states_add(struct height_states *t, const struct height_state *s)
{
	size_t at;

	if (t->last && memcmp(&t->v[t->last], s, sizeof(*s)) == 0)
		return t->last;
	at = base_hash64(s, sizeof(*s)) % HEIGHT_STATE_SLOTS;
	while (t->slot[at] && memcmp(&t->v[t->slot[at]], s, sizeof(*s)) != 0)
		at = (at + 1) % HEIGHT_STATE_SLOTS;
	if (!t->slot[at]) {
		if (t->nr + 1 == HEIGHT_MAX_STATES)
			return 0;
		t->v[++t->nr] = *s;
		t->slot[at] = (uint16_t)t->nr;
		t->at[t->nr] = (uint16_t)at;
	}
	t->last = t->slot[at];
	return t->last;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* The state at @off may also be *@s. What changes by that is looked at again. */
static int join(struct height *h, uint64_t off, const struct height_state *s)
{
	struct height_state both = *s;
	uint16_t n;

	if (off >= h->len)
		return 0;
	if (h->state[off]) {
		const struct height_state *known = height_states_at(&h->states, h->state[off]);

		height_state_meet(&both, known);
		if (memcmp(&both, known, sizeof(both)) == 0)
			return 0;
	}
	n = height_states_add(&h->states, &both);
	if (!n)
		return -DCPI_ELIMIT;
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

	state_entry(&entry);
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

/* Nothing of [from, end) was reached. */
static void flow_clear(struct height *h, size_t from, size_t end)
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
		flow_clear(h, h->low, h->high);
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

/* Paths from several places: nothing is followed yet. */
static void flow_begin(struct height *h)
{
	clear_last(h);
	h->listed = false;
	h->low = h->len;
	h->high = 0;
	h->nr_queue = 0;
	height_states_clear(&h->states);
}

/* The same from several places: nothing is followed yet; one more place; all paths from them. */
/* One more place. */
static int flow_enter(struct height *h, uint64_t off, const struct height_state *s)
{
	return join(h, off, s);
}

/* Follow all paths from the places that were entered. */
static int flow_end(struct height *h)
{
	int r = follow_all(h);

	return r < 0 ? r : list_insns(h);
}

/* Follow all paths from @off, where the state is *@s. 0, -ENOMEM, or -DCPI_ELIMIT: too
 * many states or steps. */
static int flow_from(struct height *h, uint32_t off, const struct height_state *s)
{
	int r;

	flow_begin(h);
	r = flow_enter(h, off, s);
	return r < 0 ? r : flow_end(h);
}

int height_flow_entries(struct height *h, const uint32_t *offs, size_t nr)
{
	struct height_state entry;
	int r = 0;

	state_entry(&entry);
	flow_begin(h);
	for (size_t i = 0; r >= 0 && i < nr; i++)
		r = flow_enter(h, offs[i], &entry);
	return r < 0 ? r : flow_end(h);
}

/* ---- rules from the states that are proven, and why there are none from the others ----------- */

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
	size_t at;

	if (t->last && memcmp(&t->v[t->last], rule, sizeof(*rule)) == 0)
		return t->last;
	at = base_hash64(rule, sizeof(*rule)) % HEIGHT_RULE_SLOTS;
	while (t->slot[at] && memcmp(&t->v[t->slot[at]], rule, sizeof(*rule)) != 0)
		at = (at + 1) % HEIGHT_RULE_SLOTS;
	if (!t->slot[at]) {
		if (t->nr + 1 == HEIGHT_MAX_RULES)
			return 0;
		t->v[++t->nr] = *rule;
		t->slot[at] = (uint16_t)t->nr;
	}
	t->last = t->slot[at];
	return t->last;
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
	h->rules.nr = h->rules.last = 0;
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

/* The same of those that no rule was kept for, and whose state an end proves. How many bytes. */
static size_t keep_trial(struct height *h)
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

/* Keep the rules of all instructions, which have a frame pointer. */
static void keep_use(struct height *h)
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

/* ---- a frame that another routine makes ------------------------------------------------------ */

/*
 * A routine whose frame another one makes: V8's baseline code calls a builtin first, which puts the
 * frame there and comes back, and is left by a jump to one that takes it away. Its code shows that
 * rbp is a frame pointer: it reads and writes below it, and nowhere changes it.
 */

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

	state_entry(&entry);
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

/* Find rules for a routine whose frame another one makes. 0 or -ENOMEM. */
static int height_use(struct height *h)
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
	r = flow_from(h, (uint32_t)off, &frame);
	if (r < 0 || !is_framed(h))
		return r == -ENOMEM ? r : 0;
	h->proof = HEIGHT_BY_USE;
	keep_use(h);
	return 0;
}

/* ---- code that is not reached from the entry ------------------------------------------------- */

/*
 * Code that no path from the entry reaches: handlers of exceptions, targets of tables, loops that
 * are entered in the middle. A state is tried there, and it is right if the paths from there end in
 * a return that it leads to: with another state that return would miss the return address. A call
 * on such a path may never come back, so that it ends the proof, but for a frame pointer that the
 * routine has elsewhere.
 */

enum { MAX_TRIALS = 64, MAX_STATES = 3, TRIAL_STEPS_PER_BYTE = 2 };
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
	state_entry(&entry);
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
		int r = flow_from(h, (uint32_t)off, &t->state[i]);

		t->nr++;
		if (r == -ENOMEM)
			return r;
		if (r == 0 && height_prove_trial(h, t->calls[i]) && keep_trial(h))
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

/* Find rules for code that is not reached from the entry. 0 or -ENOMEM. */
static int height_trials(struct height *h)
{
	struct trials t = { .nr = 0 };

	/* Files have so much code that what this adds is not worth its time. */
	if (h->called || h->refused != HEIGHT_PROVEN)
		return 0;
	h->steps = (uint64_t)h->len * TRIAL_STEPS_PER_BYTE;
	add_body(h, &t);
	add_others(&t);
	return try_gaps(h, &t);
}

/* ---- entries told by the runtime ------------------------------------------------------------- */

/*
 * A routine whose runtime says how the frame is where it is entered: a trace of LuaJIT, which is
 * entered and left by jumps and works on the frame of the interpreter. Nothing in such code proves
 * where its caller is; what its instructions do with the stack is followed all the same.
 */

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

/* All of it, where the runtime has told the entries. 0 or -ENOMEM. */
static int height_told(struct height *h)
{
	struct height_state s;
	int r = 0;

	flow_begin(h);
	for (size_t i = 0; r >= 0 && i < h->nr_told; i++) {
		tell_state(&h->told[i], &s);
		r = flow_enter(h, h->told[i].off, &s);
	}
	if (r >= 0)
		r = flow_end(h);
	if (r == -DCPI_ELIMIT)
		h->refused = HEIGHT_TOO_LARGE;
	else if (r >= 0)
		height_prove(h);
	if (r < 0 && r != -DCPI_ELIMIT)
		return r;
	height_keep(h);
	return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

enum { STEPS_PER_BYTE = 64 };

int height_open(uint32_t machine, struct height **out)
{
	*out = NULL;
	if (machine != EM_X86_64)
		return -DCPI_EUNSUPPORTED;
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void height_close(struct height *h)
{
	if (!h)
		return;
	free(h->state);
	free(h->queued);
	free(h->queue);
	free(h->index);
	free(h->reason);
	free(h->rule);
	free(h->insns);
	free(h->step);
	free(h->entries);
	free(h);
}

void height_set_called(struct height *h, bool called)
{
	h->called = called;
}

void height_set_entries(struct height *h, const struct height_entry *entries, size_t nr)
{
	h->told = entries;
	h->nr_told = nr;
}

const char *height_reason_text(enum height_reason reason)
{
	static const char *const texts[HEIGHT_NR_REASONS] = {
		[HEIGHT_PROVEN] = "proven",
		[HEIGHT_NO_PROOF] = "no return and no prologue",
		[HEIGHT_OTHER_RETURN] = "returns elsewhere",
		[HEIGHT_FP_CHANGED] = "returns with another rbp",
		[HEIGHT_TAKES_CALLERS] = "takes its caller's stack",
		[HEIGHT_OVERLAP] = "instructions overlap",
		[HEIGHT_TOO_LARGE] = "too large",
		[HEIGHT_UNREACHED] = "not reached from the entry",
		[HEIGHT_UNKNOWN] = "stack pointer not known",
		[HEIGHT_AFTER_CALL] = "behind a call, no return follows",
		[HEIGHT_SIDE_ENTRY] = "reached from unreached code",
		[HEIGHT_NO_CODE] = "no instruction",
	};

	return reason < HEIGHT_NR_REASONS && texts[reason] ? texts[reason] : "?";
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct rows {
	int (*row)(void *ctx, uint64_t addr, const struct unwind_rule *rule);
	void *ctx;
};

static int make_rows(const struct height *h, const struct rows *rows)
{
	static const struct unwind_rule none = { .how = UNWIND_NONE };
	uint16_t last = 0;
	int r = 0;

	for (size_t off = 0; r >= 0 && off < h->len; off++) {
		if (h->rule[off] == last)
			continue;
		last = h->rule[off];
		r = rows->row(rows->ctx, h->vaddr + off, last ? &h->rules.v[last] : &none);
	}
	return r < 0 || !last ? r : rows->row(rows->ctx, h->vaddr + h->len, &none);
}

static int reserve(struct height *h, size_t len)
{
	if (base_grow(&h->state, &h->cap_state, len, sizeof(*h->state)) < 0 ||
	    base_grow(&h->queued, &h->cap_queued, len, sizeof(*h->queued)) < 0 ||
	    base_grow(&h->queue, &h->cap_queue, len, sizeof(*h->queue)) < 0 ||
	    base_grow(&h->index, &h->cap_index, len, sizeof(*h->index)) < 0 ||
	    base_grow(&h->rule, &h->cap_rule, len, sizeof(*h->rule)) < 0 ||
	    base_grow(&h->reason, &h->cap_reason, len, sizeof(*h->reason)) < 0 ||
	    base_grow(&h->step, &h->cap_step, len, sizeof(*h->step)) < 0 ||
	    base_grow(&h->entries, &h->cap_entries, len, sizeof(*h->entries)) < 0)
		return -ENOMEM;
	return 0;
}

/* Find rules and reasons of a routine that was called, if any was. */
static int work_called(struct height *h)
{
	struct height_state entry;
	int r;

	r = height_parts(h);
	if (r)
		return r;
	state_entry(&entry);
	r = flow_from(h, 0, &entry);
	if (r == -DCPI_ELIMIT)
		h->refused = HEIGHT_TOO_LARGE;
	else if (r >= 0)
		height_prove(h);
	if (r < 0 && r != -DCPI_ELIMIT)
		return r;
	height_keep(h);
	r = height_trials(h);
	return r < 0 ? r : height_use(h);
}

/* Find rules and reasons. */
static int work(struct height *h)
{
	int r = reserve(h, h->len);

	if (r < 0)
		return r;
	memset(h->step, 0, h->len * sizeof(*h->step));
	flow_clear(h, 0, h->len);
	h->low = h->high = 0;
	h->listed = false;
	h->steps = (uint64_t)h->len * STEPS_PER_BYTE;
	return h->nr_told ? height_told(h) : work_called(h);
}

static void report_to(const struct height *h, size_t len, struct height_report *report)
{
	memset(report, 0, sizeof(*report));
	for (size_t off = 0; off < len; off++)
		report->bytes[height_reason_at(h, off)]++;
	report->proof = h->proof;
	report->refused = h->refused;
}

int height_rows(struct height *h, const uint8_t *code, size_t len, uint64_t vaddr,
		int (*row)(void *ctx, uint64_t addr, const struct unwind_rule *rule), void *ctx,
		struct height_report *report)
{
	const struct rows rows = { .row = row, .ctx = ctx };
	uint64_t end;
	int r = 0;

	if (base_add_overflow(vaddr, len, &end)) {
		height_set_entries(h, NULL, 0);
		return -EINVAL;
	}
	h->code = code;
	h->len = len <= HEIGHT_MAX_LEN ? len : 0;
	h->vaddr = vaddr;
	h->nr = 0;
	h->proof = HEIGHT_BY_NOTHING;
	h->refused = h->len == len ? HEIGHT_PROVEN : HEIGHT_TOO_LARGE;
	if (h->len)
		r = work(h);
	height_set_entries(h, NULL, 0);
	if (r >= 0)
		r = make_rows(h, &rows);
	if (r >= 0 && report)
		report_to(h, len, report);
	return r < 0 ? r : 0;
}

enum height_reason height_reason_at(const struct height *h, size_t off)
{
	if (off < h->len)
		return (enum height_reason)h->reason[off];
	return h->refused != HEIGHT_PROVEN ? (enum height_reason)h->refused : HEIGHT_UNREACHED;
}
