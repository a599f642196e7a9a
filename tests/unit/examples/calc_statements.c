/* SPDX-License-Identifier: BSD-2-Clause */
#include "calc_program.h"

#include <stdlib.h>

static void branches(void **state)
{
	struct calc *c = program("func f(a: int, b: int): int {\n"
				 "  if a < 0 { return -1; }\n"
				 "  else if a == 0 { if b { return 10; } else { return 11; } }\n"
				 "  else if a < 10 && b != 3 || b == 4 { return 2; }\n"
				 "  else { b = 7; }\n"
				 "  return b;\n"
				 "}\n");

	(void)state;
	assert_int_equal(call_ints(c, "f", -5, 0), -1);
	assert_int_equal(call_ints(c, "f", 0, 1), 10);
	assert_int_equal(call_ints(c, "f", 0, 0), 11);
	assert_int_equal(call_ints(c, "f", 5, 1), 2);
	assert_int_equal(call_ints(c, "f", 5, 3), 7);
	assert_int_equal(call_ints(c, "f", 20, 4), 2);
	assert_int_equal(call_ints(c, "f", 20, 5), 7);
	calc_free(c);
}

static void loops(void **state)
{
	struct calc *c = program(
		"func sum(a: int, b: int): int {\n"
		"  var s = 0; for var i = a; i < b; i += 1 { s += i; } return s; }\n"
		"func gcd(a: int, b: int): int {\n"
		"  while b { var t = a % b; a = b; b = t; } return a; }\n"
		"func odd(a: int, b: int): int {\n"
		"  var n = 0; var i = a;\n"
		"  for ;; i += 1 {\n"
		"    if i >= b { break; }\n"
		"    if i % 2 == 0 { continue; }\n"
		"    for var j = 0; ; { if j == 3 { break; } j += 1; n += 1; }\n"
		"  }\n"
		"  return n; }\n"
		"func w(a: int, b: int): int {\n"
		"  while 1 { a += 1; if a > b { return a; } if a == 5 { continue; } a += 1; } }\n"
		"func never(a: int, b: int): int { while 0 { a = b; } return a; }\n");

	(void)state;
	assert_int_equal(call_ints(c, "sum", 0, 1000), 499500);
	assert_int_equal(call_ints(c, "sum", 5, 5), 0);
	assert_int_equal(call_ints(c, "gcd", 1071, 462), 21);
	assert_int_equal(call_ints(c, "odd", 0, 10), 15);
	assert_int_equal(call_ints(c, "w", 0, 10), 12);
	assert_int_equal(call_ints(c, "w", 6, 10), 11);
	assert_int_equal(call_ints(c, "never", 3, 4), 3);
	calc_free(c);
}

/* A variable hides those of outer blocks; slots are used again. */
static void scopes(void **state)
{
	(void)state;
	assert_int_equal(run("var x = 100;\n"
			     "func f(): int {\n"
			     "  var s = x; var x = 1; s += x;\n"
			     "  { var x = 10; s += x; { var x = x + 1; s += x; } }\n"
			     "  { var y = 1000; s += y; }\n"
			     "  for var x = 0; x < 3; x += 1 { s += x; }\n"
			     "  return s + x; }")
				 .i,
			 100 + 1 + 10 + 11 + 1000 + 3 + 1);
}

static void many_locals(void **state)
{
	char text[16384] = "func f(): double {";
	double want = 0;
	size_t at;

	(void)state;
	at = strlen(text);
	for (int i = 0; i < 200; i++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "var v%d = %d%s;", i, i,
				       i % 2 ? ".5" : "");
		want += i + (i % 2 ? 0.5 : 0);
	}
	at += (size_t)snprintf(text + at, sizeof(text) - at, "return 0");
	for (int i = 0; i < 198; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "+v%d", i);
	snprintf(text + at, sizeof(text) - at, "+(v198 + v199);}");
	assert_true(run(text).d == want);
}

static void arrays(void **state)
{
	struct calc *c =
		program("func id(x: int): int { return x; }\n"
			"func f(a: int, b: int): int {\n"
			"  var n = int[a]; var d = double[a];\n"
			"  for var i = 0; i < len(n); i += 1 { n[i] = i * i; d[i] = i / 2.0; }\n"
			"  n[id(b)] += 1000; n[b] *= 2; n[id(b)] -= id(n[id(b)] / 2);\n"
			"  d[id(b)] += 0.25; d[id(b)] = d[b] / 2; n[0] = 5; n[0] %= 3;\n"
			"  return n[n[2]] + n[b] * 100 + int(d[b] * 8) * 1000000 + len(d); }\n");

	(void)state;
	/* n[3] = ((9 + 1000) * 2) - 1009; d[3] = (1.5 + .25) / 2 */
	assert_int_equal(call_ints(c, "f", 10, 3), 16 + 1009 * 100 + 7 * 1000000 + 10);
	calc_free(c);
}

