/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and types: after this, a program has no error left but those of its run. */
#include <dlfcn.h>
#include <string.h>

#include "check.h"

static void check_stmt(struct calc_checker *k, struct calc_stmt *s);

static void check_block(struct calc_checker *k, struct calc_stmt *block)
{
	unsigned int nr_variables = k->nr_variables, nr_slots = k->nr_slots;

	for (struct calc_stmt *s = block->body; s; s = s->next)
		check_stmt(k, s);
	k->nr_variables = nr_variables;
	k->nr_slots = nr_slots;
}

/* Those of C functions are not for the program's own variables. */
static void need_own_type(struct calc *c, struct calc_pos pos, struct calc_type type)
{
	if (type.kind == CALC_INT32 || type.kind == CALC_FUNC)
		calc_fail(c, pos, "only C functions have the type %s", calc_type_name(type));
}

static void add_variable(struct calc_checker *k, struct calc_pos pos, const struct calc_variable *v)
{
	if (v->place.where == CALC_LOCAL) {
		if (k->nr_slots == CALC_MAX_LOCALS)
			calc_fail(k->c, pos, "more than %d variables", CALC_MAX_LOCALS);
		k->nr_slots++;
		if (k->nr_slots > k->f->nr_locals)
			k->f->nr_locals = k->nr_slots;
	}
	k->variables[k->nr_variables++] = *v;
}

static void check_var(struct calc_checker *k, struct calc_stmt *s)
{
	calc_check_expr(k, s->value);
	if (s->type.kind == CALC_VOID)
		s->type = s->value->type;
	need_own_type(k->c, s->pos, s->type);
	calc_check_convert(k, &s->value, s->type);
	s->place = (struct calc_place){ CALC_LOCAL, k->nr_slots };
	add_variable(
		k, s->pos,
		&(struct calc_variable){ .name = s->name, .type = s->type, .place = s->place });
}

static void check_assign(struct calc_checker *k, struct calc_stmt *s)
{
	struct calc_expr *target = s->target;

	calc_check_expr(k, target);
	calc_check_expr(k, s->value);
	if (s->op != CALC_NO_OP)
		calc_check_arithmetic(k, s->pos, s->op, &target, &s->value);
	/* A target that had to be converted is an int to which a double would go. */
	calc_check_convert(k, &s->value, s->target->type);
}

static void check_condition(struct calc_checker *k, const struct calc_expr *e)
{
	if (e->type.kind != CALC_INT)
		calc_fail(k->c, e->pos, "a condition is an int, not %s", calc_type_name(e->type));
}

static void check_if(struct calc_checker *k, struct calc_stmt *s)
{
	calc_check_expr(k, s->value);
	check_condition(k, s->value);
	check_stmt(k, s->body);
	if (s->other)
		check_stmt(k, s->other);
}

static void check_loop(struct calc_checker *k, struct calc_stmt *s)
{
	unsigned int nr_variables = k->nr_variables, nr_slots = k->nr_slots;

	if (s->init)
		check_stmt(k, s->init);
	if (s->value) {
		calc_check_expr(k, s->value);
		check_condition(k, s->value);
	}
	k->nr_loops++;
	check_stmt(k, s->body);
	k->nr_loops--;
	if (s->step)
		check_stmt(k, s->step);
	k->nr_variables = nr_variables;
	k->nr_slots = nr_slots;
}

static void check_return(struct calc_checker *k, struct calc_stmt *s)
{
	struct calc_type want = k->f->signature.result;

	if (!s->value && want.kind != CALC_VOID)
		calc_fail(k->c, s->pos, "'%s' returns %s", k->f->name, calc_type_name(want));
	if (!s->value)
		return;
	if (want.kind == CALC_VOID)
		calc_fail(k->c, s->pos, "'%s' returns nothing", k->f->name);
	calc_check_expr(k, s->value);
	calc_check_convert(k, &s->value, want);
}

static void check_stmt(struct calc_checker *k, struct calc_stmt *s)
{
	switch (s->kind) {
	case CALC_STMT_BLOCK:
		check_block(k, s);
		break;
	case CALC_STMT_VAR:
		check_var(k, s);
		break;
	case CALC_STMT_ASSIGN:
		check_assign(k, s);
		break;
	case CALC_STMT_EXPR:
		calc_check_expr(k, s->value);
		break;
	case CALC_STMT_IF:
		check_if(k, s);
		break;
	case CALC_STMT_LOOP:
		check_loop(k, s);
		break;
	case CALC_STMT_RETURN:
		check_return(k, s);
		break;
	case CALC_STMT_BREAK:
	case CALC_STMT_CONTINUE:
		if (k->nr_loops == 0)
			calc_fail(k->c, s->pos, "not within a loop");
		break;
	}
}

