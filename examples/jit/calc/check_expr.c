/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "check.h"

static const char *const op_names[] = {
	[CALC_ADD] = "+", [CALC_SUB] = "-", [CALC_MUL] = "*",	[CALC_DIV] = "/",
	[CALC_MOD] = "%", [CALC_EQ] = "==", [CALC_NE] = "!=",	[CALC_LT] = "<",
	[CALC_LE] = "<=", [CALC_GT] = ">",  [CALC_GE] = ">=",	[CALC_AND] = "&&",
	[CALC_OR] = "||", [CALC_NOT] = "!", [CALC_NEG] = "neg", [CALC_DEREF] = "deref",
};

static const char *const type_names[] = {
	[CALC_VOID] = "nothing",	  [CALC_INT] = "int",
	[CALC_INT32] = "int32",		  [CALC_DOUBLE] = "double",
	[CALC_STRING] = "string",	  [CALC_INT_ARRAY] = "int[]",
	[CALC_DOUBLE_ARRAY] = "double[]", [CALC_INT_PTR] = "int*",
	[CALC_DOUBLE_PTR] = "double*",	  [CALC_FUNC] = "func",
};

const char *calc_op_name(enum calc_op op)
{
	return op_names[op];
}

const char *calc_type_name(struct calc_type type)
{
	return type_names[type.kind];
}

enum calc_builtin calc_builtin_find(const char *name)
{
	static const char *const names[] = { "print", "len", "round" };

	for (unsigned int i = 0; i < 3; i++)
		if (strcmp(names[i], name) == 0)
			return CALC_PRINT + i;
	return CALC_NO_BUILTIN;
}

static void to_double(struct calc_checker *k, struct calc_expr **e)
{
	struct calc_expr *from = *e, *to;

	if (from->kind == CALC_EXPR_INT) {
		from->kind = CALC_EXPR_DOUBLE;
		from->value.d = (double)from->value.i;
		from->type.kind = CALC_DOUBLE;
		return;
	}
	to = calc_alloc(k->c, from->pos, sizeof(*to));
	to->kind = CALC_EXPR_CONVERT;
	to->pos = from->pos;
	to->type.kind = CALC_DOUBLE;
	to->left = from;
	to->height = from->height;
	to->has_call = from->has_call;
	to->next = from->next;
	*e = to;
}

/* What C sees as an address may be made from an array. */
static bool passes_as(struct calc_type have, struct calc_type want)
{
	return have.kind == want.kind || (have.kind == CALC_INT && want.kind == CALC_INT32) ||
	       (have.kind == CALC_INT_ARRAY && want.kind == CALC_INT_PTR) ||
	       (have.kind == CALC_DOUBLE_ARRAY && want.kind == CALC_DOUBLE_PTR);
}

void calc_check_convert(struct calc_checker *k, struct calc_expr **e, struct calc_type want)
{
	struct calc_type have = (*e)->type;

	if (have.kind == CALC_INT && want.kind == CALC_DOUBLE)
		to_double(k, e);
	else if (have.kind == CALC_VOID || !passes_as(have, want))
		calc_fail(k->c, (*e)->pos, "expected %s, got %s", calc_type_name(want),
			  calc_type_name(have));
}

struct calc_type calc_check_arithmetic(struct calc_checker *k, struct calc_pos pos, enum calc_op op,
				       struct calc_expr **left, struct calc_expr **right)
{
	struct calc_type l = (*left)->type, r = (*right)->type;
	bool is_double = l.kind == CALC_DOUBLE || r.kind == CALC_DOUBLE;

	if (!calc_is_number(l) || !calc_is_number(r) || (is_double && op == CALC_MOD))
		calc_fail(k->c, pos, "'%s' does not take %s and %s", calc_op_name(op),
			  calc_type_name(l), calc_type_name(r));
	if (is_double) {
		calc_check_convert(k, left, (struct calc_type){ .kind = CALC_DOUBLE });
		calc_check_convert(k, right, (struct calc_type){ .kind = CALC_DOUBLE });
	} else if ((op == CALC_DIV || op == CALC_MOD) && (*right)->kind == CALC_EXPR_INT &&
		   (*right)->value.i == 0) {
		calc_fail(k->c, (*right)->pos, "division by zero");
	}
	return (*left)->type;
}

