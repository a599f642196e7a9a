/* SPDX-License-Identifier: BSD-2-Clause */
/* The targets of indirect jumps: tables of addresses or distances, and the number of their
 * entries. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tables.h"

enum { FLOW_NODES = 128 };

/*
 * The value of a register at a place, as far as the instructions before determine it: a number, or
 * a multiple of an unknown value (a node) plus a number. Arithmetic wraps at 64 bits. Arithmetic in
 * 32 bits is not modelled, as a table's targets are checked against the procedure in any case.
 */
struct flow_value {
	uint64_t c;
	int node; /* -1: no node, the value is c; -2: not known at all */
	int64_t scale;
	uint64_t max; /* upper bound of the node; UINT64_MAX: not known */
};

/* An unknown value: the result of an instruction, the content of a register at the start of a
 * block, or a value loaded from memory. */
struct flow_node {
	bool load, at_start;
	uint8_t reg;
	uint32_t where; /* instruction or block */
	uint8_t size;
	bool sign;
	struct flow_value address;
};

struct flow_values {
	const struct flow_walk *w;
	const struct flow *f;
	struct flow_node nodes[FLOW_NODES]; /* each value has one node */
	int nr_nodes;
	long budget; /* steps that are left; below 0: the analysis stops */
};

enum {
	BUDGET = 20000,
	DEPTH_MAX = 24,
	UNKNOWN = -2,
	EPILOGUE_MAX = 64, /* instructions looked at before a jump that may be a tail call */
};

/* Clears the values for the next jump. */
static void flow_values_start(struct flow_values *v)
{
	v->nr_nodes = 0;
	v->budget = BUDGET;
}

static struct flow_value number(uint64_t c)
{
	return (struct flow_value){ .c = c, .node = -1, .scale = 1, .max = UINT64_MAX };
}

static struct flow_value unknown(void)
{
	return (struct flow_value){ .node = UNKNOWN, .scale = 1, .max = UINT64_MAX };
}

static bool same_value(const struct flow_value *a, const struct flow_value *b)
{
	return a->c == b->c && a->node == b->node && (a->node < 0 || a->scale == b->scale);
}

static bool same_node(const struct flow_node *a, const struct flow_node *b)
{
	if (a->load != b->load)
		return false;
	if (a->load)
		return a->size == b->size && a->sign == b->sign &&
		       same_value(&a->address, &b->address);
	return a->reg == b->reg && a->where == b->where && a->at_start == b->at_start;
}

static struct flow_value node(struct flow_values *v, const struct flow_node *n, uint64_t max)
{
	int i = 0;

	while (i < v->nr_nodes && !same_node(&v->nodes[i], n))
		i++;
	if (i == FLOW_NODES)
		return unknown();
	if (i == v->nr_nodes)
		v->nodes[v->nr_nodes++] = *n;
	return (struct flow_value){ .node = i, .scale = 1, .max = max };
}

static struct flow_value made(struct flow_values *v, uint8_t reg, uint32_t insn, uint64_t max)
{
	return node(v, &(struct flow_node){ .reg = reg, .where = insn }, max);
}

static struct flow_value sum(struct flow_value a, struct flow_value b, int64_t scale)
{
	if (a.node == UNKNOWN || b.node == UNKNOWN || (a.node >= 0 && b.node >= 0))
		return unknown();
	a.c += b.c * (uint64_t)scale;
	if (b.node < 0)
		return a;
	a.node = b.node;
	a.scale = b.scale * scale;
	a.max = b.max;
	return a;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static const uint8_t *code_of(const struct flow_values *v, uint32_t i, size_t *len)
{
	uint64_t vaddr = v->f->insns[i].vaddr;
	const struct flow_part *p = flow_walk_part(v->w, vaddr);

	*len = (size_t)(p->len - (vaddr - p->vaddr));
	return p->code + (vaddr - p->vaddr);
}

/* Decodes the operands of the instruction at index @i. */
static void flow_value_op(struct flow_values *v, uint32_t i, struct insn_op *op)
{
	size_t len;
	const uint8_t *code = code_of(v, i, &len);

	insn_decode_op(v->w->d, code, len, v->f->insns[i].vaddr, op);
}

static enum insn_condition flow_value_condition(struct flow_values *v, uint32_t i,
						struct insn_op *op)
{
	size_t len;
	const uint8_t *code = code_of(v, i, &len);

