/* SPDX-License-Identifier: BSD-2-Clause */
/* The syntax tree in words, for "calc -ast": one statement a line, expressions in brackets. */
#include "calc_internal.h"

static void print_expr(FILE *out, const struct calc_expr *e);

static void print_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '\n' || *text == '\t')
			fprintf(out, "\\%c", *text == '\n' ? 'n' : 't');
		else
			fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	}
	fputc('"', out);
}

static void print_node(FILE *out, const char *name, const struct calc_expr *e)
{
	fprintf(out, "(%s", name);
	for (const struct calc_expr *a = e->left; a; a = a == e->left ? e->right : NULL) {
		fputc(' ', out);
		print_expr(out, a);
	}
	for (const struct calc_expr *a = e->args; a; a = a->next) {
		fputc(' ', out);
		print_expr(out, a);
	}
	fputc(')', out);
}

static void print_expr(FILE *out, const struct calc_expr *e)
{
	switch (e->kind) {
	case CALC_EXPR_INT:
		fprintf(out, "%lld", (long long)e->value.i);
		break;
	case CALC_EXPR_DOUBLE:
		fprintf(out, "%#.10g", e->value.d);
		break;
	case CALC_EXPR_STRING:
		print_string(out, e->text);
		break;
	case CALC_EXPR_NAME:
		fputs(e->text, out);
		break;
	case CALC_EXPR_UNARY:
	case CALC_EXPR_BINARY:
		print_node(out, calc_op_name(e->op), e);
		break;
	case CALC_EXPR_CONVERT:
		print_node(out, calc_type_name(e->type), e);
		break;
	case CALC_EXPR_CALL:
		print_node(out, e->text, e);
		break;
	case CALC_EXPR_INDEX:
		print_node(out, "[]", e);
		break;
	case CALC_EXPR_NEW:
		print_node(out, "new", e);
		break;
	}
}

static void print_stmt(FILE *out, const struct calc_stmt *s, int depth);

/* A line: line number, the statement's word, expressions. */
static void print_line(FILE *out, const struct calc_stmt *s, int depth, const char *word,
		       const struct calc_expr *first, const struct calc_expr *second)
{
	fprintf(out, "%4u %*s%s", s->pos.line, 2 * depth, "", word);
	if (first) {
		fputc(' ', out);
		print_expr(out, first);
	}
	if (second) {
		fputc(' ', out);
		print_expr(out, second);
	}
	fputc('\n', out);
}

static void print_loop(FILE *out, const struct calc_stmt *s, int depth)
{
	if (s->init)
		print_stmt(out, s->init, depth);
	print_line(out, s, depth, "loop", s->value, NULL);
	print_stmt(out, s->body, depth + 1);
	if (s->step) {
		print_line(out, s, depth, "step", NULL, NULL);
		print_stmt(out, s->step, depth + 1);
	}
}

static void print_assign(FILE *out, const struct calc_stmt *s, int depth)
{
	char word[8];

	snprintf(word, sizeof(word), "%s=", s->op == CALC_NO_OP ? "" : calc_op_name(s->op));
	print_line(out, s, depth, word, s->target, s->value);
}

static void print_if(FILE *out, const struct calc_stmt *s, int depth)
{
	print_line(out, s, depth, "if", s->value, NULL);
	print_stmt(out, s->body, depth + 1);
	if (s->other) {
		print_line(out, s->other, depth, "else", NULL, NULL);
		print_stmt(out, s->other, depth + 1);
	}
}

static void print_stmt(FILE *out, const struct calc_stmt *s, int depth)
{
	char var[96];

	switch (s->kind) {
	case CALC_STMT_BLOCK:
		for (const struct calc_stmt *inner = s->body; inner; inner = inner->next)
			print_stmt(out, inner, depth);
		break;
	case CALC_STMT_VAR:
		snprintf(var, sizeof(var), "var %s: %s", s->name, calc_type_name(s->type));
		print_line(out, s, depth, var, s->value, NULL);
		break;
	case CALC_STMT_ASSIGN:
		print_assign(out, s, depth);
		break;
	case CALC_STMT_IF:
		print_if(out, s, depth);
		break;
	case CALC_STMT_LOOP:
		print_loop(out, s, depth);
		break;
	case CALC_STMT_EXPR:
		print_line(out, s, depth, "do", s->value, NULL);
		break;
	case CALC_STMT_RETURN:
		print_line(out, s, depth, "return", s->value, NULL);
		break;
	case CALC_STMT_BREAK:
		print_line(out, s, depth, "break", NULL, NULL);
		break;
	case CALC_STMT_CONTINUE:
		print_line(out, s, depth, "continue", NULL, NULL);
		break;
	}
}

static void print_function(FILE *out, const struct calc_function *f)
{
	const struct calc_signature *s = &f->signature;

	fprintf(out, "%4u %s %s(", f->pos.line, f->body ? "func" : "extern", f->name);
	for (unsigned int i = 0; i < s->nr_params; i++)
		fprintf(out, "%s%s%s%s", i > 0 ? ", " : "", f->body ? f->params[i] : "",
			f->body ? ": " : "", calc_type_name(s->params[i]));
	fprintf(out, "%s): %s\n", s->variadic ? ", ..." : "", calc_type_name(s->result));
	if (f->body)
		print_stmt(out, f->body, 1);
}

void calc_print_ast(struct calc *c, FILE *out)
{
	for (unsigned int i = 0; i < c->nr_globals; i++) {
		const struct calc_global *g = &c->globals[i];

		fprintf(out, "%4u var %s: %s", g->pos.line, g->name, calc_type_name(g->type));
		if (g->value) {
			fputc(' ', out);
			print_expr(out, g->value);
		}
		fputc('\n', out);
	}
	for (unsigned int i = 0; i < c->nr_functions; i++)
		print_function(out, c->functions[i]);
}
