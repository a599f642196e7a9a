/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that are refused, with the place and the reason. */
#include "calc_program.h"

#include <stdlib.h>

#define MAIN "func main() {}\n"

static const struct {
	const char *text;
	const char *message;
} cases[] = {
	/* Syntax. */
	{ "", "1:1: no function 'main'" },
	{ "x", "1:1: expected 'func', 'extern', 'var' or 'shares', got name" },
	{ "func", "1:5: expected the function's name, got end of file" },
	{ "func f", "1:7: expected '(' before the parameters, got end of file" },
	{ "func f(a)", "1:9: expected ':' before the parameter's type, got ')'" },
	{ "func f(a: x)", "1:11: expected a type, got name" },
	{ "func f() { return", "1:18: expected an expression, got end of file" },
	{ "func f() { 1 + 2; }", "1:12: a statement that does nothing" },
	{ "func f() { f() = 1; }", "1:12: cannot assign to this" },
	{ "func f() { if 1 return; }", "1:17: expected '{' before the statements, got 'return'" },
	{ "func f() { var x; }", "1:17: expected '=' and the variable's first value, got ';'" },
	{ "func f() { g(1; }", "1:15: expected ')' after the arguments, got ';'" },
	{ "func f() {", "1:11: expected '}' after the statements, got end of file" },
	{ "extern sqrt(double): double;",
	  "1:8: expected the C function's name as a string, got name" },
	{ "extern \"printf\"(...);", "1:20: '...' needs a parameter before it" },
	/* Names. */
	{ MAIN "func main() {}", "2:6: there is a function 'main' already" },
	{ "func len() {}", "1:6: there is a function 'len' already" },
	{ "var x = 1; var x = 2;", "1:16: there is a variable 'x' already" },
	{ "func f() { x = 1; }", "1:12: no variable 'x'" },
	{ "func f() { { var x = 1; } x = 2; }", "1:27: no variable 'x'" },
	{ "func f() { for var i = 0; i < 1; i += 1 {} i = 2; }", "1:44: no variable 'i'" },
	{ "func f(a: int, a: int) {}", "1:6: two parameters 'a'" },
	{ "func f() { g(); }", "1:12: no function 'g'" },
	{ "func f() { var x = f; }",
	  "1:20: function 'f' is only a value as a C function's callback" },
	{ "extern \"no_such_function\"();",
	  "1:8: no C function 'no_such_function' in this process" },
	{ "shares f;" MAIN, "1:8: no function 'f' in this program" },
	{ "shares f, f; func f() {}" MAIN, "1:11: 'f' has a share already" },
	{ "func main(x: int) {}", "1:6: 'main' has no parameters" },
	{ "func main(): double { return 1; }", "1:6: 'main' returns int or nothing" },
	/* Types. */
	{ "func f(): int { return 1.5; }", "1:24: expected int, got double" },
	{ "func f(): int { return; }", "1:17: 'f' returns int" },
	{ "func f() { return 1; }", "1:12: 'f' returns nothing" },
	{ "func f() { var x = f(); }", "1:20: expected nothing, got nothing" },
	{ "func f() { var x = 1; x = 2.0; }", "1:27: expected int, got double" },
	{ "func f() { var x = 1; x += 2.0; }", "1:28: expected int, got double" },
	{ "func f() { var x = 1.5 % 2.0; }", "1:24: '%' does not take double and double" },
	{ "func f() { var x = \"a\" + 1; }", "1:24: '+' does not take string and int" },
	{ "func f() { var x = 1 / 0; }", "1:24: division by zero" },
	{ "func f() { var x = 1; x %= 0; }", "1:28: division by zero" },
	{ "func f() { if 1.5 {} }", "1:15: a condition is an int, not double" },
	{ "func f() { var x = 1.5 && 1; }", "1:20: '&&' does not take double" },
	{ "func f() { var x = !1.5; }", "1:20: unary '!' does not take double" },
	{ "func f() { var x = *1; }", "1:20: unary '*' does not take int" },
	{ "func f() { var x = -\"a\"; }", "1:20: unary '-' does not take string" },
	{ "func f() { var x = 1; x[0] = 1; }", "1:24: int is no array" },
	{ "func f() { var x = int[2]; x[0.5] = 1; }", "1:30: expected int, got double" },
	{ "func f() { var x = int[2.5]; }", "1:24: expected int, got double" },
	{ "func f() { var x = int(\"1\"); }", "1:20: string cannot become int" },
	{ "func f() { print(int[3]); }", "1:18: print() does not take int[]" },
	{ "func f() { len(1); }", "1:16: int is no array" },
	{ "func f() { len(); }", "1:12: len() takes 1 arguments" },
	{ "func f(a: int) { f(1, 2); }", "1:18: 'f' takes 1 arguments, not 2" },
	{ "func f(a: int) { f(\"x\"); }", "1:20: expected int, got string" },
	{ "func f(a: int32) {}", "1:6: only C functions have the type int32" },
	{ "func f(): func() {}", "1:6: only C functions have the type func" },
	{ "var x: func();" MAIN, "1:5: only C functions have the type func" },
	{ "var x;" MAIN, "1:5: 'x' needs a type or a value" },
	{ "var x = 1 + 2;" MAIN, "1:11: a global variable begins as a constant" },
	{ "var x: int = 1.0;" MAIN, "1:14: expected int, got double" },
	{ "func f() { break; }", "1:12: not within a loop" },
	{ "func f() { while 1 {} continue; }", "1:23: not within a loop" },
	/* C functions. */
	{ "extern \"abs\"(int): int[];", "1:8: a C function cannot return int[]" },
	{ "extern \"qsort\"(func(int[]));",
	  "1:8: a callback has neither arrays, callbacks nor '...'" },
	{ "extern \"qsort\"(func()); func f() { qsort(1); }",
	  "1:42: expected the name of a function of this program" },
	{ "extern \"qsort\"(func()); func f() { qsort(qsort); }",
	  "1:42: expected the name of a function of this program" },
	{ "extern \"qsort\"(func(int)); func f() { qsort(f); }",
	  "1:45: 'f' has not the callback's parameters and result" },
	{ "extern \"qsort\"(func(): double); func f() { qsort(f); }",
	  "1:50: 'f' has not the callback's parameters and result" },
	{ "extern \"qsort\"(func(int*)); func g(a: int[]) {} func f() { qsort(g); }",
	  "1:66: 'g' has not the callback's parameters and result" },
};

