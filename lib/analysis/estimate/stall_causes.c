/* SPDX-License-Identifier: BSD-2-Clause */
/* Which causes cannot be ruled out for the samples of an instruction. */
#include <elf.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stall_internal.h"

/* ---- new lines of memory ------------------------------------------------------------------- */

enum {
	LINE = 64,
	REGISTERS = 32,
	SCALE_MAX = 8,	      /* what an index is multiplied by, at most */
	BLOCKS_MAX = 1 << 16, /* in larger procedures nothing is told of this */
};

/* How many lines further a register is for such an instruction, at most one: it is another then. */
static double lines_moved(const struct insn *insn)
{
	return insn->step ? fmin(abs(insn->step), LINE) / LINE : 1;
}

static void count_moves(struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	double *moved = &w->moved[(size_t)w->component[b] * REGISTERS];

	for (uint32_t i = block->insn; i < block->insn + block->nr_insns; i++) {
		const struct insn *insn = &w->f->insns[i];

		for (uint32_t regs = (uint32_t)insn->writes.gpr; regs; regs &= regs - 1)
			moved[__builtin_ctz(regs)] += lines_moved(insn) * stall_runs(w, b);
	}
}

int stall_find_moves(struct stall_work *w)
{
	if (!w->in->edge || w->f->nr_blocks > BLOCKS_MAX)
		return 0;
	w->moved = calloc((size_t)w->f->nr_blocks + 1, REGISTERS * sizeof(*w->moved));
	if (!w->moved)
		return -ENOMEM;
	for (uint32_t b = 0; b < w->f->nr_blocks; b++)
		count_moves(w, b);
	return 0;
}

static double moves_of(const struct stall_work *w, uint32_t b, uint8_t reg)
{
	return reg < REGISTERS ? w->moved[(size_t)w->component[b] * REGISTERS + reg] : 0;
}

/* In how many of its executions the load at @insn of @b can have come to another line of memory: as
 * stall_chance. Where an address goes on by 8 bytes it is one in eight. */
static double stall_new_lines(const struct stall_work *w, uint32_t b, uint32_t insn)
{
	const struct insn *i = &w->f->insns[insn];
	double lines;

	if (!w->moved || stall_runs(w, b) <= 0)
		return 1;
	lines = w->fetched[b] + moves_of(w, b, i->base) + SCALE_MAX * moves_of(w, b, i->index);
	return fmax(fmin(lines / stall_runs(w, b), 1), STALL_CHANCE_LEAST);
}

enum {
	/* What has less than one of so many is not counted; fewer samples may be chance. */
	HARDLY = 50,
	FEW = 3,
};

/* ---- candidates ---------------------------------------------------------------------------- */

static bool is_call(const struct insn *insn)
{
	return insn->flow == INSN_CALL || insn->flow == INSN_INDIRECT_CALL;
}

/* What the instruction itself may wait for. */
static uint16_t by_kind(const struct insn *insn)
{
	uint16_t c = 0;

	if (insn->kinds & (INSN_ATOMIC | INSN_BARRIER | INSN_SERIALIZE))
		return 1 << STALL_SYNCHRONIZATION |
		       (insn->kinds & INSN_LOAD ? 1 << STALL_MEMORY : 0);
	if (insn->kinds & INSN_LOAD)
		c |= 1 << STALL_MEMORY;
	if (insn->kinds & INSN_STORE)
		c |= 1 << STALL_STORE;
	if (insn->kinds & (INSN_DIVIDE | INSN_FP_DIVIDE))
		c |= 1 << STALL_DIVISION;
	else if (insn->kinds & (INSN_MULTIPLY | INSN_FP))
		c |= 1 << STALL_ARITHMETIC;
	return c;
}

/* Is the instruction the first that is fetched from its cache line, on some way there? */
static bool begins_line(const struct stall_work *w, uint32_t b, uint32_t insn)
{
	const struct insn *i = &w->f->insns[insn];
	uint64_t last = i->vaddr + i->len - 1;

	if (insn == w->f->blocks[b].insn)
		return true;
	return (i[-1].vaddr + i[-1].len - 1) / LINE != last / LINE;
}

