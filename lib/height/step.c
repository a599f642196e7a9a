/* SPDX-License-Identifier: BSD-2-Clause */
/* One instruction: what it does to the stack pointer, to rbp and rbx, and to where they are saved.
 */
#include <string.h>

#include "height_internal.h"
#include "insn_x86.h"

enum {
	RETURN_AT = -8,	   /* from the CFA: the return address */
	MAX_OFF = 1 << 24, /* of a frame; more is not followed */
	STATE_AREA =
		16384, /* bytes that an instruction may write which saves the processor's state */
};

/* An instruction at work. */
struct work {
	struct insn_x86 in;
	struct height_state *s;
	struct height_step *out;
	bool told; /* calls leave the stack pointer as it is */
};

static const struct height_value anything = { .kind = HEIGHT_ANYTHING };

/* ---- registers and addresses ----------------------------------------------------------------- */

/* The tracked register, whole or a part of it; negative: none of them. */
static int tracked(ZydisRegister reg)
{
	struct insn_x86_register r = insn_x86_register(reg);

	if (r.class != INSN_X86_GENERAL && r.class != INSN_X86_HIGH)
		return -1;
	return r.number == 4   ? HEIGHT_SP
	       : r.number == 5 ? HEIGHT_FP
	       : r.number == 3 ? HEIGHT_LINK
			       : -1;
}

static bool is_register(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER;
}

static bool is_memory(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY;
}

static struct height_value read_register(const struct work *w, ZydisRegister reg)
{
	int n = tracked(reg);

	return n < 0 || insn_x86_register(reg).width != 8 ? anything : w->s->reg[n];
}

static struct height_value moved_by(struct height_value v, int64_t by)
{
	int64_t off = v.off + by;

	if (v.kind != HEIGHT_STACK || by < -MAX_OFF || by > MAX_OFF || off < -MAX_OFF ||
	    off > MAX_OFF)
		return anything;
	v.off = (int32_t)off;
	return v;
}

/* The address that a memory operand names. */
static struct height_value address(const struct work *w, const ZydisDecodedOperand *op)
{
	if (op->mem.index != ZYDIS_REGISTER_NONE || op->mem.segment == ZYDIS_REGISTER_FS ||
	    op->mem.segment == ZYDIS_REGISTER_GS)
		return anything;
	return moved_by(read_register(w, op->mem.base), op->mem.disp.value);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Memory below the stack pointer may be overwritten at any time. */
static void drop_below(struct height_state *s, int32_t off)
{
	for (size_t i = 0; i < HEIGHT_NR_SAVED; i++)
		if (s->saved[i].kind == HEIGHT_STACK && s->saved[i].off < off)
			s->saved[i] = anything;
	if (s->copy.off < off)
		height_state_drop_copy(s);
}

static void set_sp(struct work *w, struct height_value v)
{
	if (v.kind == HEIGHT_STACK && v.off > RETURN_AT) {
		w->out->does |= HEIGHT_RISES;
		v = anything;
	}
	if (v.kind != HEIGHT_STACK)
		v = anything;
	else
		drop_below(w->s, v.off);
	w->s->reg[HEIGHT_SP] = v;
}

/* It is what rbp has, as a frame pointer. */
static bool is_frame(const struct work *w, struct height_value what)
{
	const struct height_value *fp = &w->s->reg[HEIGHT_FP];

	return what.kind == HEIGHT_STACK && fp->kind == HEIGHT_STACK && what.off == fp->off;
}

static void set(struct work *w, int n, struct height_value v)
{
	if (n == HEIGHT_SP) {
		w->out->does |= HEIGHT_RESETS;
		set_sp(w, v);
	} else if (n >= 0) {
		w->out->does |= n == HEIGHT_FP ? HEIGHT_WRITES_FP : 0;
		w->s->reg[n] = v;
	}
}

/* Is it a place that stays: a word between the stack pointer and the return address? */
static bool may_save(const struct work *w, struct height_value at, int64_t len)
{
	const struct height_value *sp = &w->s->reg[HEIGHT_SP];

	return len == 8 && at.off % 8 == 0 && at.off < RETURN_AT && sp->kind == HEIGHT_STACK &&
	       at.off >= sp->off;
}

static bool overlaps(const struct height_value *saved, struct height_value at, int64_t len)
{
	return saved->kind == HEIGHT_STACK && at.off + len > saved->off &&
	       at.off < (int64_t)saved->off + 8;
}

static void store(struct work *w, struct height_value at, int64_t len, struct height_value what)
{
	struct height_value *saved = w->s->saved;
	int64_t end = at.off + len;

	if (at.kind != HEIGHT_STACK)
		return;
	if (end > RETURN_AT && at.off < 0)
		w->out->does |= HEIGHT_WRITES_OWN;
	for (size_t i = 0; i < HEIGHT_NR_SAVED; i++)
		if (overlaps(&saved[i], at, len))
			saved[i] = anything;
	if (overlaps(&w->s->copy, at, len))
		height_state_drop_copy(w->s);
	if (!may_save(w, at, len))
		return;
	/* The first copy is the one that stays longest. */
	if (what.kind == HEIGHT_OLD_FP && saved[HEIGHT_SAVED_FP].kind != HEIGHT_STACK)
		saved[HEIGHT_SAVED_FP] = at;
	if (what.kind == HEIGHT_OLD_LINK && saved[HEIGHT_SAVED_LINK].kind != HEIGHT_STACK)
		saved[HEIGHT_SAVED_LINK] = at;
	if (is_frame(w, what)) {
		w->s->copy = at;
		w->s->copied = what;
	}
}

static struct height_value load(struct work *w, struct height_value at)
{
	static const uint16_t kinds[HEIGHT_NR_SAVED] = { HEIGHT_OLD_FP, HEIGHT_OLD_LINK };
	const struct height_value *saved = w->s->saved;

