/* SPDX-License-Identifier: BSD-2-Clause */
/* Integers in compiled code, against C. */
#include "calc_program.h"

static const int64_t numbers[] = {
	0,
	1,
	-1,
	2,
	-2,
	3,
	7,
	-7,
	10,
	100,
	127,
	128,
	-128,
	-129,
	255,
	4095,
	4096,
	-4095,
	-4096,
	65535,
	65536,
	-65536,
	INT32_MAX,
	INT32_MIN,
	(int64_t)INT32_MAX + 1,
	(int64_t)INT32_MIN - 1,
	UINT32_MAX,
	(int64_t)UINT32_MAX + 1,
	INT64_MAX,
	INT64_MIN,
	INT64_MAX - 1,
	INT64_MIN + 1,
	0x7fff0000ffff0000,
	-0x7fff0000ffff0000,
};

#define NR_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

/* What C leaves undefined wraps around in calc. */
static int64_t wanted(char op, int64_t a, int64_t b)
{
	switch (op) {
	case '+':
		return (int64_t)((uint64_t)a + (uint64_t)b);
	case '-':
		return (int64_t)((uint64_t)a - (uint64_t)b);
	case '*':
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case '/':
		return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
	case '%':
		return b == -1 ? 0 : a % b;
	case '<':
		return a < b;
	case 'l':
		return a <= b;
	case '>':
		return a > b;
	case 'g':
		return a >= b;
	case '=':
		return a == b;
	case '!':
		return a != b;
	case '&':
		return a && b;
	default:
		return a || b;
	}
}

static const struct {
	char op;
	const char *text;
} ops[] = {
	{ '+', "+" },  { '-', "-" },  { '*', "*" },  { '/', "/" },  { '%', "%" },
	{ '<', "<" },  { 'l', "<=" }, { '>', ">" },  { 'g', ">=" }, { '=', "==" },
	{ '!', "!=" }, { '&', "&&" }, { '|', "||" },
};

#define NR_OPS (sizeof(ops) / sizeof(ops[0]))

static bool is_division(char op)
{
	return op == '/' || op == '%';
}

static void operators(void **state)
{
	char text[256];

	(void)state;
	for (size_t o = 0; o < NR_OPS; o++) {
		struct calc *c;

		snprintf(text, sizeof(text), "func f(a: int, b: int): int { return a %s b; }",
			 ops[o].text);
		c = program(text);
		for (size_t i = 0; i < NR_NUMBERS; i++)
			for (size_t j = 0; j < NR_NUMBERS; j++)
				if (!is_division(ops[o].op) || numbers[j] != 0)
					assert_int_equal(call_ints(c, "f", numbers[i], numbers[j]),
							 wanted(ops[o].op, numbers[i], numbers[j]));
		calc_free(c);
	}
}

/* A number on the right becomes part of the instructions, in several forms. */
static void with_numbers(void **state)
{
	char text[256];

	(void)state;
	for (size_t o = 0; o < NR_OPS; o++) {
		for (size_t j = 0; j < NR_NUMBERS; j++) {
			int64_t b = numbers[j];
			struct calc *c;

			if (b == INT64_MIN || (b == 0 && is_division(ops[o].op)))
				continue; /* no literal; refused */
			snprintf(text, sizeof(text),
				 "func f(a: int, b: int): int { return a %s %lld; }", ops[o].text,
				 (long long)b);
			c = program(text);
			for (size_t i = 0; i < NR_NUMBERS; i++)
				assert_int_equal(call_ints(c, "f", numbers[i], 0),
						 wanted(ops[o].op, numbers[i], b));
			calc_free(c);
		}
	}
}

static void conditions(void **state)
{
	char text[256];

	(void)state;
	for (size_t o = 5; o < NR_OPS; o++) {
		struct calc *c;

		snprintf(text, sizeof(text),
			 "func f(a: int, b: int): int { if a %s b { return 10; } return 20; }\n"
			 "func g(a: int, b: int): int { if !(a %s b) { return 10; } return 20; }",
			 ops[o].text, ops[o].text);
		c = program(text);
		for (size_t i = 0; i < NR_NUMBERS; i++) {
			for (size_t j = 0; j < NR_NUMBERS; j++) {
				int64_t is = wanted(ops[o].op, numbers[i], numbers[j]);

				assert_int_equal(call_ints(c, "f", numbers[i], numbers[j]),
						 is ? 10 : 20);
				assert_int_equal(call_ints(c, "g", numbers[i], numbers[j]),
						 is ? 20 : 10);
			}
		}
		calc_free(c);
	}
}

