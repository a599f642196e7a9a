/* SPDX-License-Identifier: BSD-2-Clause */
/* C functions called from compiled code, and calling back. */
#include "calc_program.h"

/* What programs here declare as C functions: found in this process by name. */
double t_mixed(int64_t a, double b, int32_t c, double d, int64_t e, double f, int64_t g, double h,
	       int64_t i, double j, int64_t k, double l, int64_t m, double n, int64_t o, double p);
int32_t t_negative(int32_t x);
void t_nothing(void);
int64_t t_twice(int64_t (*f)(int64_t), int64_t x);
double t_fold(double (*f)(double, int32_t, const double *), const double *a, int64_t nr);
void t_each(void (*f)(int64_t), int64_t nr);
const int64_t *t_where(const int64_t *a, int64_t i);

double t_mixed(int64_t a, double b, int32_t c, double d, int64_t e, double f, int64_t g, double h,
	       int64_t i, double j, int64_t k, double l, int64_t m, double n, int64_t o, double p)
{
	return (double)a + 2 * b + 3 * c + 4 * d + 5 * (double)e + 6 * f + 7 * (double)g + 8 * h +
	       9 * (double)i + 10 * j + 11 * (double)k + 12 * l + 13 * (double)m + 14 * n +
	       15 * (double)o + 16 * p;
}

int32_t t_negative(int32_t x)
{
	return -x;
}

static unsigned int nr_nothing;

void t_nothing(void)
{
	nr_nothing++;
}

int64_t t_twice(int64_t (*f)(int64_t), int64_t x)
{
	return f(f(x));
}

double t_fold(double (*f)(double, int32_t, const double *), const double *a, int64_t nr)
{
	double sum = 0;

	for (int32_t i = 0; i < nr; i++)
		sum = f(sum, -i, &a[i]);
	return sum;
}

void t_each(void (*f)(int64_t), int64_t nr)
{
	for (int64_t i = 0; i < nr; i++)
		f(i);
}

const int64_t *t_where(const int64_t *a, int64_t i)
{
	return i < 0 ? NULL : a + i;
}

static void calls(void **state)
{
	struct calc *c = program("extern \"sqrt\"(double): double;\n"
				 "extern \"pow\" power(double, double): double;\n"
				 "extern \"labs\"(int): int;\n"
				 "extern \"t_negative\"(int32): int32;\n"
				 "extern \"strlen\"(string): int;\n"
				 "extern \"t_nothing\"();\n"
				 "func root(x: double): double { return 1 + sqrt(x) * power(2, 3) "
				 "+ sqrt(sqrt(16)); }\n"
				 "func f(a: int, b: int): int {\n"
				 "  t_nothing(); return labs(a) * 100 + t_negative(b) + "
				 "strlen(\"abc\") * 10000; }\n");
	union calc_value nine = { .d = 9 };

	(void)state;
	nr_nothing = 0;
	assert_true(call(c, "root", 1, &nine).d == 27);
	assert_int_equal(call_ints(c, "f", -5, 7), 500 - 7 + 30000);
	assert_int_equal(call_ints(c, "f", 5, -7), 500 + 7 + 30000);
	assert_int_equal(call_ints(c, "f", 0, 0x100000001), -1 + 30000); /* C's int is 32 bits */
	assert_int_equal(nr_nothing, 3);
	calc_free(c);
}

static void sixteen_arguments(void **state)
{
	(void)state;
	assert_true(run("extern \"t_mixed\"(int,double,int32,double,int,double,int,double,\n"
			"  int,double,int,double,int,double,int,double): double;\n"
			"func f(): double {\n"
			"  return t_mixed(1,2,-3,4.5,5,6,7,8,9,10,11,12,13,14,15,16.25) + 0.5; }")
			    .d ==
		    t_mixed(1, 2, -3, 4.5, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16.25) + 0.5);
}

static void variadic(void **state)
{
	struct calc *c = program("extern \"snprintf\"(int*, int, string, ...): int32;\n"
				 "extern \"strtol\"(int*, int*, int32): int;\n"
				 "var none: int*;\n"
				 "func f(a: int, b: int): int {\n"
				 "  var buf = int[16]; var x = b / 2.0;\n"
				 "  snprintf(buf, 8 * len(buf), \"%ld%.0f%s\", a, x, \"42\");\n"
				 "  return strtol(buf, none, 10); }\n");

	(void)state;
	assert_int_equal(call_ints(c, "f", 123, 14), 123742);
	calc_free(c);
}