static void check_name(struct calc_checker *k, struct calc_expr *e)
{
	const struct calc_global *g;
	unsigned int index;

	for (unsigned int i = k->nr_variables; i-- > 0;) {
		if (strcmp(k->variables[i].name, e->text) == 0) {
			e->type = k->variables[i].type;
			e->place = k->variables[i].place;
			return;
		}
	}
	g = calc_global_find(k->c, e->text, &index);
	if (!g && calc_function_find(k->c, e->text))
		calc_fail(k->c, e->pos, "function '%s' is only a value as a C function's callback",
			  e->text);
	if (!g)
		calc_fail(k->c, e->pos, "no variable '%s'", e->text);
	e->type = g->type;
	e->place = (struct calc_place){ CALC_GLOBAL, index };
}

static void need_int(struct calc_checker *k, const struct calc_expr *e, enum calc_op op)
{
	if (e->type.kind != CALC_INT)
		calc_fail(k->c, e->pos, "'%s' does not take %s", calc_op_name(op),
			  calc_type_name(e->type));
}

/* A negated number is a number, so that what is constant is known to be. */
static void fold_negation(struct calc_expr *e)
{
	struct calc_expr *number = e->left;

	if (number->kind != CALC_EXPR_INT && number->kind != CALC_EXPR_DOUBLE)
		return;
	e->kind = number->kind;
	if (number->kind == CALC_EXPR_INT)
		e->value.i = -number->value.i;
	else
		e->value.d = -number->value.d;
	e->left = NULL;
}

static void check_unary(struct calc_checker *k, struct calc_expr *e)
{
	struct calc_type type;

	calc_check_expr(k, e->left);
	type = e->left->type;
	if (e->op == CALC_DEREF && calc_is_pointer(type)) {
		e->type.kind = type.kind == CALC_INT_PTR ? CALC_INT : CALC_DOUBLE;
	} else if (e->op == CALC_NEG && calc_is_number(type)) {
		e->type = type;
		fold_negation(e);
	} else if (e->op == CALC_NOT && type.kind == CALC_INT) {
		e->type = type;
	} else {
		calc_fail(k->c, e->pos, "unary '%s' does not take %s",
			  e->op == CALC_DEREF ? "*"
			  : e->op == CALC_NEG ? "-"
					      : "!",
			  calc_type_name(type));
	}
}

static void check_binary(struct calc_checker *k, struct calc_expr *e)
{
	calc_check_expr(k, e->left);
	calc_check_expr(k, e->right);
	if (e->op == CALC_AND || e->op == CALC_OR) {
		need_int(k, e->left, e->op);
		need_int(k, e->right, e->op);
		e->type.kind = CALC_INT;
		return;
	}
	e->type = calc_check_arithmetic(k, e->pos, e->op, &e->left, &e->right);
	if (e->op >= CALC_EQ)
		e->type.kind = CALC_INT;
}

static void check_index(struct calc_checker *k, struct calc_expr *e)
{
	calc_check_expr(k, e->left);
	calc_check_expr(k, e->right);
	if (!calc_is_array(e->left->type))
		calc_fail(k->c, e->pos, "%s is no array", calc_type_name(e->left->type));
	calc_check_convert(k, &e->right, (struct calc_type){ .kind = CALC_INT });
	e->type.kind = e->left->type.kind == CALC_INT_ARRAY ? CALC_INT : CALC_DOUBLE;
}

static void check_convert_call(struct calc_checker *k, struct calc_expr *e)
{
	calc_check_expr(k, e->left);
	if (!calc_is_number(e->left->type))
		calc_fail(k->c, e->pos, "%s cannot become %s", calc_type_name(e->left->type),
			  calc_type_name(e->type));
}

static void check_new(struct calc_checker *k, struct calc_expr *e)
{
	calc_check_expr(k, e->left);
	calc_check_convert(k, &e->left, (struct calc_type){ .kind = CALC_INT });
	e->has_call = true;
}

static void check_builtin(struct calc_checker *k, struct calc_expr *e)
{
	unsigned int want = e->builtin == CALC_LEN ? 1 : 0;

	if (e->builtin != CALC_PRINT && e->nr_args != want)
		calc_fail(k->c, e->pos, "%s() takes %u arguments", e->text, want);
	for (struct calc_expr *a = e->args; a; a = a->next) {
		calc_check_expr(k, a);
		if (e->builtin == CALC_LEN && !calc_is_array(a->type))
			calc_fail(k->c, a->pos, "%s is no array", calc_type_name(a->type));
		if (e->builtin == CALC_PRINT && !calc_is_number(a->type) &&
		    a->type.kind != CALC_STRING)
			calc_fail(k->c, a->pos, "print() does not take %s",
				  calc_type_name(a->type));
	}
	e->has_call = e->builtin == CALC_PRINT;
	e->type.kind = e->builtin == CALC_PRINT ? CALC_VOID : CALC_INT;
}

