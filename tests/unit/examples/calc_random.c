/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random expressions, evaluated by compiled code and by an evaluator of their syntax trees, which
 * shares nothing with the code generator but the trees.
 */
#include "calc_program.h"
#include "calc_internal.h"

#include <math.h>

#define NR_PROGRAMS 400
#define NR_INPUTS   4

static uint64_t seed;

static unsigned int below(unsigned int n)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (unsigned int)(seed >> 33) % n;
}

struct writer {
	char text[65536];
	size_t len;
};

static void put(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	w->len += (size_t)vsnprintf(w->text + w->len, sizeof(w->text) - w->len, fmt, args);
	va_end(args);
	assert_true(w->len < sizeof(w->text));
}

static void write_expr(struct writer *w, unsigned int depth, bool is_double);

static void write_leaf(struct writer *w, bool is_double)
{
	static const char *const numbers[] = { "0",
					       "1",
					       "-1",
					       "2",
					       "-7",
					       "100",
					       "4095",
					       "4096",
					       "-2147483648",
					       "2147483648",
					       "9223372036854775807",
					       "65537" };
	static const char *const reals[] = { "0.0", "1.5", "-2.25", "1e10", "0.1", "-1e-5" };

	switch (below(4)) {
	case 0:
		put(w, "%s", is_double ? reals[below(6)] : numbers[below(12)]);
		break;
	case 1:
		put(w, is_double ? "gd" : "gi");
		break;
	default:
		put(w, "%c", is_double ? "xyz"[below(3)] : "abc"[below(3)]);
	}
}

/* Divisors are made so that they cannot be 0, and results stay within what int() takes. */
static void write_special(struct writer *w, unsigned int depth, bool is_double)
{
	put(w, "(");
	if (is_double) {
		put(w, below(2) ? "double(" : "hd(");
		write_expr(w, depth - 1, false);
		put(w, ")");
	} else if (below(3) == 0) {
		put(w, "hi(");
		write_expr(w, depth - 1, false);
		put(w, ", ");
		write_expr(w, depth - 1, true);
		put(w, ")");
	} else {
		write_expr(w, depth - 1, false);
		put(w, "%s", below(2) ? " / (1 + 2 * " : " % (1 + 2 * ");
		write_expr(w, depth - 1, false);
		put(w, ")");
	}
	put(w, ")");
}

static void write_compare(struct writer *w, unsigned int depth)
{
	static const char *const ops[] = { "<", "<=", ">", ">=", "==", "!=" };
	bool of_doubles = below(2);

	put(w, "(");
	write_expr(w, depth - 1, of_doubles);
	put(w, " %s ", ops[below(6)]);
	write_expr(w, depth - 1, of_doubles);
	put(w, ")");
}

static void write_logic(struct writer *w, unsigned int depth)
{
	put(w, "%s(", below(2) ? "!" : "");
	write_expr(w, depth - 1, false);
	put(w, "%s", below(2) ? " && " : " || ");
	write_expr(w, depth - 1, false);
	put(w, ")");
}

static void write_expr(struct writer *w, unsigned int depth, bool is_double)
{
	unsigned int kind = below(10);

	if (depth == 0 || kind == 0) {
		write_leaf(w, is_double);
	} else if (kind == 1) {
		write_special(w, depth, is_double);
	} else if (kind == 2) {
		put(w, "-(");
		write_expr(w, depth - 1, is_double);
		put(w, ")");
	} else if (!is_double && kind == 3) {
		write_compare(w, depth);
	} else if (!is_double && kind == 4) {
		write_logic(w, depth);
	} else {
		put(w, "(");
		write_expr(w, depth - 1, is_double && below(3));
		put(w, " %c ", is_double ? "+-*/"[below(4)] : "+-*"[below(3)]);
		write_expr(w, depth - 1, is_double);
		put(w, ")");
	}
}

struct env {
	union calc_value params[6];
	const struct calc *c;
};

static union calc_value eval(const struct env *env, const struct calc_expr *e);

static union calc_value eval_ints(enum calc_op op, int64_t a, int64_t b)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b;

	switch (op) {
	case CALC_ADD:
		return (union calc_value){ .i = (int64_t)(x + y) };
	case CALC_SUB:
		return (union calc_value){ .i = (int64_t)(x - y) };
	case CALC_MUL:
		return (union calc_value){ .i = (int64_t)(x * y) };
	case CALC_DIV:
		return (union calc_value){ .i = b == -1 ? (int64_t)(0 - x) : a / b };
	case CALC_MOD:
		return (union calc_value){ .i = b == -1 ? 0 : a % b };
	case CALC_EQ:
		return (union calc_value){ .i = a == b };
	case CALC_NE:
		return (union calc_value){ .i = a != b };
	case CALC_LT:
		return (union calc_value){ .i = a < b };
	case CALC_LE:
		return (union calc_value){ .i = a <= b };
	case CALC_GT:
		return (union calc_value){ .i = a > b };
	default:
		return (union calc_value){ .i = a >= b };
	}
}