/* What C calls knows no lengths, and cannot be handed on. */
static void check_callback_type(struct calc *c, const struct calc_function *f,
				const struct calc_signature *s)
{
	bool bad = s->variadic || s->result.kind == CALC_FUNC || calc_is_array(s->result);

	for (unsigned int i = 0; i < s->nr_params; i++)
		bad |= s->params[i].kind == CALC_FUNC || calc_is_array(s->params[i]);
	if (bad)
		calc_fail(c, f->pos, "a callback has neither arrays, callbacks nor '...'");
}

static void check_extern(struct calc *c, struct calc_function *f)
{
	const struct calc_signature *s = &f->signature;

	if (s->result.kind == CALC_FUNC || calc_is_array(s->result))
		calc_fail(c, f->pos, "a C function cannot return %s", calc_type_name(s->result));
	for (unsigned int i = 0; i < s->nr_params; i++)
		if (s->params[i].kind == CALC_FUNC)
			check_callback_type(c, f, s->params[i].signature);
	f->address = dlsym(RTLD_DEFAULT, f->symbol);
	if (!f->address)
		calc_fail(c, f->pos, "no C function '%s' in this process", f->symbol);
}

static void check_function(struct calc *c, struct calc_function *f)
{
	struct calc_checker k = { .c = c, .f = f };

	need_own_type(c, f->pos, f->signature.result);
	for (unsigned int i = 0; i < f->signature.nr_params; i++) {
		need_own_type(c, f->pos, f->signature.params[i]);
		for (unsigned int j = 0; j < i; j++)
			if (strcmp(f->params[i], f->params[j]) == 0)
				calc_fail(c, f->pos, "two parameters '%s'", f->params[i]);
		add_variable(&k, f->pos,
			     &(struct calc_variable){ .name = f->params[i],
						      .type = f->signature.params[i],
						      .place = { CALC_PARAM, i } });
	}
	check_block(&k, f->body);
}

static void check_global(struct calc *c, struct calc_global *g)
{
	struct calc_checker k = { .c = c };

	if (g->value) {
		calc_check_expr(&k, g->value);
		if (g->type.kind == CALC_VOID)
			g->type = g->value->type;
		calc_check_convert(&k, &g->value, g->type);
		if (g->value->kind > CALC_EXPR_STRING)
			calc_fail(c, g->value->pos, "a global variable begins as a constant");
		g->first = g->value->value;
		if (g->type.kind == CALC_STRING)
			g->first.p = g->value->text;
	} else if (calc_is_array(g->type)) {
		g->first.p = calc_runtime_empty_array();
	} else if (g->type.kind == CALC_STRING) {
		g->first.p = "";
	} else if (g->type.kind == CALC_VOID) {
		calc_fail(c, g->pos, "'%s' needs a type or a value", g->name);
	}
	need_own_type(c, g->pos, g->type);
}

static void check_share(struct calc *c, unsigned int index)
{
	struct calc_function *f = calc_function_find(c, c->shares[index].name);

	if (!f || !f->body)
		calc_fail(c, c->shares[index].pos, "no function '%s' in this program",
			  c->shares[index].name);
	if (f->share)
		calc_fail(c, c->shares[index].pos, "'%s' has a share already", f->name);
	f->share = index + 1;
}

static void check_main(struct calc *c)
{
	const struct calc_function *f = calc_function_find(c, "main");

	if (!f || !f->body)
		calc_fail(c, (struct calc_pos){ 1, 1 }, "no function 'main'");
	if (f->signature.nr_params > 0)
		calc_fail(c, f->pos, "'main' has no parameters");
	if (f->signature.result.kind != CALC_VOID && f->signature.result.kind != CALC_INT)
		calc_fail(c, f->pos, "'main' returns int or nothing");
}

void calc_check(struct calc *c)
{
	/* Globals first: functions use their types. */
	for (unsigned int i = 0; i < c->nr_globals; i++)
		check_global(c, &c->globals[i]);
	for (unsigned int i = 0; i < c->nr_functions; i++)
		if (!c->functions[i]->body)
			check_extern(c, c->functions[i]);
	for (unsigned int i = 0; i < c->nr_functions; i++)
		if (c->functions[i]->body)
			check_function(c, c->functions[i]);
	for (unsigned int i = 0; i < c->nr_shares; i++)
		check_share(c, i);
	check_main(c);
}