static void unary(void **state)
{
	struct calc *c = program("func n(a: int, b: int): int { return -a; }\n"
				 "func nn(a: int, b: int): int { return - -a; }\n"
				 "func no(a: int, b: int): int { return !a; }\n"
				 "func nono(a: int, b: int): int { return !!a; }\n");

	(void)state;
	for (size_t i = 0; i < NR_NUMBERS; i++) {
		assert_int_equal(call_ints(c, "n", numbers[i], 0), wanted('-', 0, numbers[i]));
		assert_int_equal(call_ints(c, "nn", numbers[i], 0), numbers[i]);
		assert_int_equal(call_ints(c, "no", numbers[i], 0), !numbers[i]);
		assert_int_equal(call_ints(c, "nono", numbers[i], 0), !!numbers[i]);
	}
	calc_free(c);
}

/* What C says of the same text. */
#define SAME_AS_C(expr)                                                                            \
	assert_int_equal(                                                                          \
		run("func f(): int { var a = 1; var b = 2; var c = 3; return " #expr ";}").i,      \
		expr)

static void precedence(void **state)
{
	(void)state;
	assert_int_equal(run_int("2 + 3 * 4"), 2 + 3 * 4);
	assert_int_equal(run_int("(2 + 3) * 4"), (2 + 3) * 4);
	assert_int_equal(run_int("20 - 3 - 4"), 20 - 3 - 4);
	assert_int_equal(run_int("100 / 5 / 2 * 3 % 7"), 100 / 5 / 2 * 3 % 7);
	assert_int_equal(run_int("1 + 2 < 4 == 1"), 1);
	assert_int_equal(run_int("1 || 0 && 0"), 1);
	assert_int_equal(run_int("(1 || 0) && 0"), 0);
	assert_int_equal(run_int("1 == 1 && 2 > 1 || 0"), 1);
	assert_int_equal(run_int("-2 * -3"), 6);
	assert_int_equal(run_int("!1 + 1"), 1);
	assert_int_equal(run_int("10 - -10"), 20);
	assert_int_equal(run_int("-7 / 2"), -3);
	assert_int_equal(run_int("-7 % 3"), -1);
}

/* More values at once than there are registers. */
static void deep(void **state)
{
	const int64_t a = 1, b = 2, c = 3;

	(void)state;
	SAME_AS_C(1 + (2 * (3 + (4 * (5 + (6 * (7 + (8 * (9 + (10 * (11 - (12 - a))))))))))));
	SAME_AS_C(a + (b * (c + (a - (b * (c + (a - (b + (c * (a + (b - (c * (a - b)))))))))))));
	SAME_AS_C((a + b) * ((b + c) * ((c + a) * ((a + a) * ((b + b) * ((c + c) * (a - b)))))));
	SAME_AS_C(a / (b - (c % (a + (b / (c - (a % (b + (c / (a + (b % (c + c))))))))))));
	SAME_AS_C(a - (b < (c - (a <= (b - (c > (a - (b >= (c - (a == (b - (c != a))))))))))));
}

static void division_by_zero(void **state)
{
	(void)state;
	assert_string_equal(error_of("func main() {}\nfunc f(): int {\n var x = 0;\n"
				     " return 5 / x;\n}"),
			    "t.calc:4:11: division by zero");
	assert_string_equal(error_of("func main() {}\nfunc f() {\n var x = 0;\n x %= x;\n}"),
			    "t.calc:4:2: division by zero");
	assert_string_equal(error_of("func main() {}\nfunc f() { var a = int[1]; a[0] /= a[0]; }"),
			    "t.calc:2:28: division by zero");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators),	    cmocka_unit_test(with_numbers),
		cmocka_unit_test(conditions),	    cmocka_unit_test(unary),
		cmocka_unit_test(precedence),	    cmocka_unit_test(deep),
		cmocka_unit_test(division_by_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