	for (size_t i = 0; at.kind == HEIGHT_STACK && i < HEIGHT_NR_SAVED; i++)
		if (saved[i].kind == HEIGHT_STACK && saved[i].off == at.off)
			return (struct height_value){ .kind = kinds[i],
						      .assumed = saved[i].assumed | at.assumed };
	if (at.kind == HEIGHT_STACK && w->s->copy.kind == HEIGHT_STACK &&
	    w->s->copy.off == at.off) {
		struct height_value copied = w->s->copied;

		copied.assumed |= w->s->copy.assumed | at.assumed;
		w->out->does |= is_frame(w, copied) ? HEIGHT_RESTORES_FP : 0;
		return copied;
	}
	return anything;
}

static void push(struct work *w, int64_t len, struct height_value what)
{
	struct height_value at = moved_by(w->s->reg[HEIGHT_SP], -len);

	set_sp(w, at);
	if (at.kind == HEIGHT_STACK && at.off == 2 * RETURN_AT && what.kind == HEIGHT_OLD_FP)
		w->out->does |= HEIGHT_PUSHES_FP;
	store(w, at, len, what);
}

/* Take @len bytes off the stack, and say what they are. */
static struct height_value pop(struct work *w, int64_t len)
{
	struct height_value at = w->s->reg[HEIGHT_SP];
	struct height_value what = len == 8 ? load(w, at) : anything;

