/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table.h"

static void expect_printed(const struct table *t, bool heads, const char *text)
{
	char *out = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&out, &len);

	assert_int_equal(table_print(t, heads, to), 0);
	fclose(to);
	assert_string_equal(out, text);
	free(out);
}

static void test_columns(void **state)
{
	struct table t = { 0 };

	(void)state;
	table_column(&t, false, "n");
	table_column(&t, true, "name");
	table_column(&t, true, "image");
	table_cell(&t, "%d", 12345);
	table_cell(&t, "%s", "a\xc3\xa4");
	table_cell(&t, "%s", "x");
	table_cell(&t, "%d", 7);
	table_cell(&t, "%s", "total");
	table_cell(&t, "%s", "");
	expect_printed(&t, true,
		       "    n  name   image\n"
		       "12345  a\xc3\xa4     x\n"
		       "    7  total\n");
	expect_printed(&t, false,
		       "12345  a\xc3\xa4     x\n"
		       "    7  total\n");
	table_release(&t);
}

/* A name wider than TABLE_WIDEST stands out of its column; the other rows stay narrow. */
static void test_wide_cell(void **state)
{
	char name[TABLE_WIDEST + 11] = "", expected[256];
	struct table t = { 0 };

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	table_column(&t, true, "name");
	table_column(&t, true, "image");
	table_cell(&t, "%s", name);
	table_cell(&t, "a");
	table_cell(&t, "y");
	table_cell(&t, "b");
	snprintf(expected, sizeof(expected), "%s  a\n%-*s  b\n", name, TABLE_WIDEST, "y");
	expect_printed(&t, false, expected);
	table_release(&t);
}

/* A comma or a quote, be there both or one, has the cell quoted. */
static void test_csl(void **state)
{
	struct table t = { 0 };
	char *out = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&out, &len);

	(void)state;
	table_column(&t, false, "n");
	table_column(&t, true, "name");
	table_cell(&t, "%d", 1);
	table_cell(&t, "f(a, b)");
	table_cell(&t, "%d", 2);
	table_cell(&t, "operator\"\"_s");
	assert_int_equal(table_print_csl(&t, true, to), 0);
	assert_int_equal(table_print_csl(&t, false, to), 0);
	fclose(to);
	assert_string_equal(out, "n,name\n1,\"f(a, b)\"\n2,\"operator\"\"\"\"_s\"\n"
				 "1,\"f(a, b)\"\n2,\"operator\"\"\"\"_s\"\n");
	free(out);
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_wide_cell),
		cmocka_unit_test(test_csl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
