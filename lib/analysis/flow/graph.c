/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks and edges of the code that was found, and which of them run equally often. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph_internal.h"

/* ---- classes ------------------------------------------------------------------------------- */

/*
 * The graph without directions: block b is an arc from node 2b (its start) to 2b + 1 (its end),
 * edges are arcs between these, and all that is outside is one node.
 */
struct arcs {
	const struct flow *f;
	uint32_t nr_nodes, nr; /* arcs: the blocks, then the edges */
	uint32_t *first, *at;  /* arcs of node n: at[first[n]] to at[first[n + 1]] */
	uint64_t *number;      /* by arc */
	uint32_t *order;       /* nodes as they were reached */
	uint32_t *parent;      /* by node: the arc that it was reached by */
	bool *seen;	       /* by node */
	bool *done;	       /* by arc */
};

static uint32_t outside(const struct arcs *a)
{
	return 2 * a->f->nr_blocks;
}

static void ends(const struct arcs *a, uint32_t arc, uint32_t end[2])
{
	const struct flow_edge *e;

	if (arc < a->f->nr_blocks) {
		end[0] = 2 * arc;
		end[1] = 2 * arc + 1;
		return;
	}
	e = &a->f->edges[arc - a->f->nr_blocks];
	end[0] = e->from == FLOW_OUTSIDE ? outside(a) : 2 * e->from + 1;
	end[1] = e->to == FLOW_OUTSIDE ? outside(a) : 2 * e->to;
}

static int open_arcs(struct arcs *a)
{
	a->nr_nodes = 2 * a->f->nr_blocks + 1;
	a->nr = a->f->nr_blocks + a->f->nr_edges;
	a->first = calloc((size_t)a->nr_nodes + 2, sizeof(*a->first));
	a->at = calloc(2 * (size_t)a->nr + 1, sizeof(*a->at));
	a->number = calloc((size_t)a->nr + 1, sizeof(*a->number));
	a->order = calloc(a->nr_nodes, sizeof(*a->order));
	a->parent = calloc(a->nr_nodes, sizeof(*a->parent));
	a->seen = calloc(a->nr_nodes, sizeof(*a->seen));
	a->done = calloc((size_t)a->nr + 1, sizeof(*a->done));
	return a->first && a->at && a->number && a->order && a->parent && a->seen && a->done
		       ? 0
		       : -ENOMEM;
}

static void release(struct arcs *a)
{
	free(a->first);
	free(a->at);
	free(a->number);
	free(a->order);
	free(a->parent);
	free(a->seen);
	free(a->done);
}

/* first[n + 1] counts up to the start of n's arcs, then, as they are put in, to their end. */
static void list_arcs(struct arcs *a)
{
	uint32_t end[2];

	for (uint32_t i = 0; i < a->nr; i++) {
		ends(a, i, end);
		a->first[end[0] + 2]++;
		a->first[end[1] + 2]++;
	}
	for (uint32_t n = 2; n <= a->nr_nodes; n++)
		a->first[n] += a->first[n - 1];
	for (uint32_t i = 0; i < a->nr; i++) {
		ends(a, i, end);
		a->at[a->first[end[0] + 1]++] = i;
		a->at[a->first[end[1] + 1]++] = i;
	}
}

/* The same numbers in every run (SplitMix64). */
static uint64_t random64(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Any spanning tree will do. Returns how many nodes it has. */
static uint32_t span(struct arcs *a)
{
	uint32_t nr = 0, end[2];

	a->seen[outside(a)] = true;
	a->parent[outside(a)] = UINT32_MAX;
	a->order[nr++] = outside(a);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t n = a->order[i];

		for (uint32_t k = a->first[n]; k < a->first[n + 1]; k++) {
			uint32_t other;

			ends(a, a->at[k], end);
			other = end[0] == n ? end[1] : end[0];
			if (a->seen[other])
				continue;
			a->seen[other] = true;
			a->parent[other] = a->at[k];
			a->done[a->at[k]] = true; /* of the tree */
			a->order[nr++] = other;
		}
	}
	return nr;
}