	if (at.kind == HEIGHT_STACK && at.off == RETURN_AT && len == 8) {
		w->out->does |= HEIGHT_POPS_RETURN | HEIGHT_RESETS;
		w->s->reg[HEIGHT_SP] = anything;
		return anything;
	}
	set_sp(w, moved_by(at, len));
	return what;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* The registers and memory that an instruction writes hold anything from then on. */
static void do_other(struct work *w)
{
	for (uint8_t i = 0; i < w->in.head.operand_count; i++) {
		const ZydisDecodedOperand *op = &w->in.op[i];
		int64_t len = op->size ? op->size / 8 : STATE_AREA;

		if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (is_memory(op) && op->mem.type != ZYDIS_MEMOP_TYPE_AGEN)
			store(w, address(w, op), len, anything);
		else if (is_register(op))
			set(w, tracked(op->reg.value), anything);
	}
}

static bool is_whole(const ZydisDecodedOperand *op)
{
	return is_register(op) && op->size == 64;
}

static void do_mov(struct work *w)
{
	const ZydisDecodedOperand *to = &w->in.op[0], *from = &w->in.op[1];
	int n = is_register(to) ? tracked(to->reg.value) : -1;

	if (is_memory(to) && is_whole(from))
		store(w, address(w, to), 8, read_register(w, from->reg.value));
	else if (is_whole(to) && is_whole(from) && n >= 0 && from->reg.value != to->reg.value)
		set(w, n, read_register(w, from->reg.value));
	else if (is_whole(to) && is_memory(from) && n >= 0)
		set(w, n, load(w, address(w, from)));
	else if (!is_whole(to) || !is_whole(from) || from->reg.value != to->reg.value)
		do_other(w);
	if (n == HEIGHT_FP && is_register(from) && from->reg.value == ZYDIS_REGISTER_RSP)
		w->out->does |= HEIGHT_FRAMES;
	if (n == HEIGHT_SP && is_register(from) && from->reg.value == ZYDIS_REGISTER_RBP)
		w->out->does |= HEIGHT_SP_FROM_FP;
}

/* The stack pointer by a number of bytes; another register holds anything then, but for rbp. */
static void do_add(struct work *w, int64_t sign)
{
	const ZydisDecodedOperand *to = &w->in.op[0], *by = &w->in.op[1];
	int n = is_whole(to) ? tracked(to->reg.value) : -1;

	if (n < 0 || by->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || by->imm.value.s < -MAX_OFF ||
	    by->imm.value.s > MAX_OFF)
		do_other(w);
	else if (n == HEIGHT_SP)
		set_sp(w, moved_by(w->s->reg[n], sign * by->imm.value.s));
	else
		set(w, n, moved_by(w->s->reg[n], sign * by->imm.value.s));
}

static void do_lea(struct work *w)
{
	const ZydisDecodedOperand *to = &w->in.op[0], *from = &w->in.op[1];
	int n = tracked(to->reg.value);

	if (!is_whole(to) || w->in.head.address_width != 64)
		do_other(w);
	else if (n == HEIGHT_SP && from->mem.base == ZYDIS_REGISTER_RSP)
		set_sp(w, address(w, from));
	else
		set(w, n, address(w, from));
	if (n == HEIGHT_SP && from->mem.base == ZYDIS_REGISTER_RBP)
		w->out->does |= HEIGHT_SP_FROM_FP;
}

static void do_push(struct work *w)
{
	const ZydisDecodedOperand *op = &w->in.op[0];

	push(w, w->in.head.operand_width / 8,
	     is_whole(op) ? read_register(w, op->reg.value) : anything);
}

static void do_pop(struct work *w)
{
	const ZydisDecodedOperand *op = &w->in.op[0];
	struct height_value what = pop(w, w->in.head.operand_width / 8);

	if (is_register(op))
		set(w, tracked(op->reg.value), is_whole(op) ? what : anything);
	else if (is_memory(op))
		store(w, address(w, op), op->size / 8, anything);
}

static void do_leave(struct work *w)
{
	set(w, HEIGHT_SP, w->s->reg[HEIGHT_FP]);
	w->out->does |= HEIGHT_SP_FROM_FP;
	set(w, HEIGHT_FP, pop(w, 8));
}

static void do_enter(struct work *w)
{
	int64_t frame = (int64_t)(w->in.op[0].imm.value.u & UINT16_MAX);

	push(w, 8, w->s->reg[HEIGHT_FP]);
	set(w, HEIGHT_FP, w->s->reg[HEIGHT_SP]);
	w->out->does |= HEIGHT_FRAMES;
	if (w->in.op[1].imm.value.u & 31 || w->in.head.operand_width != 64)
		set(w, HEIGHT_SP, anything);
	else
		set_sp(w, moved_by(w->s->reg[HEIGHT_SP], -frame));
}

/* The callee may change rbx: compilers of JITs have conventions of their own. */
static void do_call(struct work *w)
{
	struct height_state *s = w->s;

	if (s->reg[HEIGHT_SP].kind == HEIGHT_STACK && !w->told)
		s->reg[HEIGHT_SP].assumed = 1;
	s->reg[HEIGHT_LINK] = anything;
}

static void change(struct work *w)
{
	switch (w->in.head.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		do_mov(w);
		break;
	case ZYDIS_MNEMONIC_ADD:
		do_add(w, 1);
		break;
	case ZYDIS_MNEMONIC_SUB:
		do_add(w, -1);
		break;
	case ZYDIS_MNEMONIC_LEA:
		do_lea(w);
		break;
	case ZYDIS_MNEMONIC_PUSH:
		do_push(w);
		break;
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ:
		push(w, w->in.head.operand_width / 8, anything);
		break;
	case ZYDIS_MNEMONIC_POP:
		do_pop(w);
		break;
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
		pop(w, w->in.head.operand_width / 8);
		break;
	case ZYDIS_MNEMONIC_LEAVE:
		do_leave(w);
		break;
	case ZYDIS_MNEMONIC_ENTER:
		do_enter(w);
		break;
	default:
		do_other(w);
		break;
	}
}

/* ---- flow ------------------------------------------------------------------------------------ */

static uint8_t flow_of(const ZydisDecodedInstruction *i)
{
	bool direct = i->raw.imm[0].is_relative;

	switch (i->meta.category) {
	case ZYDIS_CATEGORY_RET:
		return i->mnemonic == ZYDIS_MNEMONIC_RET &&
				       i->meta.branch_type != ZYDIS_BRANCH_TYPE_FAR
			       ? HEIGHT_RETURN
			       : HEIGHT_STOP;
	case ZYDIS_CATEGORY_SYSRET:
		return HEIGHT_STOP;
	case ZYDIS_CATEGORY_CALL:
		return HEIGHT_CALL;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return direct ? HEIGHT_JUMP : HEIGHT_ELSEWHERE;
	case ZYDIS_CATEGORY_COND_BR:
		return direct ? HEIGHT_BRANCH : HEIGHT_NEXT;
	default:
		break;
	}
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
		return HEIGHT_STOP;
	default:
		return HEIGHT_NEXT;
	}
}

/* Does it change nothing of a state, whatever that is? */
static bool is_plain(const struct work *w)
{
	for (uint8_t i = 0; i < w->in.head.operand_count; i++) {
		const ZydisDecodedOperand *op = &w->in.op[i];

		if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (is_register(op) && tracked(op->reg.value) >= 0)
			return false;
		if (is_memory(op) && tracked(op->mem.base) >= 0)
			return false;
	}
	return w->out->flow != HEIGHT_CALL;
}

static void step(struct work *w, const uint8_t *code, size_t len, uint64_t vaddr)
{
	struct height_step *out = w->out;

	*out = (struct height_step){ .len = 1, .flow = HEIGHT_BAD };
	if (!insn_x86_decode(true, code, len, &w->in))
		return;
	out->len = w->in.head.length;
	out->flow = flow_of(&w->in.head);
	out->padding = w->in.head.mnemonic == ZYDIS_MNEMONIC_NOP;
	out->direct = w->in.head.raw.imm[0].is_relative;
	if (out->direct)
		out->target = insn_x86_target(&w->in.head, vaddr);
	if (out->flow == HEIGHT_CALL)
		do_call(w);
	else if (out->flow == HEIGHT_NEXT)
		change(w);
	/* The return address may be another one, or stand elsewhere. */
	if (out->does & HEIGHT_WRITES_OWN) {
		out->does |= HEIGHT_RESETS;
		memset(w->s, 0, sizeof(*w->s));
	}
}

void height_step(struct height *h, uint64_t off, struct height_state *s, struct height_step *out)
{
	struct work w;

	if (h->step[off].plain) {
		*out = h->step[off];
		return;
	}
	w.s = s;
	w.out = out;
	w.told = h->nr_told;
	step(&w, h->code + off, h->len - off, h->vaddr + off);
	out->plain = out->flow != HEIGHT_BAD && is_plain(&w);
	if (out->plain)
		h->step[off] = *out;
}
