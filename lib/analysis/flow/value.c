/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "value.h"

enum {
	BUDGET = 20000,
	DEPTH_MAX = 24,
	UNKNOWN = -2,
	EPILOGUE_MAX = 64, /* instructions looked at before a jump that may be a tail call */
};

void flow_values_start(struct flow_values *v)
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

/* ---- instructions -------------------------------------------------------------------------- */

static const uint8_t *code_of(const struct flow_values *v, uint32_t i, size_t *len)
{
	uint64_t vaddr = v->f->insns[i].vaddr;
	const struct flow_part *p = flow_walk_part(v->w, vaddr);

	*len = (size_t)(p->len - (vaddr - p->vaddr));
	return p->code + (vaddr - p->vaddr);
}

void flow_value_op(struct flow_values *v, uint32_t i, struct insn_op *op)
{
	size_t len;
	const uint8_t *code = code_of(v, i, &len);

	insn_decode_op(v->w->d, code, len, v->f->insns[i].vaddr, op);
}

enum insn_condition flow_value_condition(struct flow_values *v, uint32_t i, struct insn_op *op)
{
	size_t len;
	const uint8_t *code = code_of(v, i, &len);

	return insn_decode_condition(v->w->d, code, len, op);
}

/* ---- registers ----------------------------------------------------------------------------- */

static struct flow_value value_of(struct flow_values *v, uint32_t b, uint32_t i, uint8_t reg,
				  int depth);

static struct flow_value operand(struct flow_values *v, uint32_t b, uint32_t i, uint8_t reg,
				 int depth)
{
	return reg == INSN_NO_REGISTER ? number(0) : value_of(v, b, i, reg, depth + 1);
}

/* @size bytes of a number, as a register takes them. */
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

/* Extending what was loaded is loading it with its sign. */
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

/* What @op, the instruction at @i, writes or loads or jumps to. */
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

/* The instruction before @i in @b that changes @reg; UINT32_MAX: none. */
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

/* A number that @reg holds at the start of @b, whatever way led there. */
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

/* @reg before instruction @i of @b. */
static struct flow_value value_of(struct flow_values *v, uint32_t b, uint32_t i, uint8_t reg,
				  int depth)
{
	uint64_t c;

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

/* ---- questions ----------------------------------------------------------------------------- */

void flow_value_target(struct flow_values *v, uint32_t b, uint32_t i, struct flow_value *out)
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

bool flow_value_compared(struct flow_values *v, uint32_t b, uint32_t i, const struct insn_op *op,
			 struct flow_value *what, uint64_t *with, enum insn_condition *c)
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

bool flow_value_before(struct flow_values *v, uint32_t before, uint32_t b, struct flow_value *value)
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

bool flow_value_made_in(const struct flow_values *v, const struct flow_value *value, uint32_t b)
{
	const struct flow_node *n = &v->nodes[value->node];
	const struct flow_block *block = &v->f->blocks[b];

	if (n->load)
		return n->address.node >= 0 && flow_value_made_in(v, &n->address, b);
	return !n->at_start && n->where >= block->insn && n->where < block->insn + block->nr_insns;
}

/* Is the stack as at the procedure's start? By the last that was done with it. */
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

bool flow_value_is_routine(struct flow_values *v, uint32_t b, const struct flow_value *target)
{
	uint32_t last = v->f->blocks[b].insn + v->f->blocks[b].nr_insns - 1;
	size_t len;
	const uint8_t *code = code_of(v, last, &len);

	if (insn_jumps_within(v->w->d, code, len))
		return false;
	/* A place in memory that holds an address is filled in by the linker. */
	if (target->node == -1 || (target->node >= 0 && v->nodes[target->node].load &&
				   v->nodes[target->node].address.node == -1))
		return true;
	return is_balanced(v, b);
}
