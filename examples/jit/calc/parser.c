/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations and statements, by recursive descent; README.md describes the language. */
#include "parser.h"

bool calc_parser_accept(struct calc_parser *p, int token)
{
	if (p->lx.token != token)
		return false;
	calc_lexer_next(&p->lx);
	return true;
}

_Noreturn void calc_parser_unexpected(struct calc_parser *p, const char *want)
{
	calc_fail(p->c, p->lx.pos, "expected %s, got %s", want, calc_token_name(p->lx.token));
}

void calc_parser_expect(struct calc_parser *p, int token, const char *where)
{
	char want[64];

	if (calc_parser_accept(p, token))
		return;
	snprintf(want, sizeof(want), "%s %s", calc_token_name(token), where);
	calc_parser_unexpected(p, want);
}

const char *calc_parser_name(struct calc_parser *p, const char *what)
{
	const char *name = p->lx.text;

	if (p->lx.token != CALC_TOK_NAME)
		calc_parser_unexpected(p, what);
	calc_lexer_next(&p->lx);
	return name;
}

void calc_parser_enter(struct calc_parser *p)
{
	if (++p->depth > CALC_MAX_DEPTH)
		calc_fail(p->c, p->lx.pos, "nested more than %d deep", CALC_MAX_DEPTH);
}

void calc_parser_leave(struct calc_parser *p)
{
	p->depth--;
}

static struct calc_type parse_type(struct calc_parser *p);

/* "(int, double, ...): int", of C functions and callbacks. */
static void parse_c_signature(struct calc_parser *p, struct calc_signature *s)
{
	calc_parser_enter(p);
	calc_parser_expect(p, '(', "before the parameters' types");
	while (p->lx.token != ')' && !s->variadic) {
		s->variadic = calc_parser_accept(p, CALC_TOK_DOTS);
		if (s->variadic && s->nr_params == 0)
			calc_fail(p->c, p->lx.pos, "'...' needs a parameter before it");
		if (s->nr_params == CALC_MAX_PARAMS)
			calc_fail(p->c, p->lx.pos, "more than %d parameters", CALC_MAX_PARAMS);
		if (!s->variadic)
			s->params[s->nr_params++] = parse_type(p);
		if (!calc_parser_accept(p, ','))
			break;
	}
	calc_parser_expect(p, ')', "after the parameters' types");
	if (calc_parser_accept(p, ':'))
		s->result = parse_type(p);
	calc_parser_leave(p);
}

static struct calc_type parse_suffixed(struct calc_parser *p, enum calc_kind plain,
				       enum calc_kind array, enum calc_kind pointer)
{
	struct calc_type type = { .kind = plain };

	if (calc_parser_accept(p, '[')) {
		calc_parser_expect(p, ']', "in the array's type");
		type.kind = array;
	} else if (calc_parser_accept(p, '*')) {
		type.kind = pointer;
	}
	return type;
}

static struct calc_type parse_type(struct calc_parser *p)
{
	struct calc_signature *s;

	if (calc_parser_accept(p, CALC_TOK_INT))
		return parse_suffixed(p, CALC_INT, CALC_INT_ARRAY, CALC_INT_PTR);
	if (calc_parser_accept(p, CALC_TOK_DOUBLE))
		return parse_suffixed(p, CALC_DOUBLE, CALC_DOUBLE_ARRAY, CALC_DOUBLE_PTR);
	if (calc_parser_accept(p, CALC_TOK_INT32))
		return (struct calc_type){ .kind = CALC_INT32 };
	if (calc_parser_accept(p, CALC_TOK_STRING))
		return (struct calc_type){ .kind = CALC_STRING };
	if (!calc_parser_accept(p, CALC_TOK_FUNC))
		calc_parser_unexpected(p, "a type");
	s = calc_alloc(p->c, p->lx.pos, sizeof(*s));
	parse_c_signature(p, s);
	return (struct calc_type){ .kind = CALC_FUNC, .signature = s };
}

static struct calc_stmt *parse_block(struct calc_parser *p);

static struct calc_stmt *stmt_new(struct calc_parser *p, enum calc_stmt_kind kind)
{
	struct calc_stmt *s = calc_alloc(p->c, p->lx.pos, sizeof(*s));

	s->kind = kind;
	s->op = CALC_NO_OP;
	s->pos = p->lx.pos;
	return s;
}

static bool accept_assign(struct calc_parser *p, enum calc_op *op)
{
	static const struct {
		int token;
		enum calc_op op;
	} assigns[] = {
		{ '=', CALC_NO_OP },	       { CALC_TOK_ADD_TO, CALC_ADD },
		{ CALC_TOK_SUB_TO, CALC_SUB }, { CALC_TOK_MUL_TO, CALC_MUL },
		{ CALC_TOK_DIV_TO, CALC_DIV }, { CALC_TOK_MOD_TO, CALC_MOD },
	};

	for (size_t i = 0; i < sizeof(assigns) / sizeof(assigns[0]); i++) {
		if (calc_parser_accept(p, assigns[i].token)) {
			*op = assigns[i].op;
			return true;
		}
	}
	return false;
}