static void refused(void **state)
{
	char want[256];
	unsigned int nr_wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(want, sizeof(want), "t.calc:%s", cases[i].message);
		if (strcmp(error_of(cases[i].text), want) != 0) {
			print_error("%s\n got %s\nwant %s\n", cases[i].text,
				    error_of(cases[i].text), want);
			nr_wrong++;
		}
	}
	assert_int_equal(nr_wrong, 0);
}

/* Many times the same text, between a head and a tail. */
static const char *repeated(const char *head, const char *part, unsigned int nr, const char *tail)
{
	size_t part_len = strlen(part), at = strlen(head);
	char *text = malloc(at + nr * part_len + strlen(tail) + 1);
	const char *message;

	assert_non_null(text);
	strcpy(text, head);
	for (unsigned int i = 0; i < nr; i++, at += part_len)
		memcpy(text + at, part, part_len);
	strcpy(text + at, tail);
	message = error_of(text);
	free(text);
	return message;
}

static void assert_has(const char *message, const char *part)
{
	if (!strstr(message, part))
		fail_msg("'%s' is not in '%s'", part, message);
}

static void bounds(void **state)
{
	(void)state;
	assert_has(repeated("func f() { f(", "(", 100000, ""), "nested more than 100 deep");
	assert_has(repeated("func f() { var x = ", "-", 100000, "1; }"),
		   "nested more than 100 deep");
	assert_has(repeated("func f() {", "if 1 {", 100000, ""), "nested more than 100 deep");
	assert_has(repeated("func f() { if 1 {}", "else if 1 {}", 1000, "}"),
		   "nested more than 100 deep");
	assert_has(repeated("func f() { var x = 1", "+1", 100000, "; }"), "more than 200 levels");
	assert_has(repeated("func f() { var x = int[1]", "[0]", 1000, "; }"),
		   "more than 200 levels");
	assert_has(repeated("extern \"f\"(", "func(", 1000, ""), "nested more than 100 deep");
	assert_has(repeated("func f() {", "var x = 1;", 201, "}"), "more than 200 variables");
	assert_has(repeated("", "\n", 1024 * 1024 + 1, ""), "program of more than 1048576 bytes");
	assert_has(repeated("func f() { f(1", ",1", 16, "); }"), "more than 16 arguments");
	assert_has(repeated("func f(", "a: int,", 17, ") { }"), "more than 16 parameters");
	assert_has(repeated("extern \"f\"(", "int,", 17, ");"), "more than 16 parameters");
}

/* Found only when the function is compiled. */
static void too_large(void **state)
{
	(void)state;
	assert_has(repeated("func main() {} func f() { var x = 1;", "x = x * 1234567 / x;", 20000,
			    "}"),
		   "t.calc:1:21: function 'f' is too large");
	assert_string_equal(
		repeated("func main() {} func f() { var x = 1;", "x = x + 1;", 5000, "}"),
		"no error");
}

static void no_file(void **state)
{
	struct calc_err err = { "" };
	struct calc *c = NULL;

	(void)state;
	assert_int_equal(calc_open(&c, "/nonexistent/x.calc", NULL, &err), -1);
	assert_string_equal(err.text,
			    "/nonexistent/x.calc: cannot read: No such file or directory");
	assert_int_equal(calc_open(&c, "/", NULL, &err), -1);
	assert_string_equal(err.text, "/: cannot read: Is a directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(bounds),
		cmocka_unit_test(too_large),
		cmocka_unit_test(no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