static void array_errors(void **state)
{
	static const char head[] = "func main() {}\nfunc f(): int {\n var i = %s;\n"
				   " var a = int[3];\n return a[%s];\n}";
	static const struct {
		const char *i, *index, *message;
	} cases[] = {
		{ "2", "i", "no error" },
		{ "3", "i", "t.calc:5:10: index outside the array" },
		{ "-1", "i", "t.calc:5:10: index outside the array" },
		{ "0", "3", "t.calc:5:10: index outside the array" },
		{ "0", "2", "no error" },
		{ "0", "-1", "t.calc:5:10: index outside the array" },
		{ "0", "4096", "t.calc:5:10: index outside the array" },
		{ "0", "9223372036854775807", "t.calc:5:10: index outside the array" },
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), head, cases[i].i, cases[i].index);
		assert_string_equal(error_of(text), cases[i].message);
	}
	assert_string_equal(error_of("var a: int[];func main() {}\nfunc f() { a[0] = 1; }"),
			    "t.calc:2:13: index outside the array");
	assert_string_equal(error_of("func main() {}\nfunc f() { var a = int[-1]; }"),
			    "t.calc:2:20: array of -1 elements");
	assert_string_equal(
		error_of("func main() {}\nfunc f() { var a = double[9223372036854775807]; }"),
		"t.calc:2:20: no memory for an array of 9223372036854775807 elements");
}

static void globals(void **state)
{
	struct calc *c =
		program("var n = 5; var d: double = 2; var s = \"text\"; var z: int;\n"
			"func bump(): int { n += 1; return n; }\n"
			"func f(a: int, b: int): int { z += n * a; n = b; d /= 4; return z; }\n"
			"func g(): double { return d; }\n"
			"func order(): int { n = 1; return n * 10 + bump() + n * 100; }\n");
	struct calc_err err;
	int64_t status;

	(void)state;
	assert_int_equal(call_ints(c, "f", 2, 7), 10);
	assert_int_equal(call_ints(c, "f", 2, 7), 24);
	assert_true(call(c, "g", 0, NULL).d == 0.125);
	assert_int_equal(call(c, "order", 0, NULL).i, 10 + 2 + 200); /* from left to right */
	/* A round ends with everything as it was. */
	assert_int_equal(calc_run(c, &status, &err), 0);
	assert_int_equal(call_ints(c, "f", 2, 7), 10);
	calc_free(c);
}

/* Either side of && and || is evaluated only where it decides. */
static void short_circuit(void **state)
{
	struct calc *c = program("var n: int;\n"
				 "func hit(x: int): int { n += 1; return x; }\n"
				 "func f(a: int, b: int): int { n = 0; var r = hit(a) && hit(b); "
				 "return n * 10 + r; }\n"
				 "func g(a: int, b: int): int { n = 0; var r = hit(a) || hit(b); "
				 "return n * 10 + r; }\n"
				 "func h(a: int, b: int): int { n = 0; if !(hit(a) || hit(b)) { n "
				 "+= 100; } return n; }\n");

	(void)state;
	assert_int_equal(call_ints(c, "f", 0, 1), 10);
	assert_int_equal(call_ints(c, "f", 5, 0), 20);
	assert_int_equal(call_ints(c, "f", 5, 7), 21);
	assert_int_equal(call_ints(c, "g", 5, 0), 11);
	assert_int_equal(call_ints(c, "g", 0, 7), 21);
	assert_int_equal(call_ints(c, "g", 0, 0), 20);
	assert_int_equal(call_ints(c, "h", 0, 0), 102);
	assert_int_equal(call_ints(c, "h", 1, 0), 1);
	calc_free(c);
}

static void printing(void **state)
{
	static const char text[] =
		"func main() { var d = 0.1; print(\"a\\t\", 42, \" \", -d * 3, \" \","
		" 1e100, \" \", (d - d) / (d - d), \" \", round(), \"\\n\"); }";
	char *out = NULL;
	size_t len = 0;
	struct calc_options opts = { .out = open_memstream(&out, &len) };
	struct calc_err err;
	struct calc *c;
	int64_t status;

	(void)state;
	assert_int_equal(calc_new(&c, "t.calc", text, strlen(text), &opts, &err), 0);
	assert_int_equal(calc_run(c, &status, &err), 0);
	assert_int_equal(calc_run(c, &status, &err), 0);
	calc_free(c);
	fclose(opts.out);
	assert_string_equal(out, "a\t42 -0.3 1e+100 nan 0\na\t42 -0.3 1e+100 nan 1\n");
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(branches), cmocka_unit_test(loops),
		cmocka_unit_test(scopes),   cmocka_unit_test(many_locals),
		cmocka_unit_test(arrays),   cmocka_unit_test(array_errors),
		cmocka_unit_test(globals),  cmocka_unit_test(short_circuit),
		cmocka_unit_test(printing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
