/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace read again: its blocks run, and its loads get the values that were recorded. */
#include <errno.h>
#include <string.h>

#include "base.h"
#include "replay.h"

/* ---- what loads read ------------------------------------------------------------------------- */

/* The interpreter asks for memory: that is the next word of the trace, whatever the address is. */
static int next_word(void *ctx, void *to, size_t len, uint64_t addr)
{
	struct vtrace_replay *r = ctx;
	uint32_t nr = r->w->has & INSN_TRACE_TIMES ? 2 : 1, at = r->at + nr - 1;

	(void)addr;
	if (r->reads_end - r->at < nr) {
		r->torn = true;
		return -EFAULT;
	}
	if (nr == 2)
		r->ns += (uint32_t)r->words[r->at];
	r->at += nr;
	if (r->w->failed[at / 64] >> (at & 63) & 1)
		return -EFAULT;
	memcpy(to, &r->words[at], len);
	return 0;
}

/* ---- traces ---------------------------------------------------------------------------------- */

int vtrace_visit_read(const uint64_t *words, size_t nr, size_t at, struct vtrace_visit *out)
{
	uint64_t word, reads;

	if (at >= nr)
		return 0;
	word = words[at];
	reads = at + VTRACE_WORD_HEAD(word);
	if (reads + VTRACE_WORD_READS(word) > nr)
		return -DCPI_EFORMAT;
	*out = (struct vtrace_visit){
		.pc = words[at + 1],
		.id = VTRACE_WORD_ID(word),
		.generation = word & VTRACE_WORD_TAGGED ? (uint32_t)words[at + 2] : 0,
		.nr_insns = VTRACE_WORD_INSNS(word),
		.reads = (uint32_t)reads,
		.end = (uint32_t)reads + VTRACE_WORD_READS(word),
	};
	return 1;
}

