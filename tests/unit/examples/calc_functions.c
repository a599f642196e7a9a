/* SPDX-License-Identifier: BSD-2-Clause */
#include "calc_program.h"

static int64_t fib(int64_t n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void recursion(void **state)
{
	struct calc *c = program(
		"func fib(n: int): int { if n < 2 { return n; } return fib(n-1) + fib(n-2); }\n"
		"func even(a: int, b: int): int { if a == 0 { return 1; } return odd(a - 1, b); }\n"
		"func odd(a: int, b: int): int { if a == 0 { return 0; } return even(a - 1, b); }\n"
		"func ack(m: int, n: int): int { if m == 0 { return n + 1; }\n"
		"  if n == 0 { return ack(m - 1, 1); } return ack(m - 1, ack(m, n - 1)); }\n"
		"func power(x: double, n: int): double {\n"
		"  if n == 0 { return 1; } return x * power(x, n - 1); }\n");
	union calc_value args[2] = { { .i = 20 } };

	(void)state;
	assert_int_equal(call(c, "fib", 1, args).i, fib(20));
	assert_int_equal(call_ints(c, "even", 1000, 0), 1);
	assert_int_equal(call_ints(c, "odd", 1000, 0), 0);
	assert_int_equal(call_ints(c, "ack", 2, 3), 9);
	args[0].d = 1.5;
	args[1].i = 10;
	assert_true(call(c, "power", 2, args).d == 57.6650390625);
	calc_free(c);
}

static void many_arguments(void **state)
{
	static const char list[] =
		"a: int, b: double, c: int, d: double, e: int, f: double, g: int, h: double,"
		"i: int, j: double, k: int, l: double, m: int, n: double, o: int, p: double";
	char text[1024];
	union calc_value args[16];
	struct calc *c;
	double want = 0;

	(void)state;
	snprintf(
		text, sizeof(text),
		"func sum(%s): double {\n"
		"  return a+2*b+3*c+4*d+5*e+6*f+7*g+8*h+9*i+10*j+11*k+12*l+13*m+14*n+15*o+16*p; }\n"
		"func pass(%s): double {\n"
		"  var x = 3.0; return x * sum(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p) - x; }\n",
		list, list);
	c = program(text);
	for (int i = 0; i < 16; i++) {
		if (i % 2)
			args[i].d = i * 1.25;
		else
			args[i].i = -i * 1000;
		want += (i + 1) * (i % 2 ? i * 1.25 : -i * 1000.0);
	}
	assert_true(call(c, "sum", 16, args).d == want);
	assert_true(call(c, "pass", 16, args).d == 3 * want - 3);
	calc_free(c);
}

/* Values computed before a call must survive it. */
static void calls_in_expressions(void **state)
{
	(void)state;
	assert_int_equal(
		run("func g(x: int): int { var a = x*7; return (a+1)*(a+2)-(a*a+3*a); }\n"
		    "func s(a: int, b: int, c: int): int { return a * 100 + b * 10 + c; }\n"
		    "func f(): int {\n"
		    "  var a = 3; var v = int[4]; v[g(1)] = 5;\n"
		    "  return a*g(a) + (a+1)*((a+2)*(g(a)+(a+3)*(g(1)-g(2)*a)))\n"
		    "    + s(s(g(1),a,g(3)), g(2)+a, v[g(g(2))] + s(1, g(9) % 7, a)); }")
			.i,
		3 * 2 + 4 * (5 * (2 + 6 * (2 - 2 * 3))) + (232 * 100 + 5 * 10 + (5 + 123)));
	assert_true(run("func g(x: double): double { return x / 2; }\n"
			"func f(): double {\n"
			"  var a = 3.0; var i = 2; return a*g(a) - (i + a)*(g(a) - i/g(i)); }")
			    .d == 3.0 * 1.5 - (2 + 3.0) * (1.5 - 2 / 1.0));
}

static void parameters_are_copies(void **state)
{
	(void)state;
	assert_int_equal(run("func g(x: int, a: int[]): int { x += 1; a[0] = x; return x; }\n"
			     "func f(): int { var x = 1; var a = int[1]; var r = g(x, a);\n"
			     "  return x * 100 + r * 10 + a[0]; }")
				 .i,
			 122);
}

static void endless_recursion(void **state)
{
	(void)state;
	assert_string_equal(error_of("func main() {}\nfunc f() { f(); }"),
			    "t.calc:2:6: recursion too deep");
	assert_string_equal(error_of("func main() {}\nfunc f(): int {\n return f() + f();\n}"),
			    "t.calc:2:6: recursion too deep");
}

/* After an error the program can be called again. */
static void again(void **state)
{
	struct calc *c = program("func f(a: int, b: int): int { if a { return f(a + 1, b); }\n"
				 "  return a / b; }");
	struct calc_err err;
	union calc_value args[2] = { { .i = 1 }, { .i = 0 } };

	(void)state;
	for (int i = 0; i < 3; i++) {
		args[0].i = 1;
		assert_int_equal(calc_call(c, "f", args, 2, NULL, &err), -1);
		assert_non_null(strstr(err.text, "recursion too deep"));
		args[0].i = 0;
		assert_int_equal(calc_call(c, "f", args, 2, NULL, &err), -1);
		assert_string_equal(err.text, "t.calc:2:12: division by zero");
		assert_int_equal(call_ints(c, "f", 0, 1), 0);
	}
	calc_free(c);
}

static void no_return(void **state)
{
	(void)state;
	assert_string_equal(
		error_of("func main() {}\nfunc f(): int {\n if round() { return 1; }\n}"),
		"t.calc:4:1: function ends without 'return'");
	assert_string_equal(error_of("func main() {}\nfunc f(): int {\n while 1 { return 1; }\n}"),
			    "no error");
}

static void main_status(void **state)
{
	static const char text[] = "func main(): int { return round() * 10 + 3; }";
	struct calc_err err;
	struct calc *c;
	int64_t status;

	(void)state;
	assert_int_equal(calc_new(&c, "t.calc", text, strlen(text), NULL, &err), 0);
	assert_int_equal(calc_run(c, &status, &err), 0);
	assert_int_equal(status, 3);
	assert_int_equal(calc_run(c, &status, &err), 0);
	assert_int_equal(status, 13);
	assert_int_equal(calc_call(c, "nobody", NULL, 0, NULL, &err), -1);
	assert_string_equal(err.text, "t.calc: no function 'nobody' of 0 parameters");
	calc_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursion),
		cmocka_unit_test(many_arguments),
		cmocka_unit_test(calls_in_expressions),
		cmocka_unit_test(parameters_are_copies),
		cmocka_unit_test(endless_recursion),
		cmocka_unit_test(again),
		cmocka_unit_test(no_return),
		cmocka_unit_test(main_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
