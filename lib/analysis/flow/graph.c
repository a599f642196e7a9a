/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks and edges of the code that was found. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flow_internal.h"

/* How far behind @vaddr an instruction may begin that was taken instead of the one there. */
enum { INSN_MAX = 16 };

static bool starts_block(const struct flow_walk *w, size_t i)
{
	const struct insn *insn = &w->insns[i], *before = i ? insn - 1 : NULL;
	const struct flow_part *p = flow_walk_part(w, insn->vaddr);

	if (!before || p->mark[insn->vaddr - p->vaddr] & FLOW_LEADER ||
	    before->vaddr + before->len != insn->vaddr || insn->vaddr == p->vaddr)
		return true;
	switch ((enum insn_flow)before->flow) {
	case INSN_PLAIN:
	case INSN_INDIRECT_CALL:
		return false;
	case INSN_CALL:
		return flow_never_returns(w, before);
	default:
		return true;
	}
}

static int make_blocks(const struct flow_walk *w, struct flow *f)
{
	struct flow_block *b = NULL;

	f->insns = malloc((w->nr_insns + 1) * sizeof(*f->insns));
	f->blocks = calloc(w->nr_insns + 1, sizeof(*f->blocks));
	if (!f->insns || !f->blocks)
		return -ENOMEM;
	if (w->nr_insns)
		memcpy(f->insns, w->insns, w->nr_insns * sizeof(*f->insns));
	f->nr_insns = (uint32_t)w->nr_insns;
	for (uint32_t i = 0; i < f->nr_insns; i++) {
		const struct insn *insn = &f->insns[i];

		if (starts_block(w, i)) {
			b = &f->blocks[f->nr_blocks++];
			b->vaddr = insn->vaddr;
			b->insn = i;
		}
		b->nr_insns++;
		b->end = insn->vaddr + insn->len;
		b->nr_calls += insn->flow == INSN_CALL || insn->flow == INSN_INDIRECT_CALL;
	}
	return 0;
}

/* The block that a way to @vaddr leads to. */
static uint32_t block_to(const struct flow_walk *w, const struct flow *f, uint64_t vaddr)
{
	const struct flow_part *p = flow_walk_part(w, vaddr);
	uint64_t off = p ? vaddr - p->vaddr : 0;

	if (!p)
		return FLOW_OUTSIDE;
	for (int i = 0; i < INSN_MAX && off < p->len; i++, off++)
		if (p->owner[off])
			return flow_block_at(f, f->insns[p->owner[off] - 1].vaddr);
	return FLOW_OUTSIDE;
}

struct edges {
	struct flow *f;
	size_t cap;
	int r;
};

static void add(struct edges *e, uint32_t from, uint32_t to, enum flow_edge_kind kind)
{
	struct flow *f = e->f;

	if (e->r < 0)
		return;
	e->r = base_grow(&f->edges, &e->cap, (size_t)f->nr_edges + 1, sizeof(*f->edges));
	if (e->r >= 0)
		f->edges[f->nr_edges++] =
			(struct flow_edge){ .from = from, .to = to, .kind = kind };
}

static void add_to(struct edges *e, const struct flow_walk *w, uint32_t from, uint64_t vaddr,
		   enum flow_edge_kind kind)
{
	uint32_t to = block_to(w, e->f, vaddr);

	add(e, from, to, to == FLOW_OUTSIDE ? FLOW_EXIT : kind);
}

static void add_table(struct edges *e, const struct flow_walk *w, uint32_t from, uint64_t vaddr)
{
	const struct flow_jump *j = flow_walk_jump(w, vaddr);
	uint32_t first = e->f->nr_edges;

	for (size_t i = 0; j && i < j->nr_targets; i++) {
		uint32_t to = block_to(w, e->f, j->targets[i]), k = first;

		while (k < e->f->nr_edges && e->f->edges[k].to != to)
			k++;
		if (k == e->f->nr_edges)
			add(e, from, to, to == FLOW_OUTSIDE ? FLOW_EXIT : FLOW_TABLE);
	}
	if (!j || !j->found)
		add(e, from, FLOW_OUTSIDE, FLOW_EXIT);
}

