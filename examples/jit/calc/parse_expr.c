/* SPDX-License-Identifier: BSD-2-Clause */
#include "parser.h"

static const struct binary {
	int token;
	enum calc_op op;
	unsigned int level; /* binds tighter the higher */
} binaries[] = {
	{ CALC_TOK_OR, CALC_OR, 1 }, { CALC_TOK_AND, CALC_AND, 2 }, { CALC_TOK_EQ, CALC_EQ, 3 },
	{ CALC_TOK_NE, CALC_NE, 3 }, { '<', CALC_LT, 4 },	    { CALC_TOK_LE, CALC_LE, 4 },
	{ '>', CALC_GT, 4 },	     { CALC_TOK_GE, CALC_GE, 4 },   { '+', CALC_ADD, 5 },
	{ '-', CALC_SUB, 5 },	     { '*', CALC_MUL, 6 },	    { '/', CALC_DIV, 6 },
	{ '%', CALC_MOD, 6 },
};

#define NR_BINARIES (sizeof(binaries) / sizeof(binaries[0]))

static struct calc_expr *expr_new(struct calc_parser *p, enum calc_expr_kind kind,
				  struct calc_pos pos)
{
	struct calc_expr *e = calc_alloc(p->c, pos, sizeof(*e));

	e->kind = kind;
	e->op = CALC_NO_OP;
	e->pos = pos;
	e->height = 1;
	return e;
}

static void set_child(struct calc_parser *p, struct calc_expr *e, struct calc_expr **slot,
		      struct calc_expr *child)
{
	*slot = child;
	if (child->height >= e->height)
		e->height = child->height + 1;
	if (e->height > CALC_MAX_HEIGHT)
		calc_fail(p->c, e->pos, "expression of more than %d levels", CALC_MAX_HEIGHT);
}

static void parse_args(struct calc_parser *p, struct calc_expr *call)
{
	struct calc_expr **tail = &call->args;

	while (p->lx.token != ')') {
		if (call->nr_args == CALC_MAX_PARAMS)
			calc_fail(p->c, p->lx.pos, "more than %d arguments", CALC_MAX_PARAMS);
		set_child(p, call, tail, calc_parse_expr(p));
		tail = &(*tail)->next;
		call->nr_args++;
		if (!calc_parser_accept(p, ','))
			break;
	}
	calc_parser_expect(p, ')', "after the arguments");
}

static struct calc_expr *parse_name(struct calc_parser *p)
{
	struct calc_expr *e = expr_new(p, CALC_EXPR_NAME, p->lx.pos);

	e->text = calc_parser_name(p, "a name");
	if (calc_parser_accept(p, '(')) {
		e->kind = CALC_EXPR_CALL;
		parse_args(p, e);
	}
	return e;
}

/* int(x), double(x): conversions. int[n], double[n]: new arrays. */
static struct calc_expr *parse_type_word(struct calc_parser *p)
{
	bool is_int = p->lx.token == CALC_TOK_INT;
	struct calc_expr *e = expr_new(p, CALC_EXPR_CONVERT, p->lx.pos);

	calc_lexer_next(&p->lx);
	e->type.kind = is_int ? CALC_INT : CALC_DOUBLE;
	if (calc_parser_accept(p, '[')) {
		e->kind = CALC_EXPR_NEW;
		e->type.kind = is_int ? CALC_INT_ARRAY : CALC_DOUBLE_ARRAY;
		set_child(p, e, &e->left, calc_parse_expr(p));
		calc_parser_expect(p, ']', "after the array's length");
	} else {
		calc_parser_expect(p, '(', "after the type");
		set_child(p, e, &e->left, calc_parse_expr(p));
		calc_parser_expect(p, ')', "after the converted value");
	}
	return e;
}

static struct calc_expr *parse_literal(struct calc_parser *p, enum calc_expr_kind kind)
{
	struct calc_expr *e = expr_new(p, kind, p->lx.pos);

	e->value = p->lx.value;
	e->text = p->lx.text;
	calc_lexer_next(&p->lx);
	return e;
}

static struct calc_expr *parse_primary(struct calc_parser *p)
{
	struct calc_expr *e;

	switch (p->lx.token) {
	case CALC_TOK_INTEGER:
		return parse_literal(p, CALC_EXPR_INT);
	case CALC_TOK_REAL:
		return parse_literal(p, CALC_EXPR_DOUBLE);
	case CALC_TOK_TEXT:
		return parse_literal(p, CALC_EXPR_STRING);
	case CALC_TOK_NAME:
		return parse_name(p);
	case CALC_TOK_INT:
	case CALC_TOK_DOUBLE:
		return parse_type_word(p);
	case '(':
		calc_lexer_next(&p->lx);
		e = calc_parse_expr(p);
		calc_parser_expect(p, ')', "after the expression");
		return e;
	default:
		calc_parser_unexpected(p, "an expression");
	}
}

static struct calc_expr *parse_postfix(struct calc_parser *p)
{
	struct calc_expr *e = parse_primary(p);

	while (p->lx.token == '[') {
		struct calc_expr *index = expr_new(p, CALC_EXPR_INDEX, p->lx.pos);

		calc_lexer_next(&p->lx);
		set_child(p, index, &index->left, e);
		set_child(p, index, &index->right, calc_parse_expr(p));
		calc_parser_expect(p, ']', "after the index");
		e = index;
	}
	return e;
}

static struct calc_expr *parse_unary(struct calc_parser *p)
{
	enum calc_op op = p->lx.token == '-'   ? CALC_NEG
			  : p->lx.token == '!' ? CALC_NOT
			  : p->lx.token == '*' ? CALC_DEREF
					       : CALC_NO_OP;
	struct calc_expr *e;

	if (op == CALC_NO_OP)
		return parse_postfix(p);
	e = expr_new(p, CALC_EXPR_UNARY, p->lx.pos);
	e->op = op;
	calc_lexer_next(&p->lx);
	calc_parser_enter(p);
	set_child(p, e, &e->left, parse_unary(p));
	calc_parser_leave(p);
	return e;
}

static const struct binary *find_binary(int token)
{
	for (size_t i = 0; i < NR_BINARIES; i++)
		if (binaries[i].token == token)
			return &binaries[i];
	return NULL;
}

/* Precedence climbing: operators of @level and tighter. */
static struct calc_expr *parse_binary(struct calc_parser *p, unsigned int level)
{
	struct calc_expr *left = parse_unary(p);
	const struct binary *b;

	while ((b = find_binary(p->lx.token)) && b->level >= level) {
		struct calc_expr *e = expr_new(p, CALC_EXPR_BINARY, p->lx.pos);

		calc_lexer_next(&p->lx);
		e->op = b->op;
		set_child(p, e, &e->left, left);
		set_child(p, e, &e->right, parse_binary(p, b->level + 1));
		left = e;
	}
	return left;
}

struct calc_expr *calc_parse_expr(struct calc_parser *p)
{
	struct calc_expr *e;

	calc_parser_enter(p);
	e = parse_binary(p, 1);
	calc_parser_leave(p);
	return e;
}