/* An assignment or a call. */
static struct calc_stmt *parse_simple(struct calc_parser *p)
{
	struct calc_stmt *s = stmt_new(p, CALC_STMT_EXPR);

	s->value = calc_parse_expr(p);
	if (accept_assign(p, &s->op)) {
		s->kind = CALC_STMT_ASSIGN;
		s->target = s->value;
		s->value = calc_parse_expr(p);
		if (s->target->kind != CALC_EXPR_NAME && s->target->kind != CALC_EXPR_INDEX)
			calc_fail(p->c, s->target->pos, "cannot assign to this");
	} else if (s->value->kind != CALC_EXPR_CALL) {
		calc_fail(p->c, s->pos, "a statement that does nothing");
	}
	return s;
}

/* The rest of "var name: type = value". */
static struct calc_stmt *parse_var(struct calc_parser *p)
{
	struct calc_stmt *s = stmt_new(p, CALC_STMT_VAR);

	s->name = calc_parser_name(p, "the variable's name");
	if (calc_parser_accept(p, ':'))
		s->type = parse_type(p);
	calc_parser_expect(p, '=', "and the variable's first value");
	s->value = calc_parse_expr(p);
	return s;
}

static struct calc_stmt *parse_if(struct calc_parser *p)
{
	struct calc_stmt *s = stmt_new(p, CALC_STMT_IF);

	calc_parser_enter(p);
	s->value = calc_parse_expr(p);
	s->body = parse_block(p);
	if (calc_parser_accept(p, CALC_TOK_ELSE))
		s->other = calc_parser_accept(p, CALC_TOK_IF) ? parse_if(p) : parse_block(p);
	calc_parser_leave(p);
	return s;
}

static struct calc_stmt *parse_for(struct calc_parser *p)
{
	struct calc_stmt *s = stmt_new(p, CALC_STMT_LOOP);

	if (calc_parser_accept(p, CALC_TOK_VAR))
		s->init = parse_var(p);
	else if (p->lx.token != ';')
		s->init = parse_simple(p);
	calc_parser_expect(p, ';', "after the loop's start");
	if (p->lx.token != ';')
		s->value = calc_parse_expr(p);
	calc_parser_expect(p, ';', "after the loop's condition");
	if (p->lx.token != '{')
		s->step = parse_simple(p);
	s->body = parse_block(p);
	return s;
}

static struct calc_stmt *parse_while(struct calc_parser *p)
{
	struct calc_stmt *s = stmt_new(p, CALC_STMT_LOOP);

	s->value = calc_parse_expr(p);
	s->body = parse_block(p);
	return s;
}

static struct calc_stmt *parse_return(struct calc_parser *p)
{
	struct calc_stmt *s = stmt_new(p, CALC_STMT_RETURN);

	if (p->lx.token != ';')
		s->value = calc_parse_expr(p);
	return s;
}

/* The statements that begin with a word and end in a semicolon, or simple ones. */
static struct calc_stmt *parse_line(struct calc_parser *p)
{
	struct calc_pos pos = p->lx.pos;
	struct calc_stmt *s;

	if (calc_parser_accept(p, CALC_TOK_VAR))
		s = parse_var(p);
	else if (calc_parser_accept(p, CALC_TOK_RETURN))
		s = parse_return(p);
	else if (calc_parser_accept(p, CALC_TOK_BREAK))
		s = stmt_new(p, CALC_STMT_BREAK);
	else if (calc_parser_accept(p, CALC_TOK_CONTINUE))
		s = stmt_new(p, CALC_STMT_CONTINUE);
	else
		s = parse_simple(p);
	s->pos = pos;
	calc_parser_expect(p, ';', "at the end of the statement");
	return s;
}

static struct calc_stmt *parse_stmt(struct calc_parser *p)
{
	if (p->lx.token == '{')
		return parse_block(p);
	if (calc_parser_accept(p, CALC_TOK_IF))
		return parse_if(p);
	if (calc_parser_accept(p, CALC_TOK_WHILE))
		return parse_while(p);
	if (calc_parser_accept(p, CALC_TOK_FOR))
		return parse_for(p);
	return parse_line(p);
}

static struct calc_stmt *parse_block(struct calc_parser *p)
{
	struct calc_stmt *block = stmt_new(p, CALC_STMT_BLOCK);
	struct calc_stmt **tail = &block->body;

