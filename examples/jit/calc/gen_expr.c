/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>

#include "gen.h"

/* An index that loads and stores take as a number, on every machine. */
#define MAX_SMALL_INDEX 4095

static struct emit_operand data_operand(unsigned int index)
{
	return (struct emit_operand){
		EMIT_RUNTIME,
		(int64_t)(offsetof(struct calc_runtime, data) + 8 * (size_t)index),
	};
}

static struct emit_operand constant(struct gen *g, const struct calc_expr *e,
				    union calc_value value)
{
	return data_operand(calc_data_add(g->c, e->pos, value));
}

static int helper_off(enum calc_helper helper)
{
	return (int)(offsetof(struct calc_runtime, helpers) + 8 * (size_t)helper);
}

struct emit_operand gen_place(struct calc_place place)
{
	switch (place.where) {
	case CALC_LOCAL:
		return (struct emit_operand){ EMIT_SLOT, place.index };
	case CALC_PARAM:
		return (struct emit_operand){ EMIT_PARAM, place.index };
	default:
		return data_operand(place.index);
	}
}

struct emit_operand gen_spill(struct gen *g, enum emit_class cl, unsigned int temp,
			      struct calc_pos pos)
{
	struct emit_operand slot = { EMIT_SLOT, g->first_spill + g->nr_spilled };

	if (++g->nr_spilled > g->max_spilled)
		g->max_spilled = g->nr_spilled;
	if (g->first_spill + g->max_spilled > CALC_MAX_SLOTS)
		calc_fail(g->c, pos, "expression is too complicated");
	emit_store(g->e, cl, temp, slot);
	return slot;
}

void gen_unspill(struct gen *g)
{
	g->nr_spilled--;
}

bool gen_direct(struct gen *g, const struct calc_expr *e, struct emit_operand *o)
{
	if (e->kind == CALC_EXPR_INT)
		*o = gen_imm(e->value.i);
	else if (e->kind == CALC_EXPR_DOUBLE)
		*o = constant(g, e, e->value);
	else if (e->kind == CALC_EXPR_NAME && e->type.kind != CALC_FUNC)
		*o = gen_place(e->place);
	else
		return false;
	return true;
}

/*
 * The left side to temporary @d, the right side to the operand that is returned. Where the right
 * side needs all registers, the left one waits in the frame.
 */
static struct emit_operand operands(struct gen *g, const struct calc_expr *e, unsigned int d)
{
	enum emit_class left = gen_class(e->left->type), right = gen_class(e->right->type);
	struct emit_operand o, slot;

	gen_expr(g, e->left, d);
	if (gen_direct(g, e->right, &o))
		return o;
	if (!e->right->has_call && d + 1 < EMIT_NR_TEMPS) {
		gen_expr(g, e->right, d + 1);
		return gen_temp(d + 1);
	}
	slot = gen_spill(g, left, d, e->pos);
	gen_expr(g, e->right, d);
	emit_load(g->e, right, d + 1, gen_temp(d));
	emit_load(g->e, left, d, slot);
	gen_unspill(g);
	return gen_temp(d + 1);
}

void gen_arith(struct gen *g, struct calc_type type, enum calc_op op, unsigned int dst,
	       struct emit_operand right, struct calc_pos pos)
{
	if (type.kind == CALC_INT && (op == CALC_DIV || op == CALC_MOD))
		emit_divide(g->e, dst, right, op == CALC_MOD, gen_trap(g, CALC_TRAP_DIVIDE, pos));
	else
		emit_arith(g->e, gen_class(type), op, dst, right);
}

static void gen_logic(struct gen *g, const struct calc_expr *e, unsigned int d)
{
	emit_label no = emit_label_new(g->e), done = emit_label_new(g->e);

	gen_jump(g, e, false, no, d);
	emit_load(g->e, EMIT_INT, d, gen_imm(1));
	emit_jump(g->e, done);
	emit_label_bind(g->e, no);
	emit_load(g->e, EMIT_INT, d, gen_imm(0));
	emit_label_bind(g->e, done);
}

