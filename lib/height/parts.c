/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A routine of many parts which all run in one frame: HotSpot's interpreter. Each part has a head
 * of 32 bytes, where the length of the part is, and so that of the next head. A method's entry
 * makes the frame, and keeps the caller's stack pointer in the word below rbp; a method's end takes
 * it from there: "mov R, [rbp-8]; leave; pop T; mov rsp, R; jmp T". In between, parts jump to each
 * other through tables, and nothing of what they push tells where the return address is. rbp does.
 *
 * Such ends prove the frame. It is not there before an entry has made it, behind "leave", and in
 * code that returns in another way: no instruction with the frame may lead there, but by a jump
 * through memory.
 */
#include <errno.h>
#include <string.h>

#include "height_internal.h"
#include "insn_x86.h"

/* Numbers of registers as instructions have them. */
enum { HEIGHT_PARTS_RSP = 4, HEIGHT_PARTS_RBP = 5 };

/* Findings of an instruction of a routine of parts, instead of those of prove.c. */
enum {
	HEIGHT_PARTS_IN_FRAME = 1 << 0,	 /* rbp, as it is here, is used as the frame pointer */
	HEIGHT_PARTS_ELSEWHERE = 1 << 1, /* it leads to where a frame is made, or to an end that
					    has none */
	HEIGHT_PARTS_BEHIND = 1 << 2,	 /* "leave" took the frame away */
	HEIGHT_PARTS_TARGET = 1 << 3,	 /* a jump or call in the routine leads here */
	HEIGHT_PARTS_LOST = 1 << 4,	 /* rbp was written in another way, and nothing else leads
					    here */
	HEIGHT_PARTS_ENTERED = 1 << 5, /* a method was just entered: its return address is at rsp */
	HEIGHT_PARTS_POPPED = 1 << 6,  /* the same, in a register */
};

/* ---- the entry of a method ------------------------------------------------------------------- */

/*
 * The entry of a method in a routine of many parts, up to where its frame is there: "pop T; …;
 * push T; push rbp; mov rbp, rsp; push S". The frame is proven (parts.c): S is the caller's stack
 * pointer, and what is pushed before rbp is the return address. So S and T are that in all of the
 * code that leads there and leaves both as they are; and before "pop T" the return address is at
 * rsp.
 */

/* One that is looked at. */
struct entry {
	struct height *h;
	size_t first, end; /* instructions of its part */
	size_t frames;	   /* "mov rbp, rsp" */
	int t, s;	   /* T and S */
};

static bool height_parts_decode(const struct height *h, const struct height_insn *i,
				struct insn_x86 *in)
{
	return insn_x86_decode(true, h->code + i->off, i->len, in);
}

/* The whole general register that is the operand; negative: none. */
static int height_parts_register(const ZydisDecodedOperand *op)
{
	struct insn_x86_register r;

	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return -1;
	r = insn_x86_register(op->reg.value);
	return r.class == INSN_X86_GENERAL && r.width == 8 ? r.number : -1;
}

/* Numbers of DWARF, by those that instructions have. */
static uint8_t dwarf(int reg)
{
	static const uint8_t numbers[] = { 0, 2, 1, 3, 7, 6, 4, 5 };

	return reg < 8 ? numbers[reg] : (uint8_t)reg;
}

static bool is_push(const struct height *h, size_t n, int *reg)
{
	struct insn_x86 in;

	if (!height_parts_decode(h, &h->insns[n], &in) || in.head.mnemonic != ZYDIS_MNEMONIC_PUSH)
		return false;
	*reg = height_parts_register(&in.op[0]);
	return *reg >= 0;
}

static bool find_registers(struct entry *e)
{
	int rbp;

	return e->frames >= e->first + 2 && e->frames + 1 < e->end &&
	       is_push(e->h, e->frames - 2, &e->t) && is_push(e->h, e->frames - 1, &rbp) &&
	       rbp == HEIGHT_PARTS_RBP && is_push(e->h, e->frames + 1, &e->s) && e->t != e->s &&
	       e->t != rbp && e->s != rbp && e->t != HEIGHT_PARTS_RSP && e->s != HEIGHT_PARTS_RSP;
}