	calc_parser_enter(p);
	calc_parser_expect(p, '{', "before the statements");
	while (p->lx.token != '}' && p->lx.token != CALC_TOK_END) {
		*tail = parse_stmt(p);
		tail = &(*tail)->next;
	}
	p->block_end = p->lx.pos;
	calc_parser_expect(p, '}', "after the statements");
	calc_parser_leave(p);
	return block;
}

static struct calc_function *function_new(struct calc_parser *p)
{
	struct calc *c = p->c;
	struct calc_function *f = calc_alloc(c, p->lx.pos, sizeof(*f));

	if (c->nr_functions == CALC_MAX_FUNCTIONS)
		calc_fail(c, p->lx.pos, "more than %d functions", CALC_MAX_FUNCTIONS);
	f->pos = p->lx.pos;
	f->index = c->nr_functions;
	return f;
}

/* In the table only once it has its name. */
static void function_add(struct calc *c, struct calc_function *f)
{
	if (calc_function_find(c, f->name) || calc_builtin_find(f->name) != CALC_NO_BUILTIN)
		calc_fail(c, f->pos, "there is a function '%s' already", f->name);
	c->functions[c->nr_functions++] = f;
}

static void parse_extern(struct calc_parser *p)
{
	struct calc_function *f = function_new(p);

	f->symbol = p->lx.text;
	if (!calc_parser_accept(p, CALC_TOK_TEXT))
		calc_parser_unexpected(p, "the C function's name as a string");
	f->name = p->lx.token == CALC_TOK_NAME ? calc_parser_name(p, "a name") : f->symbol;
	parse_c_signature(p, &f->signature);
	calc_parser_expect(p, ';', "after the declaration");
	function_add(p->c, f);
}

static void parse_function(struct calc_parser *p)
{
	struct calc_function *f = function_new(p);
	struct calc_signature *s = &f->signature;

	f->name = calc_parser_name(p, "the function's name");
	calc_parser_expect(p, '(', "before the parameters");
	while (p->lx.token != ')') {
		if (s->nr_params == CALC_MAX_PARAMS)
			calc_fail(p->c, p->lx.pos, "more than %d parameters", CALC_MAX_PARAMS);
		f->params[s->nr_params] = calc_parser_name(p, "the parameter's name");
		calc_parser_expect(p, ':', "before the parameter's type");
		s->params[s->nr_params++] = parse_type(p);
		if (!calc_parser_accept(p, ','))
			break;
	}
	calc_parser_expect(p, ')', "after the parameters");
	if (calc_parser_accept(p, ':'))
		s->result = parse_type(p);
	function_add(p->c, f);
	f->body = parse_block(p);
	f->end = p->block_end;
}

static void parse_global(struct calc_parser *p)
{
	struct calc *c = p->c;
	struct calc_global *g = &c->globals[c->nr_globals];
	unsigned int index;

	if (c->nr_globals == CALC_MAX_GLOBALS)
		calc_fail(c, p->lx.pos, "more than %d global variables", CALC_MAX_GLOBALS);
	g->pos = p->lx.pos;
	g->name = calc_parser_name(p, "the variable's name");
	if (calc_global_find(c, g->name, &index))
		calc_fail(c, g->pos, "there is a variable '%s' already", g->name);
	if (calc_parser_accept(p, ':'))
		g->type = parse_type(p);
	if (calc_parser_accept(p, '='))
		g->value = calc_parse_expr(p);
	calc_parser_expect(p, ';', "after the variable");
	c->nr_globals++;
}

static void parse_shares(struct calc_parser *p)
{
	struct calc *c = p->c;

	do {
		if (c->nr_shares == CALC_MAX_SHARES)
			calc_fail(c, p->lx.pos, "more than %d shares", CALC_MAX_SHARES);
		c->shares[c->nr_shares].pos = p->lx.pos;
		c->shares[c->nr_shares].name = calc_parser_name(p, "a function's name");
		c->nr_shares++;
	} while (calc_parser_accept(p, ','));
	calc_parser_expect(p, ';', "after the functions' names");
}

void calc_parse(struct calc *c, const char *text, size_t len)
{
	struct calc_parser p = { .c = c };

	calc_lexer_init(&p.lx, c, text, len);
	calc_lexer_next(&p.lx);
	while (p.lx.token != CALC_TOK_END) {
		if (calc_parser_accept(&p, CALC_TOK_EXTERN))
			parse_extern(&p);
		else if (calc_parser_accept(&p, CALC_TOK_FUNC))
			parse_function(&p);
		else if (calc_parser_accept(&p, CALC_TOK_VAR))
			parse_global(&p);
		else if (calc_parser_accept(&p, CALC_TOK_SHARES))
			parse_shares(&p);
		else
			calc_parser_unexpected(&p, "'func', 'extern', 'var' or 'shares'");
	}
}