static void gen_binary(struct gen *g, const struct calc_expr *e, unsigned int d)
{
	struct emit_operand right;

	if (e->op == CALC_AND || e->op == CALC_OR) {
		gen_logic(g, e, d);
		return;
	}
	right = operands(g, e, d);
	gen_mark(g, e->pos);
	if (e->op >= CALC_EQ)
		emit_compare(g->e, gen_class(e->left->type), e->op, d, d, right);
	else
		gen_arith(g, e->type, e->op, d, right, e->pos);
}

static void gen_unary(struct gen *g, const struct calc_expr *e, unsigned int d)
{
	gen_expr(g, e->left, d);
	gen_mark(g, e->pos);
	switch (e->op) {
	case CALC_NEG:
		emit_negate(g->e, gen_class(e->type), d);
		break;
	case CALC_NOT:
		emit_compare(g->e, EMIT_INT, CALC_EQ, d, d, gen_imm(0));
		break;
	default:
		emit_compare_jump(g->e, EMIT_INT, CALC_EQ, true, d, gen_imm(0),
				  gen_trap(g, CALC_TRAP_POINTER, e->pos));
		emit_load_at(g->e, gen_class(e->type), d, d, 0);
	}
}

static void gen_convert(struct gen *g, const struct calc_expr *e, unsigned int d)
{
	bool from_double = e->left->type.kind == CALC_DOUBLE;
	struct emit_operand from = gen_temp(d);

	if (from_double || e->type.kind == CALC_INT || !gen_direct(g, e->left, &from))
		gen_expr(g, e->left, d);
	if (from_double && e->type.kind == CALC_INT)
		emit_double_to_int(g->e, d, gen_trap(g, CALC_TRAP_CONVERT, e->pos));
	else if (!from_double && e->type.kind == CALC_DOUBLE)
		emit_int_to_double(g->e, d, from);
}

void gen_helper(struct gen *g, enum calc_helper helper, enum emit_class cl, int64_t data)
{
	emit_args_begin(g->e, 1);
	emit_args_store(g->e, cl, 0, 0);
	emit_call_helper(g->e, helper_off(helper), gen_imm(data));
	emit_args_end(g->e, 1);
}

static void gen_print(struct gen *g, const struct calc_expr *e)
{
	for (const struct calc_expr *a = e->args; a; a = a->next) {
		gen_expr(g, a, 0);
		gen_helper(g,
			   a->type.kind == CALC_INT	 ? CALC_HELPER_PRINT_INT
			   : a->type.kind == CALC_DOUBLE ? CALC_HELPER_PRINT_DOUBLE
							 : CALC_HELPER_PRINT_STRING,
			   gen_class(a->type), 0);
	}
}

static void gen_builtin(struct gen *g, const struct calc_expr *e, unsigned int d)
{
	switch (e->builtin) {
	case CALC_PRINT:
		gen_print(g, e);
		break;
	case CALC_LEN:
		gen_expr(g, e->args, d);
		emit_load_at(g->e, EMIT_INT, d, d, -8);
		break;
	default:
		emit_load(g->e, EMIT_INT, d, data_operand(CALC_DATA_ROUND));
	}
}

/* C functions are called by a helper, which is told by the site what is called, and how. */
static void gen_call_c(struct gen *g, const struct calc_expr *e)
{
	struct emit_operand site = constant(g, e, (union calc_value){ .p = e->site });

	emit_call_helper(
		g->e,
		helper_off(e->type.kind == CALC_DOUBLE ? CALC_HELPER_C_DOUBLE : CALC_HELPER_C_INT),
		site);
}

static void gen_call(struct gen *g, const struct calc_expr *e, unsigned int d)
{
	size_t entry = offsetof(struct calc_runtime, entry);
	unsigned int i = 0;

	if (e->builtin != CALC_NO_BUILTIN) {
		gen_builtin(g, e, d);
		return;
	}
	/* Whatever was computed before has been spilled, since e->has_call. */
	assert(d == 0);
	emit_args_begin(g->e, e->nr_args);
	for (const struct calc_expr *a = e->args; a; a = a->next) {
		gen_expr(g, a, 0);
		emit_args_store(g->e, gen_class(a->type), 0, i++);
	}
	gen_mark(g, e->pos);
	if (e->function->body)
		emit_call(g->e, (int)(entry + 8 * (size_t)e->function->index));
	else
		gen_call_c(g, e);
	emit_args_end(g->e, e->nr_args);
}