static void give_numbers(struct arcs *a, uint32_t nr_reached)
{
	uint64_t state = 0x64637069; /* "dcpi" */

	for (uint32_t i = 0; i < a->nr; i++)
		if (!a->done[i])
			a->number[i] = random64(&state);
	/* A tree's arc to a node is crossed by what is crossed below, and what ends there. */
	while (nr_reached-- > 1) {
		uint32_t n = a->order[nr_reached], own = a->parent[n];

		for (uint32_t k = a->first[n]; k < a->first[n + 1]; k++)
			if (a->at[k] != own)
				a->number[own] ^= a->number[a->at[k]];
	}
}

struct numbered {
	uint64_t number;
	uint32_t arc;
};

static int by_number(const void *pa, const void *pb)
{
	const struct numbered *a = pa, *b = pb;

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->arc > b->arc) - (a->arc < b->arc);
}

static void set_class(struct flow *f, uint32_t arc, uint32_t eq_class)
{
	if (arc < f->nr_blocks)
		f->blocks[arc].eq_class = eq_class;
	else
		f->edges[arc - f->nr_blocks].eq_class = eq_class;
}

/* Classes are counted in the order of their first block or edge. */
static int name_classes(struct flow *f, const struct arcs *a)
{
	struct numbered *v = calloc((size_t)a->nr + 1, sizeof(*v));
	uint32_t *class_of = calloc((size_t)a->nr + 1, sizeof(*class_of));
	int r = v && class_of ? 0 : -ENOMEM;

	for (uint32_t i = 0; r >= 0 && i < a->nr; i++)
		v[i] = (struct numbered){ a->number[i], i };
	if (r >= 0)
		qsort(v, a->nr, sizeof(*v), by_number);
	for (uint32_t i = 0; r >= 0 && i < a->nr; i++) {
		bool same = i && v[i].number == v[i - 1].number;

		class_of[v[i].arc] = same ? class_of[v[i - 1].arc] : v[i].arc;
	}
	f->nr_classes = 0;
	/* The first of a class comes before the others: by_number puts it there. */
	for (uint32_t i = 0; r >= 0 && i < a->nr; i++) {
		uint32_t leader = class_of[i];

		if (leader == i)
			v[i].arc = f->nr_classes++;
		set_class(f, i, v[leader].arc);
	}
	free(v);
	free(class_of);
	return r;
}

static int find_classes(struct flow *f)
{
	struct arcs a = { .f = f };
	int r = open_arcs(&a);

	if (r >= 0) {
		list_arcs(&a);
		give_numbers(&a, span(&a));
		r = name_classes(f, &a);
	}
	release(&a);
	return r;
}

/* ---- blocks and edges ---------------------------------------------------------------------- */

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

static void release_graph(struct flow *f)
{
	free(f->insns);
	free(f->blocks);
	free(f->edges);
	free(f->into);
	free(f->out_of);
	memset(f, 0, sizeof(*f));
}

int flow_graph_make(const struct flow_walk *w, struct flow *f)
{
	struct edges e = { .f = f };
	int r;

	release_graph(f);
	r = make_blocks(w, f);
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
	r = make_lists(f);
	return r < 0 ? r : find_classes(f);
}

void flow_free(struct flow *f)
{
	if (f)
		release_graph(f);
	free(f);
}

uint32_t flow_block_at(const struct flow *f, uint64_t vaddr)
{
	uint32_t lo = 0, hi = f->nr_blocks;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (f->blocks[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && vaddr < f->blocks[lo - 1].end ? lo - 1 : FLOW_OUTSIDE;
}

const struct insn *flow_insn_at(const struct flow *f, uint64_t vaddr)
{
	uint32_t b = flow_block_at(f, vaddr), lo, hi;

	if (b == FLOW_OUTSIDE)
		return NULL;
	lo = f->blocks[b].insn;
	hi = lo + f->blocks[b].nr_insns;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (f->insns[mid].vaddr <= vaddr)
			lo = mid;
		else
			hi = mid;
	}
	return &f->insns[lo];
}