/* What C hands over, or takes back: its int is an int here. */
static bool fits_c(struct calc_type own, struct calc_type of_c)
{
	return own.kind == of_c.kind || (own.kind == CALC_INT && of_c.kind == CALC_INT32);
}

/* Can C call @f as a function of this type? */
static bool fits_callback(const struct calc_function *f, const struct calc_signature *want)
{
	const struct calc_signature *have = &f->signature;

	if (have->nr_params != want->nr_params || !fits_c(have->result, want->result))
		return false;
	for (unsigned int i = 0; i < want->nr_params; i++)
		if (!fits_c(have->params[i], want->params[i]))
			return false;
	return true;
}

static void check_callback(struct calc_checker *k, struct calc_expr *e, struct calc_type want)
{
	if (e->kind == CALC_EXPR_NAME)
		e->function = calc_function_find(k->c, e->text);
	if (!e->function || !e->function->body)
		calc_fail(k->c, e->pos, "expected the name of a function of this program");
	if (!fits_callback(e->function, want.signature))
		calc_fail(k->c, e->pos, "'%s' has not the callback's parameters and result",
			  e->text);
	e->type = want;
	e->closure = calc_closure_new(k->c, e->pos, e->function, want.signature);
}

static void check_vararg(struct calc_checker *k, const struct calc_expr *e)
{
	if (e->type.kind == CALC_VOID)
		calc_fail(k->c, e->pos, "this has no value");
}

static void check_call(struct calc_checker *k, struct calc_expr *e)
{
	const struct calc_signature *s;
	unsigned int i = 0;

	e->builtin = calc_builtin_find(e->text);
	if (e->builtin != CALC_NO_BUILTIN) {
		check_builtin(k, e);
		return;
	}
	e->function = calc_function_find(k->c, e->text);
	if (!e->function)
		calc_fail(k->c, e->pos, "no function '%s'", e->text);
	s = &e->function->signature;
	if (e->nr_args < s->nr_params || (e->nr_args > s->nr_params && !s->variadic))
		calc_fail(k->c, e->pos, "'%s' takes %u arguments, not %u", e->text, s->nr_params,
			  e->nr_args);
	for (struct calc_expr **a = &e->args; *a; a = &(*a)->next, i++) {
		if (i < s->nr_params && s->params[i].kind == CALC_FUNC) {
			check_callback(k, *a, s->params[i]);
			continue;
		}
		calc_check_expr(k, *a);
		if (i < s->nr_params)
			calc_check_convert(k, a, s->params[i]);
		else
			check_vararg(k, *a);
	}
	if (!e->function->body)
		e->site = calc_site_new(k->c, e);
	e->has_call = true;
	e->type = s->result;
	if (e->type.kind == CALC_INT32)
		e->type.kind = CALC_INT;
}

static void inherit_call(struct calc_expr *e)
{
	for (const struct calc_expr *a = e->args; a; a = a->next)
		e->has_call |= a->has_call;
	if (e->left)
		e->has_call |= e->left->has_call;
	if (e->right)
		e->has_call |= e->right->has_call;
}

void calc_check_expr(struct calc_checker *k, struct calc_expr *e)
{
	static void (*const checks[])(struct calc_checker *, struct calc_expr *) = {
		[CALC_EXPR_NAME] = check_name,	   [CALC_EXPR_UNARY] = check_unary,
		[CALC_EXPR_BINARY] = check_binary, [CALC_EXPR_CONVERT] = check_convert_call,
		[CALC_EXPR_CALL] = check_call,	   [CALC_EXPR_INDEX] = check_index,
		[CALC_EXPR_NEW] = check_new,
	};

	if (e->kind == CALC_EXPR_INT)
		e->type.kind = CALC_INT;
	else if (e->kind == CALC_EXPR_DOUBLE)
		e->type.kind = CALC_DOUBLE;
	else if (e->kind == CALC_EXPR_STRING)
		e->type.kind = CALC_STRING;
	else
		checks[e->kind](k, e);
	inherit_call(e);
}