/* Why the instruction at index @insn of @b may have kept the one behind it waiting. */
static uint16_t causes_of(const struct stall_work *w, uint32_t b, uint32_t insn, double samples)
{
	uint16_t c = by_kind(&w->f->insns[insn]);

	/* Where it is a call, what was called shows that. */
	if (insn == w->f->blocks[b].insn && w->mispredicted[b] * HARDLY >= samples &&
	    !is_call(&w->f->insns[insn]))
		c |= 1 << STALL_BRANCH;
	if (!w->in_cache[b] && begins_line(w, b, insn))
		c |= 1 << STALL_FRONT_END;
	return c;
}

/* What instructions did that others may have waited for, and which one, if it is one. */
struct suspects {
	uint16_t causes;
	uint32_t insn;	  /* FLOW_OUTSIDE: none, or several */
	double new_lines; /* the greatest of its loads' */
};

static void suspect(const struct stall_work *w, uint32_t b, uint32_t insn, double samples,
		    struct suspects *s)
{
	uint16_t c = causes_of(w, b, insn, samples);

	if (!c)
		return;
	if (c & 1 << STALL_MEMORY)
		s->new_lines = fmax(s->new_lines, stall_new_lines(w, b, insn));
	s->insn = s->causes ? FLOW_OUTSIDE : insn;
	s->causes |= c;
}

/* Samples where the ways out of @b lead to. */
static double samples_behind(const struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	double sum = 0;

	for (uint32_t i = 0; i < block->nr_out; i++) {
		uint32_t to = w->f->edges[w->f->out_of[block->out + i]].to;

		if (to != FLOW_OUTSIDE)
			sum += w->in->samples[w->f->blocks[to].insn];
	}
	return sum;
}

/*
 * Does @b end in a comparison with memory that the processor may have joined with its branch into
 * one? What waits for such a load stands behind both. A branch that is not joined is done after the
 * comparison at the earliest, so that the comparison's wait stands on the branch.
 */
static bool ends_joined(const struct stall_work *w, uint32_t b)
{
	const struct flow_block *block = &w->f->blocks[b];
	uint32_t last = block->insn + block->nr_insns - 1;
	const struct insn *branch = &w->f->insns[last];
	double between = w->in->samples[last];

	return block->nr_insns > 1 && branch->flow == INSN_BRANCH &&
	       branch->reads.gpr & branch[-1].writes.gpr & INSN_FLAGS &&
	       branch[-1].kinds == INSN_LOAD &&
	       (between < FEW || between * HARDLY < samples_behind(w, b));
}

/* What was hardly gone brought hardly any. */
static bool hardly_gone(const struct stall_work *w, uint32_t edge, uint32_t to)
{
	return w->in->edge && w->in->edge[edge] * HARDLY < stall_runs(w, to);
}

/* The last instructions of the blocks that lead to @b. */
static void suspect_before(const struct stall_work *w, uint32_t b, double samples,
			   struct suspects *s)
{
	const struct flow_block *block = &w->f->blocks[b];

	for (uint32_t i = 0; i < block->nr_in; i++) {
		uint32_t edge = w->f->into[block->in + i], from = w->f->edges[edge].from;
		const struct flow_block *source;

		if (from == FLOW_OUTSIDE || hardly_gone(w, edge, b))
			continue;
		source = &w->f->blocks[from];
		suspect(w, from, source->insn + source->nr_insns - 1, samples, s);
	}
}

/* What the ways to @b themselves may have cost: a branch predicted wrongly, the load it goes by. */
static void suspect_ways(const struct stall_work *w, uint32_t b, double samples, struct suspects *s)
{
	const struct flow_block *block = &w->f->blocks[b];

	for (uint32_t i = 0; i < block->nr_in; i++) {
		uint32_t edge = w->f->into[block->in + i], from = w->f->edges[edge].from;
		const struct flow_block *source;

		if (from == FLOW_OUTSIDE || hardly_gone(w, edge, b) || !ends_joined(w, from))
			continue;
		source = &w->f->blocks[from];
		suspect(w, from, source->insn + source->nr_insns - 2, samples, s);
	}
	if (w->mispredicted[b] * HARDLY >= samples)
		s->causes |= 1 << STALL_BRANCH;
}

/* ---- what comes from outside --------------------------------------------------------------- */

/* Causes of a value that is not there yet; and all. */
enum {
	LATE_VALUE = 1 << STALL_MEMORY | 1 << STALL_DIVISION | 1 << STALL_ARITHMETIC,
	ANYTHING = (1 << STALL_NR_CAUSES) - 1,
};

struct convention {
	uint32_t machine;
	struct insn_registers arguments, results;
};

