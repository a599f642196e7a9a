/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of a routine: from its entry, or else from what its runtime says of it, its parts, its
 * use of rbp. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "height_internal.h"
#include "insn_x86.h"

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
	r = height_flow(h, (uint32_t)off, &frame);
	if (r < 0 || !is_framed(h))
		return r == -ENOMEM ? r : 0;
	h->proof = HEIGHT_BY_USE;
	height_keep_use(h);
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
	height_state_entry(&entry);
	r = height_flow(h, 0, &entry);
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
	height_flow_clear(h, 0, h->len);
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