int vtrace_code_at(const struct vtrace_code *c, uint64_t pc)
{
	uint64_t off = (pc - c->block.pc) % VTRACE_PAGE;

	for (int i = 0; i < c->block.nr_insns && c->insns[i].offset <= off; i++)
		if (c->insns[i].offset == off)
			return vtrace_where(pc - off) == vtrace_where(c->block.pc) ? i : -1;
	return -1;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool is_sound(const struct vtrace_code *c)
{
	const struct vtrace_block *b = &c->block;

	if (!b->nr_uops || b->nr_uops > VTRACE_BLOCK_UOPS || !b->nr_insns ||
	    b->nr_insns > VTRACE_BLOCK_INSNS || !b->len || b->len > VTRACE_BLOCK_BYTES)
		return false;
	for (unsigned int i = 0; i < b->nr_uops; i++)
		if (!vtrace_uop_is_sound(&c->uops[i]))
			return false;
	for (unsigned int i = 0; i < b->nr_insns; i++)
		if (c->insns[i].offset + c->insns[i].len > b->len ||
		    c->insns[i].class >= VTRACE_NR_CLASSES)
			return false;
	return true;
}

/* 1: the block of the next word is entered; 0: there is none. */
static int enter(struct vtrace_replay *r)
{
	struct vtrace_visit v;
	int ret = vtrace_visit_read(r->words, r->w->nr_words, r->at, &v), first;

	if (ret <= 0)
		return ret;
	r->code = r->get(r->ctx, v.id);
	first = r->code && is_sound(r->code) ? vtrace_code_at(r->code, v.pc) : -1;
	if (first < 0 || v.pc != r->s.pc || first + v.nr_insns > r->code->block.nr_insns)
		return -DCPI_EFORMAT;
	r->nr_done = (uint32_t)first;
	r->nr_insns = r->nr_done + v.nr_insns;
	r->uop = r->code->insns[first].first;
	r->at = v.reads;
	r->reads_end = v.end;
	r->s.block_pc = v.pc - r->code->insns[first].offset;
	r->s.pc = r->s.block_pc + r->code->block.len;
	return 1;
}

/* Behind a block: it ran to its end, or the trace ended in it. */
static int leave(struct vtrace_replay *r)
{
	bool last = r->reads_end == r->w->nr_words;

	if (!last && (r->nr_insns < r->code->block.nr_insns || r->at != r->reads_end))
		return -DCPI_EFORMAT;
	r->at = r->reads_end;
	r->code = NULL;
	return 0;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* Bytes behind those that are there already belong to the same operand. */
static void add_access(struct vtrace_access *a, const struct vtrace_access *more)
{
	if (!a->width) {
		*a = *more;
	} else if (a->has_addr && more->has_addr && more->addr == a->addr + a->width &&
		   a->width < 64) {
		if (a->width < 8) {
			a->value |= more->value << 8 * a->width;
			a->unknown |= (uint8_t)(more->unknown << a->width);
		}
		a->width += more->width;
	}
}

static bool is_load(const struct vtrace_uop *u)
{
	return u->op == VTRACE_LOAD || u->op == VTRACE_LOADS;
}

static int run_uop(struct vtrace_replay *r, const struct vtrace_uop *u, struct vtrace_entry *e)
{
	struct vtrace_memory m = { next_word, r };
	struct vtrace_state *s = &r->s;
	struct vtrace_access a = {
		.addr = vtrace_address(s, u),
		.width = u->w,
		.has_addr = !s->unknown[u->a] && !s->unknown[u->b],
	};
	int end;

	/* A store may be lost when the table is full. */
	if (u->op == VTRACE_STORE) {
		a.value = s->r[u->dst] & vtrace_mask(u->w);
		a.unknown = s->unknown[u->dst] & (uint8_t)vtrace_bytes(u->w, 0);
		add_access(&e->store, &a);
	}
	end = vtrace_step(&m, s, u);
	if (end == VTRACE_CONTINUES && is_load(u)) {
		a.value = s->r[u->dst] & vtrace_mask(u->w);
		a.unknown = u->dst == VTRACE_ZERO ? 0xff : s->unknown[u->dst];
		a.unknown &= (uint8_t)vtrace_bytes(u->w, 0);
		add_access(&e->load, &a);
	}
	return end;
}

static void set_operand(struct vtrace_entry *e)
{
	const struct vtrace_access *a = e->load.width ? &e->load : &e->store;
	const struct vtrace_access *now = a;

	if (e->load.has_addr && e->store.has_addr && e->load.addr == e->store.addr &&
	    e->store.width)
		now = &e->store;
	e->has_addr = a->width && a->has_addr;
	e->addr = e->has_addr ? a->addr : 0;
	e->addr_width = a->width;
	e->memory = now->value;
	e->memory_unknown = now->width ? now->unknown : 0xff;
}

/*
 * Set the state that the processor had before the next instruction; memory is then what its loads
 * read.
 */
static int fix(struct vtrace_replay *r)
{
	const struct vtrace_fix *fixes = (const struct vtrace_fix *)(r->words + r->w->nr_words);

	if (!(r->w->has & INSN_TRACE_STEPPED))
		return 0;
	for (; r->nr_fixed < r->w->nr_fixes && fixes[r->nr_fixed].before <= r->nr_ran;
	     r->nr_fixed++) {
		const struct vtrace_fix *f = &fixes[r->nr_fixed];

		if (f->reg == VTRACE_IMM || f->reg == VTRACE_ZERO)
			return -DCPI_EFORMAT;
		if (f->reg == VTRACE_FIX_FLAGS)
			vtrace_flags(&r->s, f->value & VTRACE_FLAGS, VTRACE_FLAGS, 0);
		else
			vtrace_put(&r->s, f->reg, f->value, 0);
	}
	vtrace_settle_memory(&r->s);
	return 0;
}

/* 1: it ran; 0: words end before it did. */
static int run_insn(struct vtrace_replay *r, struct vtrace_entry *e)
{
	const struct vtrace_block *b = &r->code->block;
	const struct vtrace_insn *insn = &r->code->insns[r->nr_done];
	const struct vtrace_uop *u;

	*e = (struct vtrace_entry){
		.pc = r->s.block_pc + insn->offset,
		.code = r->code,
		.index = (uint8_t)r->nr_done,
		.len = insn->len,
		.class = insn->class,
		.after = &r->s,
	};
	r->ns = 0;
	do {
		if (r->uop >= b->nr_uops)
			return -DCPI_EFORMAT;
		u = &r->code->uops[r->uop++];
		if (run_uop(r, u, e) != VTRACE_CONTINUES)
			return -DCPI_EFORMAT;
		if (r->torn)
			return r->reads_end == r->w->nr_words ? 0 : -DCPI_EFORMAT;
	} while (!(u->marks & VTRACE_LAST));
	r->nr_done++;
	r->nr_ran++;
	if (fix(r) < 0)
		return -DCPI_EFORMAT;
	/* In the middle of a block it can only be what comes next. */
	e->target = r->nr_done < b->nr_insns ? e->pc + e->len : r->s.pc;
	e->taken = e->target != e->pc + e->len;
	e->ns = r->ns;
	set_operand(e);
	return 1;
}

int vtrace_replay_init(struct vtrace_replay *r, const struct insn_trace *w, const uint64_t *words,
		       vtrace_block_fn *get, void *ctx)
{
	if (!(w->has & INSN_TRACE_VALUES) || w->nr_words > VTRACE_NR_WORDS ||
	    (w->has & INSN_TRACE_STEPPED && w->nr_fixes > VTRACE_NR_FIXES))
		return -DCPI_EFORMAT;
	r->w = w;
	r->words = words;
	r->get = get;
	r->ctx = ctx;
	r->code = NULL;
	r->at = r->reads_end = r->nr_done = r->nr_insns = r->uop = r->ns = 0;
	r->nr_ran = r->nr_fixed = 0;
	r->torn = false;
	/*
	 * Clear the state that vtrace_begin does not set, except stores and words, which are large.
	 */
	memset(r->s.r, 0, sizeof(r->s.r));
	memset(r->s.unknown, 0xff, sizeof(r->s.unknown));
	memset(r->s.unknown, 0, INSN_TRACE_REGS);
	memcpy(r->s.r, w->r, sizeof(w->r));
	r->s.flags = w->flags;
	r->s.flags_unknown = w->flags_unknown;
	r->s.pc = w->pc;
	vtrace_begin(&r->s, UINT16_MAX);
	return fix(r);
}

int vtrace_replay_next(struct vtrace_replay *r, struct vtrace_entry *out)
{
	int ret = 1;

	while (ret >= 0 && (!r->code || r->nr_done == r->nr_insns)) {
		if (r->code)
			ret = leave(r);
		if (ret >= 0)
			ret = enter(r);
		if (ret == 0)
			return 0;
	}
	if (ret > 0)
		ret = run_insn(r, out);
	/* The trace cannot continue behind it, for whatever reason. */
	if (ret <= 0) {
		r->code = NULL;
		r->at = r->w->nr_words;
	}
	return ret;
}