static void add_outgoing(struct edges *e, const struct flow_walk *w, uint32_t b)
{
	const struct flow_block *block = &e->f->blocks[b];
	const struct insn *last = &e->f->insns[block->insn + block->nr_insns - 1];

	switch ((enum insn_flow)last->flow) {
	case INSN_BRANCH:
		add_to(e, w, b, block->end, FLOW_FALL);
		add_to(e, w, b, last->target, FLOW_TAKEN);
		break;
	case INSN_JUMP:
		add_to(e, w, b, last->target, FLOW_TAKEN);
		break;
	case INSN_INDIRECT_JUMP:
		add_table(e, w, b, last->vaddr);
		break;
	case INSN_RETURN:
	case INSN_TRAP:
	case INSN_DATA:
		add(e, b, FLOW_OUTSIDE, FLOW_EXIT);
		break;
	case INSN_CALL:
	case INSN_PLAIN:
	case INSN_INDIRECT_CALL:
		if (flow_never_returns(w, last))
			add(e, b, FLOW_OUTSIDE, FLOW_EXIT);
		else
			add_to(e, w, b, block->end, FLOW_FALL);
		break;
	}
}

static int make_lists(struct flow *f)
{
	uint32_t in = 0, out = 0;

	free(f->into);
	free(f->out_of);
	f->into = calloc((size_t)f->nr_edges + 1, sizeof(*f->into));
	f->out_of = calloc((size_t)f->nr_edges + 1, sizeof(*f->out_of));
	if (!f->into || !f->out_of)
		return -ENOMEM;
	for (uint32_t b = 0; b < f->nr_blocks; b++)
		f->blocks[b].nr_in = f->blocks[b].nr_out = 0;
	for (uint32_t i = 0; i < f->nr_edges; i++) {
		if (f->edges[i].from != FLOW_OUTSIDE)
			f->blocks[f->edges[i].from].nr_out++;
		if (f->edges[i].to != FLOW_OUTSIDE)
			f->blocks[f->edges[i].to].nr_in++;
	}
	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		struct flow_block *block = &f->blocks[b];

		block->in = in;
		block->out = out;
		in += block->nr_in;
		out += block->nr_out;
		block->nr_in = block->nr_out = 0;
	}
	for (uint32_t i = 0; i < f->nr_edges; i++) {
		const struct flow_edge *e = &f->edges[i];

		if (e->from != FLOW_OUTSIDE) {
			struct flow_block *b = &f->blocks[e->from];

			f->out_of[b->out + b->nr_out++] = i;
		}
		if (e->to != FLOW_OUTSIDE) {
			struct flow_block *b = &f->blocks[e->to];

			f->into[b->in + b->nr_in++] = i;
		}
	}
	return 0;
}

static bool from_away(const struct flow_walk *w, const struct flow_block *b)
{
	const struct flow_part *p = flow_walk_part(w, b->vaddr);

	return p->mark[b->vaddr - p->vaddr] & FLOW_FROM_AWAY;
}

int flow_graph_make(const struct flow_walk *w, struct flow *f)
{
	struct edges e = { .f = f };
	int r = make_blocks(w, f);

	for (uint32_t b = 0; r >= 0 && b < f->nr_blocks; b++) {
		add_outgoing(&e, w, b);
		r = e.r;
	}
	for (uint32_t b = 0; r >= 0 && b < f->nr_blocks; b++) {
		if (from_away(w, &f->blocks[b]))
			add(&e, FLOW_OUTSIDE, b, FLOW_ENTRY);
		r = e.r;
	}
	f->entry = r < 0 ? FLOW_OUTSIDE : block_to(w, f, w->symbol->vaddr);
	f->overlapping = w->overlapping;
	f->cut = w->cut;
	return r < 0 ? r : make_lists(f);
}

void flow_graph_release(struct flow *f)
{
	free(f->insns);
	free(f->blocks);
	free(f->edges);
	free(f->into);
	free(f->out_of);
	memset(f, 0, sizeof(*f));
}

/* ---- what is entered and left in ways that are not known ----------------------------------- */

static bool has_in(const struct flow *f, uint32_t b, enum flow_edge_kind kind)
{
	for (uint32_t i = 0; i < f->blocks[b].nr_in; i++)
		if (f->edges[f->into[f->blocks[b].in + i]].kind == kind)
			return true;
	return false;
}