/* The C calling conventions, with the registers' numbers as flow.h has them. */
static const struct convention *convention_of(uint32_t machine)
{
	static const struct convention known[] = {
		/* rdi, rsi, rdx, rcx, r8, r9, xmm0-7; rax, rdx, xmm0-1, st */
		{ EM_X86_64, { 0x3c6, 0xff }, { 0x5, 1ull << 40 | 0x3 } },
		/* on the stack; eax, edx, st */
		{ EM_386, { 0, 0 }, { 0x5, 1ull << 40 } },
		/* x0-8, v0-7; x0-1, v0-3 */
		{ EM_AARCH64, { 0x1ff, 0xff }, { 0x3, 0xf } },
		/* a0-7, fa0-7; a0-1, fa0-1 */
		{ EM_RISCV, { 0x3fc00, 0x3fc00 }, { 0xc00, 0xc00 } },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].machine == machine)
			return &known[i];
	return NULL;
}

/* May control come to the first instruction of @b from outside, or back from a call? */
static void look_before(const struct stall_work *w, uint32_t b, bool *entry, bool *call)
{
	const struct flow_block *block = &w->f->blocks[b];

	for (uint32_t i = 0; i < block->nr_in; i++) {
		uint32_t from = w->f->edges[w->f->into[block->in + i]].from;
		const struct flow_block *source;

		if (from == FLOW_OUTSIDE) {
			*entry = true;
			continue;
		}
		source = &w->f->blocks[from];
		*call |= is_call(&w->f->insns[source->insn + source->nr_insns - 1]);
	}
}

/* Does control come to the instruction from outside, and may it be kept waiting by that? */
static bool waits_for_outside(const struct stall_work *w, uint32_t b, uint32_t insn, bool *comes)
{
	const struct insn_registers *reads = &w->f->insns[insn].reads;
	const struct convention *c = convention_of(w->in->machine);
	bool entry = false, call = false;
	struct insn_registers handed = { 0 };

	if (insn > w->f->blocks[b].insn)
		call = is_call(&w->f->insns[insn - 1]);
	else
		look_before(w, b, &entry, &call);
	*comes = entry || call;
	if (*comes && w->in->outside == STALL_PESSIMISTIC)
		return true;
	/* Nothing is agreed on for other entries than the procedure's start. */
	if (c && entry && b == w->f->entry)
		handed = c->arguments;
	if (c && call) {
		handed.gpr |= c->results.gpr;
		handed.vector |= c->results.vector;
	}
	return (reads->gpr & handed.gpr) || (reads->vector & handed.vector);
}

static uint16_t from_outside(const struct stall_work *w, uint32_t b, uint32_t insn)
{
	bool waits, comes;

	if (w->in->outside == STALL_OPTIMISTIC)
		return 0;
	waits = waits_for_outside(w, b, insn, &comes);
	if (comes && w->in->outside == STALL_PESSIMISTIC)
		return ANYTHING;
	if (!waits && insn > w->f->blocks[b].insn)
		waits = waits_for_outside(w, b, insn - 1, &comes);
	return waits ? LATE_VALUE : 0;
}

/* ---- all ----------------------------------------------------------------------------------- */

/* Of the samples on @insn: the one before it, else itself (where the machine shows that one). */
uint16_t stall_candidates(const struct stall_work *w, uint32_t b, uint32_t insn, uint32_t *culprit)
{
	double samples = w->in->samples[insn];
	struct suspects s = { .insn = FLOW_OUTSIDE };
	uint32_t first = w->f->blocks[b].insn;
	uint16_t c, outside;

	if (insn > first)
		suspect(w, b, insn - 1, samples, &s);
	else
		suspect_before(w, b, samples, &s);
	if (!s.causes)
		suspect(w, b, insn, samples, &s);
	/* The first two may retire together: then one of them shows for both. */
	if (insn == first || (insn == first + 1 && s.causes & 1 << STALL_BRANCH))
		suspect_ways(w, b, samples, &s);
	outside = from_outside(w, b, insn);
	c = s.causes | outside;
	w->new_lines[insn] = outside & 1 << STALL_MEMORY ? 1 : s.new_lines;
	*culprit = FLOW_OUTSIDE;
	if (__builtin_popcount(c) == 1 && s.insn != FLOW_OUTSIDE &&
	    c == by_kind(&w->f->insns[s.insn]) && c != 1 << STALL_STORE)
		*culprit = s.insn;
	return c;
}