static bool writes(const struct insn_x86 *in, int reg)
{
	for (uint8_t n = 0; n < in->head.operand_count; n++) {
		const ZydisDecodedOperand *op = &in->op[n];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    insn_x86_register(op->reg.value).class == INSN_X86_GENERAL &&
		    insn_x86_register(op->reg.value).number == reg)
			return true;
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    insn_x86_register(op->reg.value).class == INSN_X86_HIGH &&
		    insn_x86_register(op->reg.value).number == reg)
			return true;
	}
	return false;
}

/* The state behind the instruction, by @state before it; 0: it is not known. */
static uint8_t behind(const struct entry *e, const struct height_insn *i, uint8_t state)
{
	struct insn_x86 in;

	if (!height_parts_decode(e->h, i, &in) || i->flow == HEIGHT_CALL || writes(&in, e->s))
		return 0;
	if (state == HEIGHT_PARTS_POPPED)
		return writes(&in, e->t) ? 0 : state;
	if (in.head.mnemonic == ZYDIS_MNEMONIC_POP && height_parts_register(&in.op[0]) == e->t)
		return HEIGHT_PARTS_POPPED;
	return writes(&in, HEIGHT_PARTS_RSP) ? 0 : state;
}

/* False: another way leads here in another state. */
static bool reach(struct entry *e, struct height_insn *to, uint8_t state)
{
	const uint8_t both = HEIGHT_PARTS_ENTERED | HEIGHT_PARTS_POPPED;
	size_t n = to ? (size_t)(to - e->h->insns) : 0;

	/* Elsewhere nothing is said of it. */
	if (!to || n < e->first || n >= e->end || (to->found & both) == state)
		return true;
	if (to->found & both)
		return false;
	to->found |= state;
	e->h->queue[e->h->nr_queue++] = (uint32_t)n;
	return true;
}

static bool follow(struct entry *e)
{
	struct height *h = e->h;

	h->nr_queue = 0;
	if (!reach(e, &h->insns[e->first], HEIGHT_PARTS_ENTERED))
		return false;
	while (h->nr_queue) {
		size_t n = h->queue[--h->nr_queue];
		struct height_insn *i = &h->insns[n];
		uint8_t state =
			behind(e, i, i->found & (HEIGHT_PARTS_ENTERED | HEIGHT_PARTS_POPPED));

		if (n == e->frames)
			continue;
		if (!state && (height_falls_through(i) || height_leads_to_target(i)))
			return false;
		if (height_falls_through(i) &&
		    !reach(e, height_insn_at(h, (uint64_t)i->off + i->len), state))
			return false;
		if (height_leads_to_target(i) && !reach(e, height_insn_at(h, i->target), state))
			return false;
	}
	return h->insns[e->frames].found & HEIGHT_PARTS_POPPED;
}

/* Only the entry itself is jumped to from elsewhere. */
static bool is_closed(const struct entry *e)
{
	const uint8_t both = HEIGHT_PARTS_ENTERED | HEIGHT_PARTS_POPPED;
	const struct height *h = e->h;

	for (size_t n = 0; n < h->nr; n++) {
		const struct height_insn *i = &h->insns[n], *to = height_insn_at(h, i->target);
		size_t at = to ? (size_t)(to - h->insns) : 0;

		if (i->target == HEIGHT_NO_TARGET || at <= e->first || at >= e->end ||
		    !(to->found & both))
			continue;
		if (n < e->first || n >= e->end || !(i->found & both))
			return false;
	}
	return true;
}

static void keep(struct entry *e)
{
	struct height *h = e->h;
	struct unwind_rule rule = { .how = UNWIND_CFA,
				    .base = dwarf(e->s),
				    .link_at = UNWIND_AT_LOST };

	for (size_t n = e->first; n < e->end; n++) {
		rule.returns = h->insns[n].found & HEIGHT_PARTS_ENTERED
				       ? UNWIND_RETURNS_SP
				       : (uint8_t)(dwarf(e->t) + 1);
		if (h->insns[n].found & (HEIGHT_PARTS_ENTERED | HEIGHT_PARTS_POPPED))
			height_keep_rule(h, &h->insns[n], &rule);
	}
	rule.fp_at = UNWIND_AT_FP;
	rule.returns = UNWIND_RETURNS_FP;
	height_keep_rule(h, &h->insns[e->frames + 1], &rule);
}