	return insn_decode_condition(v->w->d, code, len, op);
}

/* ---- registers ------------------------------------------------------------------------------- */

static struct flow_value value_of(struct flow_values *v, uint32_t b, uint32_t i, uint8_t reg,
				  int depth);

static struct flow_value operand(struct flow_values *v, uint32_t b, uint32_t i, uint8_t reg,
				 int depth)
{
	return reg == INSN_NO_REGISTER ? number(0) : value_of(v, b, i, reg, depth + 1);
}

/* A number of @size bytes, extended to a register as the instruction does. */
static uint64_t extended(uint64_t c, uint8_t size, bool sign)
{
	unsigned int drop = 64 - 8u * size;

	if (size >= 8)
		return c;
	return sign ? (uint64_t)((int64_t)(c << drop) >> drop) : c << drop >> drop;
}

static void bound(struct flow_value *value, uint64_t max)
{
	if (value->node >= 0 && value->scale == 1 && max >= value->c && max - value->c < value->max)
		value->max = max - value->c;
}

/* A load followed by a sign extension is a load with its sign. */
static struct flow_value with_sign(struct flow_values *v, const struct insn_op *op,
				   struct flow_value value)
{
	struct flow_node n;

	if (value.node < 0 || !op->sign || value.c || value.scale != 1)
		return value;
	n = v->nodes[value.node];
	if (!n.load || n.size != op->size || n.sign)
		return value;
	n.sign = true;
	return node(v, &n, UINT64_MAX);
}

/* The value that @op, the instruction at @i, writes, loads or jumps to. */
static struct flow_value result_of(struct flow_values *v, uint32_t b, uint32_t i,
				   const struct insn_op *op, int depth)
{
	struct flow_value out = operand(v, b, i, op->a, depth);

	out = sum(out, operand(v, b, i, op->b, depth), op->scale);
	out = sum(out, number((uint64_t)op->disp), 1);
	if (out.node == UNKNOWN)
		return out;
	if (op->load)
		out = node(
			v,
			&(struct flow_node){
				.load = true, .size = op->size, .sign = op->sign, .address = out },
			UINT64_MAX);
	else if (out.node == -1)
		out.c = extended(out.c, op->size, op->sign);
	else
		out = with_sign(v, op, out);
	bound(&out, op->max);
	return sum(out, operand(v, b, i, op->plus, depth), 1);
}

/* Index of the last instruction before @i in @b that changes @reg; UINT32_MAX: none. */
static uint32_t last_change(struct flow_values *v, uint32_t b, uint32_t i, uint8_t reg)
{
	uint64_t calls = insn_call_writes(v->w->d);

	while (i-- > v->f->blocks[b].insn) {
		const struct insn *insn = &v->f->insns[i];

		v->budget--;
		if (insn->writes.gpr >> reg & 1)
			return i;
		if ((insn->flow == INSN_CALL || insn->flow == INSN_INDIRECT_CALL) &&
		    calls >> reg & 1)
			return i;
	}
	return UINT32_MAX;
}

static struct flow_value change(struct flow_values *v, uint32_t b, uint32_t i, uint8_t reg,
				int depth)
{
	struct flow_value out = unknown();
	struct insn_op op;

	flow_value_op(v, i, &op);
	if (op.dst == reg && op.known)
		out = result_of(v, b, i, &op, depth);
	if (out.node == UNKNOWN)
		out = made(v, reg, i, op.dst == reg ? op.max : UINT64_MAX);
	return out;
}

/* The number that @reg holds at the start of @b on all paths that lead there. False: there is
 * none. */
static bool constant_at(struct flow_values *v, uint32_t b, uint8_t reg, int depth, uint64_t *c)
{
	uint32_t *stack = calloc((size_t)v->f->nr_blocks + 1, sizeof(*stack));
	uint8_t *seen = calloc((size_t)v->f->nr_blocks + 1, 1);
	uint32_t nr = 0;
	bool any = false, ok = stack && seen;

	if (ok)
		stack[nr++] = b;
	while (ok && nr) {
		const struct flow_block *block = &v->f->blocks[stack[--nr]];

		for (uint32_t k = 0; ok && k < block->nr_in; k++) {
			uint32_t from = v->f->edges[v->f->into[block->in + k]].from, i;
			struct flow_value value;

			ok = from != FLOW_OUTSIDE && v->budget-- > 0;
			if (!ok || seen[from])
				continue;
			seen[from] = 1;
			i = last_change(v, from,
					v->f->blocks[from].insn + v->f->blocks[from].nr_insns, reg);
			if (i == UINT32_MAX) {
				stack[nr++] = from;
				continue;
			}
			value = change(v, from, i, reg, depth + 1);
			ok = value.node == -1 && (!any || value.c == *c);
			*c = value.c;
			any = true;
		}
		ok = ok && block->nr_in;
	}
	free(stack);
	free(seen);
	return ok && any;
}

/* The value of @reg before instruction @i of @b. */
static struct flow_value value_of(struct flow_values *v, uint32_t b, uint32_t i, uint8_t reg,
				  int depth)
{
	uint64_t c = 0;

	for (int blocks = 0; depth < DEPTH_MAX && v->budget > 0; blocks++) {
		const struct flow_block *block = &v->f->blocks[b];
		uint32_t k = last_change(v, b, i, reg), from;

		if (k != UINT32_MAX)
			return change(v, b, k, reg, depth);
		from = block->nr_in == 1 ? v->f->edges[v->f->into[block->in]].from : FLOW_OUTSIDE;
		if (from == FLOW_OUTSIDE || from == b || blocks == DEPTH_MAX) {
			if (block->nr_in > 1 && constant_at(v, b, reg, depth, &c))
				return number(c);
			return node(v,
				    &(struct flow_node){ .reg = reg, .where = b, .at_start = true },
				    UINT64_MAX);
		}
		b = from;
		i = v->f->blocks[b].insn + v->f->blocks[b].nr_insns;
	}
	return unknown();
}

/* ---- questions ------------------------------------------------------------------------------- */

/* The target of the indirect jump at @i, the last instruction of block @b. */
static void flow_value_target(struct flow_values *v, uint32_t b, uint32_t i, struct flow_value *out)
{
	struct insn_op op;

	*out = unknown();
	flow_value_op(v, i, &op);
	if (op.dst == INSN_TARGET && op.known)
		*out = result_of(v, b, i, &op, 0);
}

static bool swap(enum insn_condition *c)
{
	switch (*c) {
	case INSN_ABOVE:
		*c = INSN_BELOW;
		return true;
	case INSN_ABOVE_EQUAL:
		*c = INSN_BELOW_EQUAL;
		return true;
	case INSN_BELOW:
		*c = INSN_ABOVE;
		return true;
	case INSN_BELOW_EQUAL:
		*c = INSN_ABOVE_EQUAL;
		return true;
	case INSN_OTHER:
		break;
	}
	return false;
}

/* The value that the comparison @op at @i in @b compares, and the number that it compares it
 * with. False: neither operand is a number. */
static bool flow_value_compared(struct flow_values *v, uint32_t b, uint32_t i,
				const struct insn_op *op, struct flow_value *what, uint64_t *with,
				enum insn_condition *c)
{
	struct flow_value other;

