/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cmap.h"

/* The tokens of @text, joined by blanks; directives in brackets. */
static void expect_tokens(const char *text, const char *expected)
{
	struct base_buf all = { 0 };
	struct ctoken_reader r;
	struct ctoken t;

	ctoken_init(&r, text, strlen(text));
	for (ctoken_next(&r, &t); t.kind != CTOKEN_END; ctoken_next(&r, &t))
		assert_int_equal(base_buf_printf(&all,
						 t.kind == CTOKEN_DIRECTIVE ? "[%.*s] " : "%.*s ",
						 (int)t.len, t.text),
				 0);
	assert_int_equal(base_buf_append(&all, "", 1), 0);
	assert_string_equal((char *)all.data, expected);
	base_buf_release(&all);
}

static void test_tokens(void **state)
{
	(void)state;
	expect_tokens("a+++b", "a ++ + b ");
	expect_tokens("x<<=y>>z->w...", "x <<= y >> z -> w ... ");
	expect_tokens("1e+5f-.5+0x1p-3u+1'000", "1e+5f - .5 + 0x1p-3u + 1'000 ");
	expect_tokens("0xe+1", "0xe+1 "); /* so the standard has it */
	expect_tokens("L\"a\" u8\"b\\\"c\" L'x' 'a''\\''", "L\"a\" u8\"b\\\"c\" L'x' 'a' '\\'' ");
	expect_tokens("R\"x(a\" )\" )x\" b", "R\"x(a\" )\" )x\" b ");
	expect_tokens("R\"no end", "R\" no end ");
	expect_tokens("Rx\"a\"", "Rx \"a\" ");
	expect_tokens("a/* b\n */c//d\ne", "a c e ");
	expect_tokens("a\\\nb", "a b ");
	expect_tokens("#pragma a \\\n b\nc # d", "[#pragma a \\\n b] c # d ");
	expect_tokens(" # x\n/* */ # y", "[# x] [# y] ");
	expect_tokens("don't", "don ' t ");
	expect_tokens("\xc3\xa9$\\u00e9 @", "\xc3\xa9$\\u00e9 @ ");
	expect_tokens("", "");
}

static void test_rows(void **state)
{
	static const char text[] = "\tR\"(a\nb)\" c\n  d";
	struct ctoken_reader r;
	struct ctoken t;

	(void)state;
	ctoken_init(&r, text, strlen(text));
	ctoken_next(&r, &t);
	assert_int_equal(t.row, 1);
	assert_int_equal(t.column, 2);
	ctoken_next(&r, &t);
	assert_int_equal(t.row, 2);
	assert_int_equal(t.column, 5);
	ctoken_next(&r, &t);
	assert_int_equal(t.row, 3);
	assert_int_equal(t.column, 3);
}

static struct cmap *tokenize(const char *text, const char *expected)
{
	struct base_buf out = { 0 };
	struct cmap *map = NULL;

	assert_int_equal(cmap_tokenize(text, strlen(text), "/t/x.i", &out, &map), 0);
	assert_int_equal(base_buf_append(&out, "", 1), 0);
	assert_string_equal((char *)out.data, expected);
	base_buf_release(&out);
	return map;
}

static void expect_token(const struct cmap *map, unsigned int line, const char *file,
			 unsigned int from, unsigned int column, const char *text)
{
	const struct cmap_token *t = cmap_at(map, line);

	assert_non_null(t);
	assert_string_equal(map->files[t->file], file);
	assert_int_equal(t->from, from);
	assert_int_equal(t->column, column);
	assert_string_equal(t->text, text);
}

/* Markers are followed; of them, only where system's headers begin and end is passed on. */
static void test_tokenize(void **state)
{
	struct cmap *map = tokenize("# 0 \"x.c\"\n"
				    "# 0 \"<built-in>\"\n"
				    "# 1 \"/usr/include/a \\\"b\\\".h\" 1 3 4\n"
				    "int  f;\n"
				    "# 1 \"/usr/include/empty.h\" 1 3 4\n"
				    "# 12 \"x.c\" 2\n"
				    "\n"
				    "#pragma once\n"
				    "char *s = R\"(1\n"
				    "2)\"; s\n",
				    "# 2 \"/t/x.i\" 3\nint\nf\n;\n# 6 \"/t/x.i\"\n"
				    "#pragma once\nchar\n*\ns\n=\nR\"(1\n2)\"\n;\ns\n");

	(void)state;
	assert_int_equal(map->nr_files, 2);
	expect_token(map, 3, "/usr/include/a \"b\".h", 1, 6, "f");
	expect_token(map, 7, "x.c", 14, 1, "char");
	expect_token(map, 11, "x.c", 14, 11, "R\"(1");
	expect_token(map, 13, "x.c", 15, 4, ";"); /* the string has two lines */
	assert_null(cmap_at(map, 12));
	assert_null(cmap_at(map, 6));
	assert_null(cmap_at(map, 1000));
	cmap_free(map);
}