/* Keep rules for the entry of a method, if that is what the part is: its instructions are those
 * from @first up to, without, @end. False: no frame is made there. */
static bool height_parts_entry(struct height *h, size_t first, size_t end)
{
	struct entry e = { .h = h, .first = first, .end = end, .frames = end };
	size_t nr = 0;

	for (size_t n = first; n < end; n++) {
		if (!(h->insns[n].does & HEIGHT_FRAMES))
			continue;
		e.frames = n;
		nr++;
	}
	if (nr == 1 && find_registers(&e) && follow(&e) && is_closed(&e))
		keep(&e);
	return nr > 0;
}

/* ---- the routine ----------------------------------------------------------------------------- */

enum {
	HEAD = 32,
	MIN_PARTS = 8,
	MIN_ENDS = 2,
	SLOT = -8, /* from rbp: the caller's stack pointer */
	FRAME_END = 16,
	STATE_AREA = 16384, /* as in step.c */
	MAX_SWEEPS = 256,
	MAX_TO_JUMP = 4,
	MAX_ENTRIES = 64, /* each is looked for in the whole routine */
};

/* ---- parts ----------------------------------------------------------------------------------- */

static uint32_t length_at(const struct height *h, size_t off, size_t word)
{
	uint32_t len;

	memcpy(&len, h->code + off + word * sizeof(len), sizeof(len));
	return len;
}

/* Does each head have in this word a length that leads to the next, and to the routine's end? */
static bool is_chain(const struct height *h, size_t word)
{
	size_t off = 0, nr = 0;

	while (off < h->len) {
		uint32_t len = h->len - off > HEAD ? length_at(h, off, word) : 0;

		if (len <= HEAD || len % HEAD || len > h->len - off)
			return false;
		off += len;
		nr++;
	}
	return nr >= MIN_PARTS;
}

static bool find_word(const struct height *h, size_t *word)
{
	for (*word = 0; *word < HEAD / sizeof(uint32_t); (*word)++)
		if (is_chain(h, *word))
			return true;
	return false;
}

/* All instructions from @off up to @end. 1, 0: other bytes are there; -ENOMEM. */
static int add_part(struct height *h, size_t off, size_t end)
{
	while (off < end) {
		struct height_state any = { 0 };
		struct height_step step;
		bool within;

		if (base_grow(&h->insns, &h->cap_insns, h->nr + 1, sizeof(*h->insns)) < 0)
			return -ENOMEM;
		height_step(h, off, &any, &step);
		if (step.flow == HEIGHT_BAD || step.len > end - off)
			return 0;
		within = step.direct && step.target - h->vaddr < h->len;
		h->insns[h->nr] = (struct height_insn){
			.off = (uint32_t)off,
			.target = within ? (uint32_t)(step.target - h->vaddr) : HEIGHT_NO_TARGET,
			.len = step.len,
			.flow = step.flow,
			.does = step.does,
		};
		h->index[off] = (uint32_t)++h->nr;
		off += step.len;
	}
	return 1;
}

/* 1, or 0: one is amid an instruction, or in a head. */
static int mark_targets(struct height *h)
{
	for (size_t n = 0; n < h->nr; n++) {
		struct height_insn *to = height_insn_at(h, h->insns[n].target);

		if (h->insns[n].target == HEIGHT_NO_TARGET)
			continue;
		if (!to)
			return 0;
		to->found |= HEIGHT_PARTS_TARGET;
	}
	return 1;
}

static int add_parts(struct height *h, size_t word)
{
	int r = 1;

	h->low = 0;
	h->high = h->len;
	for (size_t off = 0, len; r > 0 && off < h->len; off += len) {
		len = length_at(h, off, word);
		r = add_part(h, off + HEAD, off + len);
	}
	return r > 0 ? mark_targets(h) : r;
}

/* ---- one instruction ------------------------------------------------------------------------- */

/* "pop T": the number of T, else negative. */
static int popped(const struct insn_x86 *in)
{
	return in->head.mnemonic == ZYDIS_MNEMONIC_POP ? height_parts_register(&in->op[0]) : -1;
}

