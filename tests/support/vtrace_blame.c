/* SPDX-License-Identifier: BSD-2-Clause */
#include "vtrace_blame.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insn.h"

/* Where what is unknown comes from: an instruction, or a register of the trace's beginning. */
struct origin {
	bool found;
	uint8_t reg, insn;
	const struct vtrace_code *code;
};

static struct origin regs[VTRACE_NR_REGS], flags, memory, stores[VTRACE_NR_STORES];

static void begin(void)
{
	for (unsigned int i = 0; i < VTRACE_NR_REGS; i++)
		regs[i] = (struct origin){ .reg = (uint8_t)i };
	flags = memory = (struct origin){ .reg = VTRACE_ZERO };
	memset(stores, 0, sizeof(stores));
}

static bool reads_flags(const struct vtrace_uop *u)
{
	return u->op == VTRACE_ADC || u->op == VTRACE_SBB || u->op == VTRACE_SBC ||
	       u->op == VTRACE_SELECT || u->op == VTRACE_SETCC || u->op == VTRACE_CCMP ||
	       u->op == VTRACE_JUMP_IF;
}

/* Of what a load read that was stored before. */
static bool from_store(struct vtrace_state *s, const struct vtrace_uop *u, struct origin *out)
{
	uint64_t addr = vtrace_address(s, u);

	for (unsigned int i = 0; i < 2; i++) {
		const struct vtrace_store *e =
			vtrace_store_find(s, (addr & ~7ull) + 8 * (uint64_t)i, false);

		if (e && e->unknown) {
			*out = stores[e - s->stores];
			return true;
		}
	}
	if (vtrace_is_lost(s, addr, u->w))
		*out = memory;
	return vtrace_is_lost(s, addr, u->w);
}

static struct origin source(struct vtrace_state *s, const struct vtrace_uop *u, struct origin here)
{
	if (s->unknown[u->a] && u->a != VTRACE_ZERO)
		return regs[u->a];
	if (u->b != VTRACE_IMM && s->unknown[u->b])
		return regs[u->b];
	if (reads_flags(u) && s->flags_unknown)
		return flags;
	if ((u->op == VTRACE_INS || u->op == VTRACE_LANE_SIGNS) && s->unknown[u->dst])
		return regs[u->dst];
	if (u->op == VTRACE_LOAD || u->op == VTRACE_LOADS)
		from_store(s, u, &here);
	return here;
}

static void note_store(struct vtrace_state *s, const struct vtrace_uop *u, uint64_t addr,
		       bool lost_before, struct origin here)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct vtrace_store *e =
			vtrace_store_find(s, (addr & ~7ull) + 8 * (uint64_t)i, false);

		if (e && s->unknown[u->dst])
			stores[e - s->stores] = regs[u->dst];
	}
	if (!lost_before && s->memory_unknown)
		memory = here;
}

/* One micro-op; false: the trace ends there. */
static bool step(const struct vtrace_memory *m, struct vtrace_state *s, const struct vtrace_uop *u,
		 const struct vtrace_code *c, unsigned int insn, struct origin *out)
{
	struct origin here = { true, VTRACE_ZERO, (uint8_t)insn, c }, from = source(s, u, here);
	uint64_t addr = vtrace_address(s, u);
	bool lost = s->memory_unknown;
	uint8_t before = s->flags_unknown;

	*out = from;
	if (vtrace_step((void *)m, s, u) != VTRACE_CONTINUES)
		return false;
	if (u->op == VTRACE_STORE || u->op == VTRACE_TAINT_MEMORY)
		note_store(s, u, addr, lost, from.found || from.reg != VTRACE_ZERO ? from : here);
	else if (s->unknown[u->dst])
		regs[u->dst] = from;
	if (s->flags_unknown & ~before || u->set)
		flags = from;
	return true;
}

struct blame vtrace_blame(const struct vtrace_blocks *b, const struct vtrace_memory *m,
			  struct vtrace_state *begun, const struct vtrace_state *done)
{
	struct blame r = { .pc = vtrace_pc(b, done) };
	struct origin from = { 0 };
	struct vtrace_visit v = { 0 };
	bool continues = true;

	begin();
	while (continues && vtrace_visit_read(done->words, done->nr_words, v.end, &v) > 0) {
		const struct vtrace_code *c = vtrace_blocks_get(b, v.id);
		int first = c ? vtrace_code_at(c, v.pc) : -1;
		unsigned int insn = (unsigned int)first;

		if (first < 0)
			break;
		begun->block_pc = v.pc - c->insns[first].offset;
		for (unsigned int u = c->insns[first].first; u < c->block.nr_uops && continues;
		     u++) {
			continues = step(m, begun, &c->uops[u], c, insn, &from);
			insn += c->uops[u].marks & VTRACE_LAST;
		}
	}
	r.found = from.found;
	if (from.code && from.found) {
		const struct vtrace_insn *in = &from.code->insns[from.insn];

		r.pc = from.code->block.pc + in->offset;
		r.len = in->len;
		memcpy(r.code, from.code->block.code + in->offset, in->len);
	}
	return r;
}

/* ---- counts ---------------------------------------------------------------------------------- */

enum { MAX_COUNTS = 1024, SHOWN = 12 };

static struct count {
	struct blame blame;
	unsigned long nr;
} counts[MAX_COUNTS];

static bool same(const struct blame *a, const struct blame *b)
{
	return a->found == b->found && (a->pc & 0xfff) == (b->pc & 0xfff) && a->len == b->len &&
	       !memcmp(a->code, b->code, sizeof(a->code));
}

void vtrace_blame_count(const struct blame *r)
{
	for (size_t i = 0; i < MAX_COUNTS; i++) {
		if (counts[i].nr && !same(&counts[i].blame, r))
			continue;
		counts[i].blame = *r;
		counts[i].nr++;
		return;
	}
}

static int by_count(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	return x->nr < y->nr ? 1 : x->nr > y->nr ? -1 : 0;
}

static void print_insn(const struct blame *r)
{
	struct insn_disasm *d;
	struct insn_line line;

	if (insn_disasm_open(EM_X86_64, &d, NULL) < 0)
		return;
	insn_disasm_one(d, r->code, r->len, r->pc, &line);
	printf("%s", line.text);
	for (unsigned int i = 0; i < r->len; i++)
		printf("%s%02x", i ? " " : "  #", r->code[i]);
	insn_disasm_close(d);
}

void vtrace_blame_print(unsigned long traces)
{
	qsort(counts, MAX_COUNTS, sizeof(*counts), by_count);
	for (size_t i = 0; i < SHOWN && counts[i].nr; i++) {
		const struct blame *r = &counts[i].blame;

		printf("%7.1f %% %#llx ", 100.0 * (double)counts[i].nr / (double)traces,
		       (unsigned long long)r->pc);
		if (r->found)
			print_insn(r);
		else
			printf("was unknown when the trace began");
		printf("\n");
	}
}