/* What would be a directive, or join two lines, if it stood alone. */
static void test_not_alone(void **state)
{
	struct cmap *map;

	(void)state;
	map = tokenize("a # b\n", "a #\nb\n");
	expect_token(map, 2, "/t/x.i", 1, 5, "b");
	cmap_free(map);
	map = tokenize("a \\ b\n", "a\n\\ \nb\n");
	expect_token(map, 3, "/t/x.i", 1, 5, "b");
	cmap_free(map);
}

/* "#define SQ(x) ((x) * (x))": columns are those of the source; what SQ made stands at SQ. */
static void test_columns(void **state)
{
	static const char source[] = "int  f;\n\ty  =  SQ(a) / b;\n";
	struct cmap *map = tokenize("# 1 \"x.c\"\nint f;\n y = ((a) * (a)) / b;\n",
				    "int\nf\n;\ny\n=\n(\n(\na\n)\n*\n(\na\n)\n)\n/\nb\n;\n");

	(void)state;
	assert_int_equal(cmap_columns(map, 0, source, strlen(source)), 0);
	expect_token(map, 2, "x.c", 1, 6, "f");
	expect_token(map, 4, "x.c", 2, 2, "y");
	expect_token(map, 5, "x.c", 2, 5, "=");
	expect_token(map, 8, "x.c", 2, 11, "a");
	expect_token(map, 10, "x.c", 2, 8, "*");
	expect_token(map, 15, "x.c", 2, 14, "/");
	expect_token(map, 16, "x.c", 2, 16, "b");
	cmap_free(map);
}

static void expect_refused(const char *text, const char *why)
{
	struct base_err err = { 0 };
	struct cmap *map = NULL;
	int r = cmap_read(text, strlen(text), &map, &err);

	assert_true(r == -DCPI_EFORMAT || r == -DCPI_EVERSION);
	if (!strstr(err.text, why))
		fail_msg("'%s' says '%s', not '%s'", text, err.text, why);
}

static void test_read(void **state)
{
	static const char good[] = "dcpi-cmap 1\ntokenized /t/x.i\nfile x.c\n"
				   "1 0:1:1 int\n3 0:1:0 a b\n";
	struct base_err err = { 0 };
	struct base_buf out = { 0 };
	struct cmap *map = NULL;

	(void)state;
	assert_int_equal(cmap_read(good, strlen(good), &map, &err), 0);
	expect_token(map, 3, "x.c", 1, 0, "a b");
	assert_int_equal(cmap_write(map, &out), 0);
	assert_int_equal(base_buf_append(&out, "", 1), 0);
	assert_string_equal((char *)out.data, good);
	base_buf_release(&out);
	cmap_free(map);
	expect_refused("int x;\n", "no token map");
	expect_refused("dcpi-cmap 2\n", "version 2");
	expect_refused("dcpi-cmap 1\nfile x\n", "line 2 ");
	expect_refused("dcpi-cmap 1\ntokenized x\n1 0:1:1 a\n", "no such file");
	expect_refused("dcpi-cmap 1\ntokenized x\nfile y\n2 0:1:1 a\n2 0:1:1 b\n", "ascend");
	expect_refused("dcpi-cmap 1\ntokenized x\nfile y\n2 0:1 a\n", "LINE FILE:LINE:COLUMN");
	expect_refused("dcpi-cmap 1\ntokenized x\nfile y\n2 0:1:1 a", "no end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokens),	 cmocka_unit_test(test_rows),
		cmocka_unit_test(test_tokenize), cmocka_unit_test(test_not_alone),
		cmocka_unit_test(test_columns),	 cmocka_unit_test(test_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