/* "mov rsp, R": the number of R, else negative. */
static int sp_from(const struct insn_x86 *in)
{
	return in->head.mnemonic == ZYDIS_MNEMONIC_MOV &&
			       height_parts_register(&in->op[0]) == HEIGHT_PARTS_RSP
		       ? height_parts_register(&in->op[1])
		       : -1;
}

static bool is_frame_memory(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.type == ZYDIS_MEMOP_TYPE_MEM &&
	       op->mem.base == ZYDIS_REGISTER_RBP && op->mem.index == ZYDIS_REGISTER_NONE;
}

/* "mov R, [rbp - 8]": the number of R, else negative. */
static int slot_to(const struct insn_x86 *in)
{
	return in->head.mnemonic == ZYDIS_MNEMONIC_MOV && is_frame_memory(&in->op[1]) &&
			       in->op[1].mem.disp.value == SLOT
		       ? height_parts_register(&in->op[0])
		       : -1;
}

/* The slot, the caller's rbp and the return address stay as the entry made them. */
static bool writes_frame_end(const struct insn_x86 *in)
{
	for (uint8_t n = 0; n < in->head.operand_count; n++) {
		const ZydisDecodedOperand *op = &in->op[n];
		int64_t len = op->size ? op->size / 8 : STATE_AREA;

		if (is_frame_memory(op) && op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    op->mem.disp.value < FRAME_END && op->mem.disp.value + len > SLOT)
			return true;
	}
	return false;
}