/* Who jumps into a cold part that was asked for itself is not known. */
static bool entered_anywhere(const struct flow_walk *w, const struct flow *f)
{
	const char *cold = strstr(w->symbol->name, ".cold");

	return f->nr_unresolved || (cold && (!cold[5] || cold[5] == '.'));
}

static void mark_unresolved(const struct flow_walk *w, struct flow *f)
{
	f->nr_indirect = (uint32_t)w->nr_jumps;
	for (size_t i = 0; i < w->nr_jumps; i++) {
		const struct flow_jump *j = &w->jumps[i];
		uint32_t b = flow_block_at(f, j->vaddr);

		if (j->found || j->tail_call || b == FLOW_OUTSIDE)
			continue;
		f->nr_unresolved++;
		f->blocks[b].unresolved = true;
	}
}

static void add_entries(const struct flow_walk *w, struct edges *e)
{
	struct flow *f = e->f;
	bool anywhere = entered_anywhere(w, f);

	for (uint32_t b = 0; b < f->nr_blocks; b++)
		if (!f->blocks[b].nr_in ||
		    (anywhere && !has_in(f, b, FLOW_FALL) && !has_in(f, b, FLOW_ENTRY)))
			add(e, FLOW_OUTSIDE, b, FLOW_ENTRY);
}

/* Mark all that leads to @b. @stack has room for all blocks. */
static void mark_before(const struct flow *f, uint32_t b, bool *marked, uint32_t *stack)
{
	uint32_t nr = 0;

	marked[b] = true;
	stack[nr++] = b;
	while (nr) {
		const struct flow_block *block = &f->blocks[stack[--nr]];

		for (uint32_t i = 0; i < block->nr_in; i++) {
			uint32_t from = f->edges[f->into[block->in + i]].from;

			if (from == FLOW_OUTSIDE || marked[from])
				continue;
			marked[from] = true;
			stack[nr++] = from;
		}
	}
}

/* From @b on, none of which leads out: a block with no way on but back. */
static uint32_t deepest(const struct flow *f, uint32_t b, bool *seen)
{
	for (;;) {
		const struct flow_block *block = &f->blocks[b];
		uint32_t next = FLOW_OUTSIDE;

		seen[b] = true;
		for (uint32_t i = 0; i < block->nr_out && next == FLOW_OUTSIDE; i++) {
			uint32_t to = f->edges[f->out_of[block->out + i]].to;

			if (to != FLOW_OUTSIDE && !seen[to])
				next = to;
		}
		if (next == FLOW_OUTSIDE)
			return b;
		b = next;
	}
}

static int add_exits(struct edges *e)
{
	struct flow *f = e->f;
	bool *leaves = calloc((size_t)f->nr_blocks + 1, sizeof(*leaves));
	bool *seen = calloc((size_t)f->nr_blocks + 1, sizeof(*seen));
	uint32_t *stack = calloc((size_t)f->nr_blocks + 1, sizeof(*stack));
	uint32_t nr = f->nr_edges;

	if (!leaves || !seen || !stack)
		e->r = -ENOMEM;
	for (uint32_t i = 0; e->r >= 0 && i < nr; i++)
		if (f->edges[i].to == FLOW_OUTSIDE && !leaves[f->edges[i].from])
			mark_before(f, f->edges[i].from, leaves, stack);
	for (uint32_t b = 0; e->r >= 0 && b < f->nr_blocks; b++) {
		uint32_t last;

		if (leaves[b])
			continue;
		last = deepest(f, b, seen);
		add(e, last, FLOW_OUTSIDE, FLOW_EXIT);
		mark_before(f, last, leaves, stack);
	}
	free(leaves);
	free(seen);
	free(stack);
	return e->r;
}

static int by_end(const void *a, const void *b)
{
	const struct flow_edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

int flow_graph_finish(const struct flow_walk *w, struct flow *f)
{
	struct edges e = { .f = f, .cap = f->nr_edges };
	int r;

	mark_unresolved(w, f);
	add_entries(w, &e);
	if (e.r >= 0)
		e.r = make_lists(f);
	r = e.r < 0 ? e.r : add_exits(&e);
	if (r < 0)
		return r;
	if (f->nr_edges)
		qsort(f->edges, f->nr_edges, sizeof(*f->edges), by_end);
	return make_lists(f);
}
