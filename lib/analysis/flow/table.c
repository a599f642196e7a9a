/* SPDX-License-Identifier: BSD-2-Clause */
/* Where indirect jumps lead: tables of addresses or distances, and how many entries they have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "value.h"

enum {
	ENTRIES_MAX = 1 << 14,
	UNBOUNDED_MAX = 1 << 12, /* of a table whose length nothing tells */
	RANGE_DEPTH = 6,
};

/* ---- how large the index is ---------------------------------------------------------------- */

struct range {
	uint64_t lo, hi;
};

static enum insn_condition negated(enum insn_condition c)
{
	switch (c) {
	case INSN_ABOVE:
		return INSN_BELOW_EQUAL;
	case INSN_ABOVE_EQUAL:
		return INSN_BELOW;
	case INSN_BELOW:
		return INSN_ABOVE_EQUAL;
	case INSN_BELOW_EQUAL:
		return INSN_ABOVE;
	case INSN_OTHER:
		break;
	}
	return INSN_OTHER;
}

/* The comparison that the branch at the end of @b goes by: what is compared, and with what. */
static enum insn_condition comparison(struct flow_values *v, uint32_t b, struct flow_value *what,
				      uint64_t *with)
{
	const struct flow_block *block = &v->f->blocks[b];
	uint32_t last = block->insn + block->nr_insns - 1, k = last;
	const struct insn *insn = &v->f->insns[last];
	struct insn_op op;
	enum insn_condition c;

	if (insn->flow != INSN_BRANCH)
		return INSN_OTHER;
	flow_value_op(v, last, &op);
	c = flow_value_condition(v, last, &op);
	if (c == INSN_OTHER)
		return INSN_OTHER;
	while (!op.compare) {
		if (k == block->insn)
			return INSN_OTHER;
		k--;
		if (!(v->f->insns[k].writes.gpr & INSN_FLAGS))
			continue;
		flow_value_op(v, k, &op);
		if (!op.compare)
			return INSN_OTHER;
	}
	*with = (uint64_t)op.value;
	return flow_value_compared(v, b, k, &op, what, with, &c) ? c : INSN_OTHER;
}

/* A comparison with -6, of 32 bits or 64. */
static int64_t as_negative(uint64_t with)
{
	return with >> 31 == 1 ? (int32_t)(uint32_t)with : (int64_t)with;
}

/* From "what is below with" to the range of @of; where both stand for the same number + c. */
static bool limit(const struct flow_value *what, const struct flow_value *of, uint64_t with,
		  enum insn_condition c, struct range *out)
{
	uint64_t apart = of->c - what->c;
	int64_t least = as_negative(with) + (c == INSN_ABOVE);

	if (c == INSN_OTHER || what->node < 0 || of->node != what->node || of->scale != 1 ||
	    what->scale != 1)
		return false;
	if (c == INSN_ABOVE || c == INSN_ABOVE_EQUAL) { /* from least to -1 */
		out->lo = apart + (uint64_t)least;
		out->hi = apart - 1;
		return least < 0 && least > -ENTRIES_MAX;
	}
	if (c == INSN_BELOW && !with--)
		return false;
	out->lo = apart;
	out->hi = apart + with;
	return with < ENTRIES_MAX;
}

/* The range of @of at the start of @b, by the branches that lead there. */
static bool range_at(struct flow_values *v, uint32_t b, const struct flow_value *of, int depth,
		     struct range *out)
{
	const struct flow_block *block = &v->f->blocks[b];
	bool any = false;

	if (depth > RANGE_DEPTH)
		return false;
	for (uint32_t i = 0; i < block->nr_in; i++) {
		const struct flow_edge *e = &v->f->edges[v->f->into[block->in + i]];
		struct flow_value what, here = *of;
		struct range r;
		uint64_t with;
		enum insn_condition c;

		if (e->from == FLOW_OUTSIDE || v->budget < 0)
			return false;
		if (!flow_value_before(v, e->from, b, &here))
			return false;
		c = comparison(v, e->from, &what, &with);
		if (e->kind == FLOW_FALL)
			c = negated(c);
		if (!limit(&what, &here, with, c, &r)) {
			if (flow_value_made_in(v, &here, e->from) ||
			    !range_at(v, e->from, &here, depth + 1, &r))
				return false;
		}
		if (any && r.lo != out->lo)
			return false;
		if (!any || r.hi - r.lo > out->hi - out->lo)
			*out = r;
		any = true;
	}
	return any;
}

/* ---- reading the table --------------------------------------------------------------------- */

struct table {
	uint64_t at; /* its first entry */
	uint64_t stride;
	uint8_t size;
	bool sign;
	uint64_t base; /* target = base + entry * times */
	int64_t times;
	size_t nr;
	bool sure; /* nr is known; else it ends where it makes no more sense */
};

static bool is_pointers(const struct table *t)
{
	return t->size == 8 && !t->base && t->times == 1;
}

static uint64_t entry(const struct table *t, const uint8_t *bytes)
{
	uint64_t v = 0;

	for (uint8_t i = 0; i < t->size; i++)
		v |= (uint64_t)bytes[i] << (8 * i);
	if (t->sign && t->size < 8 && v >> (8 * t->size - 1))
		v |= UINT64_MAX << (8 * t->size);
	return t->base + v * (uint64_t)t->times;
}