/* A word below rbp, or the next part by a table. */
static bool uses_frame(const struct insn_x86 *in)
{
	for (uint8_t n = 0; n < in->head.operand_count_visible; n++) {
		const ZydisDecodedOperand *op = &in->op[n];

		if (is_frame_memory(op) && op->mem.disp.value < 0 && op->mem.disp.value % 8 == 0)
			return true;
	}
	return in->head.mnemonic == ZYDIS_MNEMONIC_JMP &&
	       in->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       in->op[0].mem.index != ZYDIS_REGISTER_NONE && in->op[0].mem.scale == 8;
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* Does a jump that leads anywhere follow, with nothing but plain instructions before it? */
static bool jumps_soon(const struct height *h, size_t n)
{
	for (size_t last = n + MAX_TO_JUMP; n < h->nr && n <= last; n++)
		if (h->insns[n].flow != HEIGHT_NEXT)
			return h->insns[n].flow == HEIGHT_ELSEWHERE;
	return false;
}

/* A return by other means than "ret": to an address that was popped, or read at rsp. */
static bool jumps_back(const struct height *h, size_t n, const struct insn_x86 *in)
{
	int reg = height_parts_register(&in->op[0]);
	struct insn_x86 before;

	if (h->insns[n].flow != HEIGHT_ELSEWHERE)
		return false;
	if (in->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
		return in->op[0].mem.base == ZYDIS_REGISTER_RSP;
	for (size_t i = 1; i <= MAX_TO_JUMP && i <= n; i++) {
		if (h->insns[n - i].flow != HEIGHT_NEXT ||
		    !height_parts_decode(h, &h->insns[n - i], &before))
			return false;
		if (popped(&before) == reg)
			return true;
	}
	return false;
}

/* Behind "leave" at @n: "pop T; mov rsp, R", up to the end of the block. R, or negative. */
static int leave_frame(struct height *h, size_t n)
{
	struct insn_x86 pop, mov;
	int reg;

	if (n + 2 >= h->nr || !height_parts_decode(h, &h->insns[n + 1], &pop) ||
	    !height_parts_decode(h, &h->insns[n + 2], &mov))
		return -1;
	reg = sp_from(&mov);
	if (popped(&pop) < 0 || popped(&pop) == reg || popped(&pop) == HEIGHT_PARTS_RSP ||
	    popped(&pop) == HEIGHT_PARTS_RBP || reg == HEIGHT_PARTS_RSP || reg == HEIGHT_PARTS_RBP)
		return -1;
	for (size_t i = n + 1; i < h->nr; i++) {
		/* The instructions behind it are marked already. */
		if (h->insns[i].found & HEIGHT_PARTS_BEHIND)
			break;
		h->insns[i].found |= HEIGHT_PARTS_BEHIND;
		if (h->insns[i].flow != HEIGHT_NEXT)
			break;
	}
	return reg;
}

/* "mov R, [rbp - 8]; leave; pop T; mov rsp, R; jmp T", with nothing in between. */
static bool is_strict_end(const struct height *h, size_t n, int reg)
{
	struct insn_x86 load, pop, jump;

	return n > 0 && n + 3 < h->nr && height_parts_decode(h, &h->insns[n - 1], &load) &&
	       slot_to(&load) == reg && height_parts_decode(h, &h->insns[n + 1], &pop) &&
	       height_parts_decode(h, &h->insns[n + 3], &jump) &&
	       h->insns[n + 3].flow == HEIGHT_ELSEWHERE &&
	       height_parts_register(&jump.op[0]) == popped(&pop);
}

/* ---- findings -------------------------------------------------------------------------------- */

/* The frame is being made: by this instruction, and by the push of the slot behind it. */
static bool make_frame(struct height *h, size_t n)
{
	struct insn_x86 push;

	if (n + 1 >= h->nr || !height_parts_decode(h, &h->insns[n + 1], &push) ||
	    push.head.mnemonic != ZYDIS_MNEMONIC_PUSH || height_parts_register(&push.op[0]) < 0)
		return false;
	h->insns[n].found |= HEIGHT_PARTS_ELSEWHERE;
	h->insns[n + 1].found |= HEIGHT_PARTS_ELSEWHERE;
	return true;
}

/* False: this is not such a routine. */
static bool look_at(struct height *h, size_t n, size_t *ends)
{
	struct height_insn *i = &h->insns[n];
	struct insn_x86 in;
	int reg = -1;

	if (!height_parts_decode(h, i, &in) || writes_frame_end(&in))
		return false;
	if (in.head.mnemonic == ZYDIS_MNEMONIC_LEAVE) {
		reg = leave_frame(h, n);
		*ends += reg >= 0 && is_strict_end(h, n, reg);
		i->found |= HEIGHT_PARTS_IN_FRAME;
		return reg >= 0;
	}
	if (i->does & HEIGHT_FRAMES)
		return make_frame(h, n);
	if (i->flow == HEIGHT_RETURN || jumps_back(h, n, &in) ||
	    (sp_from(&in) >= 0 && sp_from(&in) != HEIGHT_PARTS_RBP && jumps_soon(h, n + 1)))
		i->found |= HEIGHT_PARTS_ELSEWHERE;
	if (uses_frame(&in))
		i->found |= HEIGHT_PARTS_IN_FRAME;
	return true;
}

static bool look(struct height *h)
{
	size_t ends = 0;

	for (size_t n = 0; n < h->nr; n++)
		if (!look_at(h, n, &ends))
			return false;
	/* The code behind "leave" is that end's alone. */
	for (size_t n = 0; n < h->nr; n++)
		if (height_leads_to_target(&h->insns[n]) &&
		    height_insn_at(h, h->insns[n].target)->found & HEIGHT_PARTS_BEHIND)
			return false;
	return ends >= MIN_ENDS;
}

static uint8_t inherited(const struct height_insn *next)
{
	return next ? next->found & (HEIGHT_PARTS_IN_FRAME | HEIGHT_PARTS_ELSEWHERE) : 0;
}

static bool sweep(struct height *h)
{
	bool changed = false;

	for (size_t n = h->nr; n-- > 0;) {
		struct height_insn *i = &h->insns[n];
		uint8_t found = i->found;

		if (i->does & HEIGHT_WRITES_FP && !(i->does & HEIGHT_FRAMES))
			continue;
		if (height_falls_through(i))
			found |= inherited(height_insn_at(h, (uint64_t)i->off + i->len));
		if (height_leads_to_target(i))
			found |= inherited(height_insn_at(h, i->target));
		/* Code of its own that is called finds the same rbp. */
		if (i->flow == HEIGHT_CALL && i->target != HEIGHT_NO_TARGET)
			found |= height_insn_at(h, i->target)->found & HEIGHT_PARTS_IN_FRAME;
		changed |= found != i->found;
		i->found = found;
	}
	return changed;
}

static bool in_frame(const struct height_insn *i)
{
	return (i->found & (HEIGHT_PARTS_IN_FRAME | HEIGHT_PARTS_ELSEWHERE | HEIGHT_PARTS_BEHIND |
			    HEIGHT_PARTS_LOST)) == HEIGHT_PARTS_IN_FRAME;
}

/* rbp is behind an instruction what it is before the next one, if no other leads there. */
static void find_behind(struct height *h)
{
	for (size_t n = 1; n < h->nr; n++) {
		const struct height_insn *before = &h->insns[n - 1];
		const bool writes = before->does & HEIGHT_WRITES_FP;
		struct height_insn *i = &h->insns[n];

		if (i->found & HEIGHT_PARTS_TARGET || before->off + before->len != i->off ||
		    !height_falls_through(before))
			continue;
		if (before->found & HEIGHT_PARTS_LOST ||
		    (writes && !(before->does & HEIGHT_FRAMES)))
			i->found |= HEIGHT_PARTS_LOST;
		else if (in_frame(before) && !writes)
			i->found |= HEIGHT_PARTS_IN_FRAME;
	}
}

/* False: there are more ways than are followed. */
static bool find_all(struct height *h)
{
	size_t n = 0;

	while (n < MAX_SWEEPS && sweep(h))
		n++;
	find_behind(h);
	return n < MAX_SWEEPS;
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* A return address that was pushed by hand may be the first byte of a part: it is looked up in the
 * byte before. */
static void keep_head(struct height *h, const struct height_insn *first,
		      const struct unwind_rule *rule)
{
	const struct height_insn head = { .off = first->off - HEAD, .len = HEAD };

	height_keep_rule(h, &head, rule);
}

static void keep_frames(struct height *h, size_t word)
{
	static const struct unwind_rule rule = { .how = UNWIND_DEREF,
						 .base = UNWIND_FP,
						 .off = SLOT,
						 .fp_at = UNWIND_AT_FP,
						 .link_at = UNWIND_AT_LOST,
						 .returns = UNWIND_RETURNS_FP };

	for (size_t n = 0; n < h->nr; n++)
		if (in_frame(&h->insns[n]))
			height_keep_rule(h, &h->insns[n], &rule);
	for (size_t off = 0; off < h->len; off += length_at(h, off, word)) {
		const struct height_insn *first = height_insn_at(h, off + HEAD);

		if (first && in_frame(first))
			keep_head(h, first, &rule);
	}
}

static void keep_entries(struct height *h, size_t word)
{
	size_t nr = 0;

	for (size_t off = 0, len, n = 0; off < h->len && nr < MAX_ENTRIES; off += len) {
		size_t first = n;

		len = length_at(h, off, word);
		while (n < h->nr && h->insns[n].off < off + len)
			n++;
		nr += height_parts_entry(h, first, n);
	}
}

/* ---- code that is called --------------------------------------------------------------------- */

/* Parts call some of their own code, which returns as routines do. */
static int keep_called(struct height *h)
{
	size_t nr = 0;
	int r = 0;

	for (size_t n = 0; n < h->nr; n++)
		if (h->insns[n].flow == HEIGHT_CALL && h->insns[n].target != HEIGHT_NO_TARGET)
			h->entries[nr++] = h->insns[n].target;
	h->steps = (uint64_t)h->len * 2;
	r = height_flow_entries(h, h->entries, nr);
	if (r == 0 && nr && height_prove_trial(h, HEIGHT_CALLS_ALL))
		height_keep_called(h);
	return r == -ENOMEM ? r : 0;
}

int height_parts(struct height *h)
{
	size_t word;
	int r;

	if (!find_word(h, &word))
		return 0;
	r = add_parts(h, word);
	if (r <= 0 || !look(h) || !find_all(h))
		return r < 0 ? r : 0;
	h->refused = HEIGHT_NO_PROOF;
	h->proof = HEIGHT_BY_PARTS;
	height_keep(h);
	keep_frames(h, word);
	keep_entries(h, word);
	r = keep_called(h);
	return r < 0 ? r : 1;
}