	if (!op->with_b) {
		*what = result_of(v, b, i, op, 0);
		*with = extended((uint64_t)op->value, op->size, false);
		return what->node != UNKNOWN;
	}
	*what = operand(v, b, i, op->a, 0);
	other = operand(v, b, i, op->b, 0);
	if (what->node == -1) {
		struct flow_value first = *what;

		*what = other;
		other = first;
		swap(c);
	}
	*with = other.c;
	return other.node == -1 && what->node != UNKNOWN;
}

/* Translates a value at the start of @b to the end of @before. False: not known. */
static bool flow_value_before(struct flow_values *v, uint32_t before, uint32_t b,
			      struct flow_value *value)
{
	uint32_t end = v->f->blocks[before].insn + v->f->blocks[before].nr_insns;
	struct flow_node n;
	struct flow_value then;

	if (value->node < 0)
		return false;
	n = v->nodes[value->node];
	if (n.load) {
		if (n.address.node >= 0 && !flow_value_before(v, before, b, &n.address))
			return false;
		then = node(v, &n, value->max);
	} else if (n.at_start && n.where == b) {
		then = value_of(v, before, end, n.reg, 0);
	} else {
		return true;
	}
	if (then.node < 0)
		return false;
	*value = sum(number(value->c), then, value->scale);
	return value->node >= 0;
}

/* Is the value computed within block @b? */
static bool flow_value_made_in(const struct flow_values *v, const struct flow_value *value,
			       uint32_t b)
{
	const struct flow_node *n = &v->nodes[value->node];
	const struct flow_block *block = &v->f->blocks[b];

	if (n->load)
		return n->address.node >= 0 && flow_value_made_in(v, &n->address, b);
	return !n->at_start && n->where >= block->insn && n->where < block->insn + block->nr_insns;
}

/* Is the stack pointer as at the procedure's start? The last instruction that changes it tells. */
static bool is_balanced(struct flow_values *v, uint32_t b)
{
	uint32_t i = v->f->blocks[b].insn + v->f->blocks[b].nr_insns;

	for (int n = 0; n < EPILOGUE_MAX; n++) {
		const struct flow_block *block = &v->f->blocks[b];
		size_t len;
		const uint8_t *code;
		int moved;

		if (i == block->insn) {
			uint32_t from = block->nr_in ? v->f->edges[v->f->into[block->in]].from
						     : FLOW_OUTSIDE;

			if (from == FLOW_OUTSIDE)
				return b == v->f->entry;
			b = from;
			i = v->f->blocks[b].insn + v->f->blocks[b].nr_insns;
			continue;
		}
		i--;
		code = code_of(v, i, &len);
		moved = insn_stack_move(v->w->d, code, len);
		if (moved)
			return moved > 0;
	}
	return false;
}

/* Is the jump at the end of @b a tail call of another procedure? */
static bool flow_value_is_routine(struct flow_values *v, uint32_t b,
				  const struct flow_value *target)
{
	uint32_t last = v->f->blocks[b].insn + v->f->blocks[b].nr_insns - 1;
	size_t len;
	const uint8_t *code = code_of(v, last, &len);

	if (insn_jumps_within(v->w->d, code, len))
		return false;
	/* The linker fills in such a place in memory with the address of a procedure. */
	if (target->node == -1 || (target->node >= 0 && v->nodes[target->node].load &&
				   v->nodes[target->node].address.node == -1))
		return true;
	return is_balanced(v, b);
}

/* ---- tables ---------------------------------------------------------------------------------- */

enum {
	ENTRIES_MAX = 1 << 14,
	UNBOUNDED_MAX = 1 << 12, /* entries of a table whose length is not known */
	RANGE_DEPTH = 6,
};

/* ---- how large the index is ------------------------------------------------------------------ */

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

/* The condition of the branch at the end of @b, the value that it compares, and the number. */
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

/* The negative number that a comparison of 32 or 64 bits uses, such as -6. */
static int64_t as_negative(uint64_t with)
{
	return with >> 31 == 1 ? (int32_t)(uint32_t)with : (int64_t)with;
}

/* Derives the range of @of from "what is below with"; both must stand for the same node plus a
 * number. */
static bool limit(const struct flow_value *what, const struct flow_value *of, uint64_t with,
		  enum insn_condition c, struct range *out)
{
	uint64_t apart = of->c - what->c;
	int64_t least = as_negative(with) + (c == INSN_ABOVE);

	if (c == INSN_OTHER || what->node < 0 || of->node != what->node || of->scale != 1 ||
	    what->scale != 1)
		return false;
	if (c == INSN_ABOVE || c == INSN_ABOVE_EQUAL) { /* the range is [least, -1] */
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

/* The range of @of at the start of @b, derived from the branches that lead there. */
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
		uint64_t with = 0;
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

/* ---- reading the table ----------------------------------------------------------------------- */

struct table {
	uint64_t at; /* its first entry */
	uint64_t stride;
	uint8_t size;
	bool sign;
	uint64_t base; /* target = base + entry * times */
	int64_t times;
	size_t nr;
	bool sure; /* nr is known; otherwise the table ends at the first implausible target */
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

/* Marks the bytes of a table that lies among the code as no code. */
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

/* Marks the starts of instructions of a linear disassembly; compilers put no data among them. */
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
 * A table of unknown length ends at a target that is no start of an instruction: a wrong distance
 * can lead anywhere, and addresses do not point into the middle of instructions.
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

/* Returns 1 if the table gives the targets, 0 if its entries are implausible, or negative. */
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

/* ---- recognizing it -------------------------------------------------------------------------- */

/* Is the target loaded from base + index * stride with a constant base? */
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
