/* SPDX-License-Identifier: BSD-2-Clause */
#include "calc_program.h"
#include "lexer.h"

#include <stdlib.h>

/* A program object with no more than the lexer needs. */
static void with_lexer(const char *text, size_t len, void (*check)(struct calc_lexer *),
		       struct calc_err *err)
{
	struct calc *c = calloc(1, sizeof(*c));
	struct calc_lexer lx;
	jmp_buf out;

	assert_non_null(c);
	c->path = strdup("t.calc");
	c->err = err;
	c->out = &out;
	if (!setjmp(out)) {
		calc_lexer_init(&lx, c, text, len);
		check(&lx);
	}
	calc_free(c);
}

static void to_the_end(struct calc_lexer *lx)
{
	do
		calc_lexer_next(lx);
	while (lx->token != CALC_TOK_END);
}

static void expect_int(struct calc_lexer *lx, int64_t value)
{
	calc_lexer_next(lx);
	assert_int_equal(lx->token, CALC_TOK_INTEGER);
	assert_int_equal(lx->value.i, value);
}

static void expect_real(struct calc_lexer *lx, double value)
{
	calc_lexer_next(lx);
	assert_int_equal(lx->token, CALC_TOK_REAL);
	assert_true(lx->value.d == value);
}

static void check_numbers(struct calc_lexer *lx)
{
	expect_int(lx, 0);
	expect_int(lx, INT64_MAX);
	expect_int(lx, 7);
	expect_real(lx, 1.5);
	expect_real(lx, 2.0);
	expect_real(lx, 1e3);
	expect_real(lx, 2.5e-3);
	expect_real(lx, 1e308);
	calc_lexer_next(lx);
	assert_int_equal(lx->token, CALC_TOK_REAL); /* too small is 0, or nearly */
	assert_true(lx->value.d < 1e-300);
	calc_lexer_next(lx);
	assert_int_equal(lx->token, CALC_TOK_END);
	calc_lexer_next(lx);
	assert_int_equal(lx->token, CALC_TOK_END);
}

static void numbers(void **state)
{
	static const char text[] = "0 9223372036854775807 007 1.5 2. 1e3 2.5E-3 1e+308 1e-310";
	struct calc_err err = { "" };

	(void)state;
	with_lexer(text, strlen(text), check_numbers, &err);
	assert_string_equal(err.text, "");
}

static void check_tokens(struct calc_lexer *lx)
{
	static const int want[] = {
		CALC_TOK_WHILE,
		CALC_TOK_NAME,
		'<',
		CALC_TOK_LE,
		CALC_TOK_EQ,
		'=',
		CALC_TOK_ADD_TO,
		'+',
		'+',
		CALC_TOK_AND,
		CALC_TOK_DOTS,
		'[',
		']',
		CALC_TOK_INT32,
		CALC_TOK_INT,
		CALC_TOK_NAME,
		CALC_TOK_STRING,
		CALC_TOK_BREAK,
		CALC_TOK_END,
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		calc_lexer_next(lx);
		assert_int_equal(lx->token, want[i]);
	}
}

static void tokens(void **state)
{
	static const char text[] = "while x < <= == = += + + && ...[]int32 int int33 string break";
	struct calc_err err = { "" };

	(void)state;
	with_lexer(text, strlen(text), check_tokens, &err);
	assert_string_equal(err.text, "");
}

static void check_places(struct calc_lexer *lx)
{
	calc_lexer_next(lx);
	assert_string_equal(lx->text, "a");
	assert_int_equal(lx->pos.line, 1);
	assert_int_equal(lx->pos.col, 3);
	calc_lexer_next(lx);
	assert_string_equal(lx->text, "b_1");
	assert_int_equal(lx->pos.line, 3);
	assert_int_equal(lx->pos.col, 2);
	calc_lexer_next(lx);
	assert_int_equal(lx->token, CALC_TOK_TEXT);
	assert_string_equal(lx->text, "say \"hi\"\n\t\\ # no comment");
	assert_int_equal(lx->pos.col, 6);
	calc_lexer_next(lx);
	assert_int_equal(lx->token, CALC_TOK_END);
}

static void places_comments_and_strings(void **state)
{
	static const char text[] = "  a # comment\n// another \xff\n b_1 "
				   "\"say \\\"hi\\\"\\n\\t\\\\ # no comment\"// end";
	struct calc_err err = { "" };

	(void)state;
	with_lexer(text, strlen(text), check_places, &err);
	assert_string_equal(err.text, "");
}

static void refused(const char *text, size_t len, const char *message)
{
	struct calc_err err = { "" };

	with_lexer(text, len, to_the_end, &err);
	assert_string_equal(err.text, message);
}

static void errors(void **state)
{
	char name[80];

	(void)state;
	refused("a\n  $", 5, "t.calc:2:3: unexpected character '$'");
	refused("\x80", 1, "t.calc:1:1: unexpected byte 0x80");
	refused("a\0b", 3, "t.calc:1:2: unexpected byte 0x00");
	refused("&", 1, "t.calc:1:1: unexpected character '&'");
	refused("\"abc", 4, "t.calc:1:1: string has no closing '\"' on its line");
	refused("\"abc\n\"", 6, "t.calc:1:1: string has no closing '\"' on its line");
	refused("\"a\\", 3, "t.calc:1:3: unknown escape in a string (there are \\n \\t \\\" \\\\)");
	refused("\"a\\q\"", 5,
		"t.calc:1:3: unknown escape in a string (there are \\n \\t \\\" \\\\)");
	refused("9223372036854775808", 19, "t.calc:1:1: number '9223372036854775808' is too large");
	refused("1e999", 5, "t.calc:1:1: number '1e999' is too large");
	refused("12ab", 4, "t.calc:1:1: number runs into a name");
	memset(name, 'x', sizeof(name));
	refused(name, sizeof(name), "t.calc:1:1: name of more than 64 characters");
	memset(name, '1', sizeof(name));
	refused(name, sizeof(name), "t.calc:1:1: number of more than 64 characters");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(tokens),
		cmocka_unit_test(places_comments_and_strings),
		cmocka_unit_test(errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