static union calc_value eval_doubles(enum calc_op op, double a, double b)
{
	switch (op) {
	case CALC_ADD:
		return (union calc_value){ .d = a + b };
	case CALC_SUB:
		return (union calc_value){ .d = a - b };
	case CALC_MUL:
		return (union calc_value){ .d = a * b };
	case CALC_DIV:
		return (union calc_value){ .d = a / b };
	case CALC_EQ:
		return (union calc_value){ .i = a == b };
	case CALC_NE:
		return (union calc_value){ .i = a != b };
	case CALC_LT:
		return (union calc_value){ .i = a < b };
	case CALC_LE:
		return (union calc_value){ .i = a <= b };
	case CALC_GT:
		return (union calc_value){ .i = a > b };
	default:
		return (union calc_value){ .i = a >= b };
	}
}

static union calc_value eval_binary(const struct env *env, const struct calc_expr *e)
{
	union calc_value left = eval(env, e->left), right;

	if (e->op == CALC_AND || e->op == CALC_OR) {
		if (!left.i == (e->op == CALC_AND))
			return (union calc_value){ .i = e->op == CALC_OR };
		return (union calc_value){ .i = eval(env, e->right).i != 0 };
	}
	right = eval(env, e->right);
	if (e->left->type.kind == CALC_DOUBLE)
		return eval_doubles(e->op, left.d, right.d);
	return eval_ints(e->op, left.i, right.i);
}

static union calc_value eval_unary(const struct env *env, const struct calc_expr *e)
{
	union calc_value v = eval(env, e->left);

	if (e->op == CALC_NOT)
		v.i = !v.i;
	else if (e->type.kind == CALC_DOUBLE)
		v.d = -v.d;
	else
		v.i = (int64_t)(0 - (uint64_t)v.i);
	return v;
}

/* hd and hi, as the program below has them. */
static union calc_value eval_call(const struct env *env, const struct calc_expr *e)
{
	union calc_value first = eval(env, e->args), second;

	if (strcmp(e->text, "hd") == 0)
		return (union calc_value){ .d = (double)first.i / 3 };
	second = eval(env, e->args->next);
	return eval_ints(CALC_ADD, first.i, second.d > 1);
}

static union calc_value eval(const struct env *env, const struct calc_expr *e)
{
	union calc_value v;

	switch (e->kind) {
	case CALC_EXPR_NAME:
		if (e->place.where == CALC_PARAM)
			return env->params[e->place.index];
		return env->c->globals[e->place.index - 1].first;
	case CALC_EXPR_UNARY:
		return eval_unary(env, e);
	case CALC_EXPR_BINARY:
		return eval_binary(env, e);
	case CALC_EXPR_CONVERT:
		v = eval(env, e->left);
		if (e->left->type.kind == CALC_INT)
			v.d = (double)v.i;
		return v;
	case CALC_EXPR_CALL:
		return eval_call(env, e);
	default:
		return e->value;
	}
}

static bool same(const struct calc_expr *e, union calc_value a, union calc_value b)
{
	if (e->type.kind == CALC_DOUBLE && isnan(a.d))
		return isnan(b.d);
	return a.i == b.i;
}

static void compare(struct calc *c, const char *name, const char *text)
{
	static const double doubles[] = { 0, 1, -1, 0.5, 1e18, -3.75 };
	static const int64_t ints[] = { 0, 1, -1, 5, INT64_MAX, INT64_MIN, 1 << 20, -12345 };
	const struct calc_expr *e = calc_function_find(c, name)->body->body->value;
	struct env env = { .c = c };

	for (unsigned int i = 0; i < NR_INPUTS; i++) {
		for (unsigned int p = 0; p < 3; p++) {
			env.params[p].i = ints[below(8)];
			env.params[3 + p].d = doubles[below(6)];
		}
		if (!same(e, eval(&env, e), call(c, name, 6, env.params)))
			fail_msg("%s of:\n%s", name, text);
	}
}

static void expressions(void **state)
{
	static const char params[] = "a: int, b: int, c: int, x: double, y: double, z: double";
	static struct writer w;

	(void)state;
	for (unsigned int i = 0; i < NR_PROGRAMS; i++) {
		struct calc *c;

		seed = i;
		w.len = 0;
		put(&w, "var gi = 77; var gd = -0.5;\n"
			"func hd(i: int): double { return i / 3.0; }\n"
			"func hi(i: int, d: double): int { return i + (d > 1); }\n");
		put(&w, "func i(%s): int { return ", params);
		write_expr(&w, 1 + i % 8, false);
		put(&w, "; }\nfunc d(%s): double { return ", params);
		write_expr(&w, 1 + i % 8, true);
		put(&w, "; }\n");
		c = program(w.text);
		compare(c, "i", w.text);
		compare(c, "d", w.text);
		calc_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