static void sorting(void **state)
{
	struct calc *c = program(
		"extern \"qsort\"(int*, int, int, func(int*, int*): int32);\n"
		"extern \"qsort\" sort_doubles(double*, int, int, func(double*, double*): int32);\n"
		"var seed = 1; var calls = 0;\n"
		"func random(): int { seed = (seed * 1103515245 + 12345) % 2147483648; return "
		"seed; }\n"
		"func up(a: int*, b: int*): int { calls += 1; return (*a > *b) - (*a < *b); }\n"
		"func down(a: double*, b: double*): int { return (*a < *b) - (*a > *b); }\n"
		"func f(n: int, b: int): int {\n"
		"  var v = int[n]; var d = double[n]; var sum = 0;\n"
		"  for var i = 0; i < n; i += 1 { v[i] = random() % 1000; d[i] = v[i] / 4.0; sum "
		"+= v[i]; }\n"
		"  qsort(v, n, 8, up);\n"
		"  sort_doubles(d, n, 8, down);\n"
		"  for var i = 0; i < n; i += 1 {\n"
		"    if i > 0 && (v[i - 1] > v[i] || d[i - 1] < d[i]) { return -1; }\n"
		"    if d[i] * 4 != v[n - 1 - i] { return -2; }\n"
		"    sum -= v[i];\n"
		"  }\n"
		"  return sum * 1000000 + (calls > n); }\n");

	(void)state;
	assert_int_equal(call_ints(c, "f", 500, 0), 1);
	calc_free(c);
}

static void callbacks(void **state)
{
	struct calc *c = program(
		"extern \"t_twice\"(func(int): int, int): int;\n"
		"extern \"t_fold\"(func(double, int32, double*): double, double*, int): double;\n"
		"extern \"t_each\"(func(int), int);\n"
		"var sum = 0;\n"
		"func add(x: int) { sum += x; }\n"
		"func triple(x: int): int { return 3 * x; }\n"
		"func deeper(x: int): int { return 1 + t_twice(triple, x); }\n"
		"func step(s: double, i: int, a: double*): double { return s + *a * i; }\n"
		"func f(a: int, b: int): int { t_each(add, a); return sum * 1000 + t_twice(deeper, "
		"b); }\n"
		"func g(): double { var v = double[3]; v[1] = 0.5; v[2] = 0.25;\n"
		"  return t_fold(step, v, len(v)); }\n");

	(void)state;
	assert_int_equal(call_ints(c, "f", 5, 2), 10 * 1000 + 1 + 9 * (1 + 9 * 2));
	assert_true(call(c, "g", 0, NULL).d == -1.0);
	calc_free(c);
}

static void pointers(void **state)
{
	static const char text[] =
		"extern \"t_where\"(int*, int): int*;\n"
		"func main() {}\n"
		"func f(): int { var a = int[3]; a[2] = 7; var p = t_where(a, 2);\n"
		"  return *p + *t_where(a, %s) + -*p; }";
	char whole[256];

	(void)state;
	snprintf(whole, sizeof(whole), text, "2");
	assert_string_equal(error_of(whole), "no error");
	assert_int_equal(run("extern \"t_where\"(int*, int): int*;\n"
			     "func f(): int { var a = int[3]; a[2] = 7; return *t_where(a, 2); }")
				 .i,
			 7);
	snprintf(whole, sizeof(whole), text, "-1");
	assert_string_equal(error_of(whole), "t.calc:4:15: null pointer");
}

/* An error in a callback leaves the C function, and the program can go on. */
static void error_in_callback(void **state)
{
	(void)state;
	assert_string_equal(error_of("extern \"t_each\"(func(int), int); func main() {}\n"
				     "func bad(x: int) { x = 1 / (3 - x); }\n"
				     "func f() { t_each(bad, 10); }"),
			    "t.calc:2:26: division by zero");
	assert_string_equal(error_of("extern \"t_each\"(func(int), int); func main() {}\n"
				     "func again(x: int) { t_each(again, 2); }\n"
				     "func f() { t_each(again, 10); }"),
			    "t.calc:2:6: recursion too deep");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls),
		cmocka_unit_test(sixteen_arguments),
		cmocka_unit_test(variadic),
		cmocka_unit_test(sorting),
		cmocka_unit_test(callbacks),
		cmocka_unit_test(pointers),
		cmocka_unit_test(error_in_callback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