void gen_element(struct gen *g, const struct calc_expr *e, unsigned int d,
		 struct emit_operand *index)
{
	*index = operands(g, e, d);
	gen_mark(g, e->pos);
	if (index->kind != EMIT_TEMP &&
	    !(index->kind == EMIT_IMM && index->value >= 0 && index->value <= MAX_SMALL_INDEX)) {
		emit_load(g->e, EMIT_INT, d + 1, *index);
		*index = gen_temp(d + 1);
	}
	emit_check_index(g->e, d, *index, gen_trap(g, CALC_TRAP_INDEX, e->pos));
}

static void gen_index(struct gen *g, const struct calc_expr *e, unsigned int d)
{
	struct emit_operand index;

	gen_element(g, e, d, &index);
	emit_load_element(g->e, gen_class(e->type), d, d, index);
}

static void gen_name(struct gen *g, const struct calc_expr *e, unsigned int d)
{
	struct emit_operand from = e->type.kind == CALC_FUNC
					   ? constant(g, e, (union calc_value){ .p = e->closure })
					   : gen_place(e->place);

	emit_load(g->e, gen_class(e->type), d, from);
}

void gen_expr(struct gen *g, const struct calc_expr *e, unsigned int d)
{
	gen_mark(g, e->pos);
	switch (e->kind) {
	case CALC_EXPR_INT:
		emit_load(g->e, EMIT_INT, d, gen_imm(e->value.i));
		break;
	case CALC_EXPR_DOUBLE:
		emit_load(g->e, EMIT_DOUBLE, d, constant(g, e, e->value));
		break;
	case CALC_EXPR_STRING:
		emit_load(g->e, EMIT_INT, d, constant(g, e, (union calc_value){ .p = e->text }));
		break;
	case CALC_EXPR_NAME:
		gen_name(g, e, d);
		break;
	case CALC_EXPR_UNARY:
		gen_unary(g, e, d);
		break;
	case CALC_EXPR_BINARY:
		gen_binary(g, e, d);
		break;
	case CALC_EXPR_CONVERT:
		gen_convert(g, e, d);
		break;
	case CALC_EXPR_CALL:
		gen_call(g, e, d);
		break;
	case CALC_EXPR_INDEX:
		gen_index(g, e, d);
		break;
	case CALC_EXPR_NEW:
		gen_expr(g, e->left, 0);
		gen_helper(g, CALC_HELPER_NEW_ARRAY, EMIT_INT, gen_pack_pos(e->pos));
		break;
	}
}

static void jump_logic(struct gen *g, const struct calc_expr *e, bool sense, emit_label to,
		       unsigned int d)
{
	emit_label past;

	/* Either side alone decides that "&&" is 0, and that "||" is not. */
	if ((e->op == CALC_AND) != sense) {
		gen_jump(g, e->left, sense, to, d);
		gen_jump(g, e->right, sense, to, d);
		return;
	}
	past = emit_label_new(g->e);
	gen_jump(g, e->left, !sense, past, d);
	gen_jump(g, e->right, sense, to, d);
	emit_label_bind(g->e, past);
}

void gen_jump(struct gen *g, const struct calc_expr *e, bool sense, emit_label to, unsigned int d)
{
	struct emit_operand right;

	gen_mark(g, e->pos);
	if (e->kind == CALC_EXPR_BINARY && (e->op == CALC_AND || e->op == CALC_OR)) {
		jump_logic(g, e, sense, to, d);
	} else if (e->kind == CALC_EXPR_BINARY && e->op >= CALC_EQ) {
		right = operands(g, e, d);
		gen_mark(g, e->pos);
		emit_compare_jump(g->e, gen_class(e->left->type), e->op, sense, d, right, to);
	} else if (e->kind == CALC_EXPR_UNARY && e->op == CALC_NOT) {
		gen_jump(g, e->left, !sense, to, d);
	} else if (e->kind == CALC_EXPR_INT) {
		if ((e->value.i != 0) == sense)
			emit_jump(g->e, to);
	} else {
		gen_expr(g, e, d);
		emit_compare_jump(g->e, EMIT_INT, CALC_NE, sense, d, gen_imm(0), to);
	}
}
