/* SPDX-License-Identifier: BSD-2-Clause */
/* Doubles in compiled code, against C. */
#include "calc_program.h"

#include <math.h>

static const double numbers[] = {
	0.0,	 -0.0,	   1.0,	      -1.0,   0.5,
	3.25,	 1e300,	   -1e300,    1e-300, 7.0,
	2.0,	 INFINITY, -INFINITY, NAN,    9007199254740993.0,
	1.0 / 3,
};

#define NR_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static double call_doubles(struct calc *c, const char *name, double a, double b)
{
	return call(c, name, 2, (union calc_value[]){ { .d = a }, { .d = b } }).d;
}

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static void arithmetic(void **state)
{
	struct calc *c = program("func add(a: double, b: double): double { return a + b; }\n"
				 "func sub(a: double, b: double): double { return a - b; }\n"
				 "func mul(a: double, b: double): double { return a * b; }\n"
				 "func div(a: double, b: double): double { return a / b; }\n"
				 "func neg(a: double, b: double): double { return -a; }\n");

	(void)state;
	for (size_t i = 0; i < NR_NUMBERS; i++) {
		for (size_t j = 0; j < NR_NUMBERS; j++) {
			double a = numbers[i], b = numbers[j];

			assert_true(same(call_doubles(c, "add", a, b), a + b));
			assert_true(same(call_doubles(c, "sub", a, b), a - b));
			assert_true(same(call_doubles(c, "mul", a, b), a * b));
			assert_true(same(call_doubles(c, "div", a, b), a / b));
			assert_true(same(call_doubles(c, "neg", a, b), -a));
		}
	}
	calc_free(c);
}

static int wanted(unsigned int op, double a, double b)
{
	switch (op) {
	case 0:
		return a < b;
	case 1:
		return a <= b;
	case 2:
		return a > b;
	case 3:
		return a >= b;
	case 4:
		return a == b;
	default:
		return a != b;
	}
}

/* As values, as conditions, and negated, which differ where a side is not a number. */
static void comparisons(void **state)
{
	static const char *const ops[] = { "<", "<=", ">", ">=", "==", "!=" };
	char text[512];

	(void)state;
	for (unsigned int o = 0; o < 6; o++) {
		struct calc *c;

		snprintf(text, sizeof(text),
			 "func v(a: double, b: double): int { return a %s b; }\n"
			 "func w(a: double, b: double): int { return a %s b + 0.0; }\n"
			 "func c(a: double, b: double): int { if a %s b { return 1; } return 0; }\n"
			 "func n(a: double, b: double): int { if !(a %s b) { return 0; } return 1; "
			 "}\n"
			 "func l(a: double, b: double): int { while a %s b { return 1; } return 0; "
			 "}\n",
			 ops[o], ops[o], ops[o], ops[o], ops[o]);
		c = program(text);
		for (size_t i = 0; i < NR_NUMBERS; i++) {
			for (size_t j = 0; j < NR_NUMBERS; j++) {
				union calc_value args[] = { { .d = numbers[i] },
							    { .d = numbers[j] } };
				int want = wanted(o, numbers[i], numbers[j]);

				for (const char *f = "vwcnl"; *f; f++)
					assert_int_equal(call(c, (char[]){ *f, 0 }, 2, args).i,
							 want);
			}
		}
		calc_free(c);
	}
}

static void mixed(void **state)
{
	(void)state;
	assert_true(run_double("1 / 2") == 0); /* of ints, then converted */
	assert_true(run_double("1 / 2.0") == 0.5);
	assert_true(run_double("1.0 / 2") == 0.5);
	assert_true(run_double("7 % 4 * 1.5") == 4.5);
	assert_true(run_double("double(7) / 2") == 3.5);
	assert_true(run_double("2") == 2.0);
	assert_int_equal(run_int("1 < 1.5"), 1);
	assert_int_equal(run_int("2 == 2.0"), 1);
	assert_int_equal(run_int("int(7.9) + int(-7.9)"), 0);
	assert_int_equal(run_int("int(double(3)) + int(3)"), 6);
	assert_true(run("func f(): double { var x = 3; var y: double = x; y += 1; y *= x;"
			" return y / 8; }")
			    .d == 1.5);
	assert_true(run("func f(): double { var x = 3; return x - 0.5 - x * 2; }").d == -3.5);
}

/* What C says of the same text. */
#define SAME_AS_C(expr)                                                                            \
	assert_true(                                                                               \
		run("func f(): double { var a = 1.5; var b = 2.25; var c = -3.0; return " #expr    \
		    ";}")                                                                          \
			.d == (expr))

static void deep(void **state)
{
	const double a = 1.5, b = 2.25, c = -3.0;

	(void)state;
	SAME_AS_C(a - (b * (c + (a / (b * (c + (a - (b + (c * (a + (b - (c * (a - b)))))))))))));
	SAME_AS_C((a + b) * ((b + c) / ((c + a) * ((a + a) / ((b + b) * ((c + c) - (a - b)))))));
}

static void to_int(void **state)
{
	static const double fits[] = { 0, -0.9, 9.99e17, -9.2e18, 9223372036854774784.0 };
	static const double not [] = { 9223372036854775808.0, -9223372036854777856.0, 1e300,
				       -INFINITY, NAN };
	struct calc *c = program("func f(x: double): int {\n return int(x);\n}");
	struct calc_err err;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		union calc_value arg = { .d = fits[i] };

		assert_int_equal(call(c, "f", 1, &arg).i, (int64_t)fits[i]);
		arg.d = not [i];
		assert_int_equal(calc_call(c, "f", &arg, 1, NULL, &err), -1);
		assert_string_equal(err.text, "t.calc:2:9: number does not fit an int");
	}
	calc_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arithmetic), cmocka_unit_test(comparisons),
		cmocka_unit_test(mixed),      cmocka_unit_test(deep),
		cmocka_unit_test(to_int),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