static bool read_target(struct flow_walk *w, const struct table *t, size_t i, uint64_t *target)
{
	uint64_t at = t->at + i * t->stride;
	uint8_t bytes[8];

	if (is_pointers(t) && w->source->pointer &&
	    w->source->pointer(w->source->context, at, target) == 0)
		return true;
	if (w->source->bytes(w->source->context, at, bytes, t->size) < t->size)
		return false;
	*target = entry(t, bytes);
	return true;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static size_t distinct(uint64_t *v, size_t nr)
{
	size_t n = 0;

	if (nr)
		qsort(v, nr, sizeof(*v), by_number);
	for (size_t i = 0; i < nr; i++)
		if (!n || v[n - 1] != v[i])
			v[n++] = v[i];
	return n;
}

static bool begins_procedure(const struct flow_walk *w, uint64_t vaddr)
{
	const struct image_symbol *s =
		w->source->symbol_at ? w->source->symbol_at(w->source->context, vaddr) : NULL;

	return s && s->vaddr == vaddr;
}

/* A table that stands among the code is none. */
static void mark_table(struct flow_walk *w, const struct table *t, size_t nr)
{
	for (size_t i = 0; i < nr * t->stride; i++) {
		struct flow_part *p = flow_walk_part(w, t->at + i);

		if (!p)
			return;
		if (!p->owner[t->at + i - p->vaddr])
			p->mark[t->at + i - p->vaddr] |= FLOW_NO_CODE;
	}
}

/* Where instructions begin when one follows on the other: compilers put no data among them. */
static void sweep(struct flow_walk *w, struct flow_part *p)
{
	struct insn insn;

	for (uint64_t off = 0; off < p->len; off += insn.len) {
		insn_decode(w->d, p->code + off, p->len - off, p->vaddr + off, &insn);
		if (insn.flow != INSN_DATA && !(insn.kinds & INSN_PADDING))
			p->mark[off] |= FLOW_IN_ROW;
	}
	p->swept = true;
}

/*
 * Where a table ends that nothing tells the length of: not where an instruction begins. For a
 * distance may lead anywhere, and addresses do not end up in the middle of one.
 */
static bool is_plausible(struct flow_walk *w, uint64_t target)
{
	struct flow_part *p = flow_walk_part(w, target);

	if (!p)
		return false;
	if (!p->swept)
		sweep(w, p);
	return p->mark[target - p->vaddr] & FLOW_IN_ROW;
}

/* Returns 1 where the table gives the targets, 0 where it makes no sense. */
static int take_table(struct flow_walk *w, struct flow_jump *j, const struct table *t)
{
	uint64_t *targets = calloc(t->nr + 1, sizeof(*targets)), target;
	size_t nr = 0;
	int r = targets ? 1 : -ENOMEM;

	while (r > 0 && nr < t->nr && read_target(w, t, nr, &target)) {
		r = flow_walk_reaches(w, target);
		if (!nr && !r && target)
			j->tail_call = j->tail_call && begins_procedure(w, target);
		if (r > 0 && !t->sure && !is_plausible(w, target))
			break;
		if (r > 0)
			targets[nr++] = target;
	}
	if (r >= 0)
		r = nr > 1 && (nr == t->nr || !t->sure);
	if (r > 0) {
		mark_table(w, t, nr);
		nr = distinct(targets, nr);
	}
	for (size_t i = 0; r > 0 && i < nr; i++) {
		int added = flow_walk_add(w, targets[i], 0);

		r = added < 0 ? added : 1;
	}
	if (r > 0) {
		j->tail_call = false;
		free(j->targets);
		j->targets = targets;
		j->nr_targets = nr;
		j->found = true;
		return 1;
	}
	free(targets);
	return r;
}

/* ---- recognizing it ------------------------------------------------------------------------ */

/* Loaded from base + index * stride, where the base is a number. */
static bool is_table(const struct flow_values *v, const struct flow_value *target, struct table *t,
		     struct flow_value *index)
{
	const struct flow_node *load = target->node >= 0 ? &v->nodes[target->node] : NULL;

	if (!load || !load->load || load->address.node < 0)
		return false;
	*t = (struct table){ .at = load->address.c,
			     .stride = (uint64_t)load->address.scale,
			     .size = load->size,
			     .sign = load->sign,
			     .base = target->c,
			     .times = target->scale };
	*index = (struct flow_value){ .node = load->address.node, .scale = 1 };
	index->max = load->address.max;
	return t->stride == t->size;
}

static int try_jump(struct flow_walk *w, struct flow_values *v, uint32_t b, struct flow_jump *j)
{
	const struct flow_block *block = &v->f->blocks[b];
	struct flow_value target, index;
	struct range range = { 0, 0 };
	struct table t;

	flow_values_start(v);
	flow_value_target(v, b, block->insn + block->nr_insns - 1, &target);
	j->tail_call = flow_value_is_routine(v, b, &target);
	if (!is_table(v, &target, &t, &index))
		return 0;
	t.sure = range_at(v, b, &index, 0, &range);
	if (!t.sure)
		range.lo = 0;
	if (!t.sure && index.max < ENTRIES_MAX)
		range.hi = index.max;
	else if (!t.sure && is_pointers(&t))
		range.hi = UNBOUNDED_MAX - 1;
	else if (!t.sure)
		return 0;
	t.at += range.lo * t.stride;
	t.nr = (size_t)(range.hi - range.lo + 1);
	return take_table(w, j, &t);
}

int flow_tables_find(struct flow_walk *w, const struct flow *f)
{
	struct flow_values v = { .w = w, .f = f };
	int found = 0, r = 0;

	for (size_t i = 0; r >= 0 && i < w->nr_jumps; i++) {
		uint32_t b = flow_block_at(f, w->jumps[i].vaddr);

		if (w->jumps[i].found || b == FLOW_OUTSIDE)
			continue;
		r = try_jump(w, &v, b, &w->jumps[i]);
		found += r > 0;
	}
	return r < 0 ? r : found;
}
