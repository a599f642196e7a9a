/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables: built, asked, and taken from bytes that may be wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unwind.h"

static const struct unwind_rule none = { .how = UNWIND_NONE };

static struct unwind_rule rule(int n)
{
	return (struct unwind_rule){ .how = UNWIND_CFA, .base = UNWIND_SP, .off = n };
}

static void add(struct unwind_builder *b, uint64_t off, int n)
{
	struct unwind_rule r = n ? rule(n) : none;

	assert_int_equal(unwind_builder_add(b, off, &r), 0);
}

static struct unwind_table *done(struct unwind_builder *b)
{
	struct unwind_table *t;

	assert_int_equal(unwind_builder_done(b, &t), 0);
	unwind_builder_free(b);
	return t;
}

/* The number of the rule there; 0: none. */
static int at(const struct unwind_table *t, uint64_t off)
{
	const struct unwind_rule *r = unwind_find(t, off);

	return r->how == UNWIND_NONE ? 0 : r->off;
}

static void empty(void **state)
{
	struct unwind_table *t = done(unwind_builder_new());

	(void)state;
	assert_int_equal(at(t, 0), 0);
	assert_int_equal(at(t, UINT64_MAX), 0);
	assert_int_equal(t->nr_rows, 0);
	unwind_free(t);
	unwind_free(NULL);
}

static void rows_of_pages(void **state)
{
	struct unwind_builder *b = unwind_builder_new();
	struct unwind_table *t;

	(void)state;
	add(b, 0x3fff0, 1);
	add(b, 0x3ffff, 2);
	add(b, 0x70004, 3); /* two pages have no rows */
	add(b, 0x70008, 0);
	t = done(b);
	assert_int_equal(t->first_page, 3);
	assert_int_equal(t->nr_pages, 5);
	assert_int_equal(at(t, 0x3ffef), 0);
	assert_int_equal(at(t, 0x3fff0), 1);
	assert_int_equal(at(t, 0x3fffe), 1);
	assert_int_equal(at(t, 0x3ffff), 2);
	assert_int_equal(at(t, 0x40000), 2);
	assert_int_equal(at(t, 0x6ffff), 2);
	assert_int_equal(at(t, 0x70003), 2);
	assert_int_equal(at(t, 0x70004), 3);
	assert_int_equal(at(t, 0x70008), 0);
	assert_int_equal(at(t, 0x80000), 0);
	assert_int_equal(at(t, (UINT64_C(1) << 48) + 0x3fff0), 0);
	assert_int_equal(unwind_size(t), 6 * 4 + 4 * 4 + 4 * sizeof(struct unwind_rule));
	unwind_free(t);
}

/* Where one routine ends and the next begins, the row between is of no length. */
static void neighbours_are_merged(void **state)
{
	struct unwind_builder *b = unwind_builder_new();
	struct unwind_table *t;

	(void)state;
	add(b, 0x10, 0);
	add(b, 0x20, 1);
	add(b, 0x28, 1);
	add(b, 0x30, 0);
	add(b, 0x30, 1);
	add(b, 0x40, 2);
	add(b, 0x40, 0);
	add(b, 0x40, 1);
	add(b, 0x40, 2);
	add(b, 0x50, 0);
	add(b, 0x50, 0);
	t = done(b);
	assert_int_equal(t->nr_rows, 3);
	assert_int_equal(at(t, 0x20), 1);
	assert_int_equal(at(t, 0x3f), 1);
	assert_int_equal(at(t, 0x40), 2);
	assert_int_equal(at(t, 0x50), 0);
	unwind_free(t);
}

/* The only row is replaced by none, and the table begins later. */
static void first_row_goes(void **state)
{
	struct unwind_builder *b = unwind_builder_new();
	struct unwind_table *t;

	(void)state;
	add(b, 0x10000, 1);
	add(b, 0x10000, 0);
	add(b, 0x20000, 2);
	add(b, 0x20001, 0);
	t = done(b);
	assert_int_equal(t->nr_rows, 2);
	assert_int_equal(at(t, 0x10000), 0);
	assert_int_equal(at(t, 0x1ffff), 0);
	assert_int_equal(at(t, 0x20000), 2);
	assert_int_equal(at(t, 0x20001), 0);
	unwind_free(t);
}

static void as_a_list_has_it(void **state)
{
	enum { NR = 20000, END = 1 << 20 };
	struct unwind_builder *b = unwind_builder_new();
	uint8_t *want = calloc(1, END);
	struct unwind_table *t;
	size_t off = 0;

	(void)state;
	srand(1);
	for (int i = 0; i < NR; i++) {
		int n = rand() % 5;

		off += (size_t)(rand() % (i % 100 ? 40 : 2000));
		if (off >= END)
			break;
		add(b, off, n);
		memset(want + off, n, END - off);
	}
	add(b, END, 0);
	t = done(b);
	for (size_t i = 0; i < END; i++)
		if (at(t, i) != want[i])
			fail_msg("%d at %zx", at(t, i), i);
	unwind_free(t);
	free(want);
}

static void wrong_rows(void **state)
{
	struct unwind_builder *b = unwind_builder_new();
	struct unwind_rule r = rule(8), bad = { .how = UNWIND_NR_HOW };
	struct unwind_table *t;

	(void)state;
	add(b, 0x100, 1);
	assert_int_equal(unwind_builder_add(b, 0xff, &r), -EINVAL);
	assert_int_equal(unwind_builder_add(b, 0x100, &bad), -EINVAL);
	bad = r;
	bad.base = UNWIND_NR_REGS;
	assert_int_equal(unwind_builder_add(b, 0x100, &bad), -EINVAL);
	bad = r;
	bad.returns = UNWIND_RETURNS_SP + 1;
	assert_int_equal(unwind_builder_add(b, 0x100, &bad), -EINVAL);
	assert_int_equal(unwind_builder_done(b, &t), -EINVAL);
	assert_null(t);
	assert_int_equal(unwind_builder_add(b, UINT64_C(1) << 48, &r), -DCPI_ELIMIT);
	unwind_builder_free(b);
	unwind_builder_free(NULL);
}

static void more_rules_than_numbers(void **state)
{
	struct unwind_builder *b = unwind_builder_new();
	struct unwind_rule r;

	(void)state;
	for (int i = 1; i < UNWIND_MAX_RULES; i++)
		add(b, (uint64_t)i, i);
	add(b, UNWIND_MAX_RULES, 1);
	r = rule(UNWIND_MAX_RULES);
	assert_int_equal(unwind_builder_add(b, UNWIND_MAX_RULES + 1, &r), -DCPI_ELIMIT);
	unwind_builder_free(b);
}

/* ---- as bytes -------------------------------------------------------------------------------- */

static uint8_t *encoded(size_t *len)
{
	struct unwind_builder *b = unwind_builder_new();
	struct unwind_table *t;
	uint8_t *bytes;

	add(b, 0x10010, 1);
	add(b, 0x10020, 2);
	add(b, 0x20010, 3);
	add(b, 0x20020, 0);
	t = done(b);
	*len = unwind_encoded_len(t);
	bytes = malloc(*len);
	unwind_encode(t, bytes);
	unwind_free(t);
	return bytes;
}

static void there_and_back(void **state)
{
	struct unwind_table *t;
	size_t len;
	uint8_t *bytes = encoded(&len);

	(void)state;
	assert_int_equal(unwind_decode(bytes, len, &t), 0);
	assert_int_equal(at(t, 0x1000f), 0);
	assert_int_equal(at(t, 0x10010), 1);
	assert_int_equal(at(t, 0x2000f), 2);
	assert_int_equal(at(t, 0x20010), 3);
	assert_int_equal(at(t, 0x20020), 0);
	unwind_free(t);
	free(bytes);
}

static void any_other_length(void **state)
{
	struct unwind_table *t;
	size_t len;
	uint8_t *bytes = encoded(&len), *longer = calloc(1, len + 1);

	(void)state;
	for (size_t i = 0; i < len; i++)
		assert_int_equal(unwind_decode(bytes, i, &t), -DCPI_EFORMAT);
	memcpy(longer, bytes, len);
	assert_int_equal(unwind_decode(longer, len + 1, &t), -DCPI_EFORMAT);
	assert_null(t);
	free(longer);
	free(bytes);
}

/* One 16-bit number changed. */
static void expect_bad(size_t off, uint16_t value)
{
	struct unwind_table *t;
	size_t len;
	uint8_t *bytes = encoded(&len);

	memcpy(bytes + off, &value, sizeof(value));
	assert_int_equal(unwind_decode(bytes, len, &t), -DCPI_EFORMAT);
	assert_null(t);
	free(bytes);
}

static void numbers_out_of_range(void **state)
{
	const size_t python = 16, version = python + offsetof(struct unwind_python, version),
		     rules = python + sizeof(struct unwind_python),
		     pages = rules + 4 * sizeof(struct unwind_rule),
		     rows = pages + 3 * sizeof(uint32_t);

	(void)state;
	expect_bad(4, 3);		/* pages in the head */
	expect_bad(6, 0xffff);		/* the same, very many */
	expect_bad(8, 5);		/* rows */
	expect_bad(10, 0xffff);		/* very many */
	expect_bad(12, 0);		/* no rules */
	expect_bad(version, 0x030a);	/* a CPython of no known layout */
	expect_bad(rules, UNWIND_CFA);	/* rule 0 */
	expect_bad(rules + 16, 0x00ff); /* how of rule 1 */
	expect_bad(pages, 1);		/* row 0 is of no page */
	expect_bad(pages + 4, 5);	/* above the end */
	expect_bad(pages + 8, 3);	/* not to the end */
	expect_bad(rows + 4, 0x10);	/* not ascending */
	expect_bad(rows + 2, 4);	/* no such rule */
	expect_bad(rows + 14, 1);	/* the last row has a rule */
}

static void a_layout_of_python(void **state)
{
	struct unwind_python p = { .version = UNWIND_PYTHON_3_12, .code_type = 1 };

	(void)state;
	assert_true(unwind_python_valid(&p));
	p.string_other = UNWIND_PYTHON_OFFSET_MAX;
	assert_false(unwind_python_valid(&p));
	p.string_other = 0;
	p.threads = UINT16_MAX;
	assert_false(unwind_python_valid(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty),
		cmocka_unit_test(rows_of_pages),
		cmocka_unit_test(neighbours_are_merged),
		cmocka_unit_test(first_row_goes),
		cmocka_unit_test(as_a_list_has_it),
		cmocka_unit_test(wrong_rows),
		cmocka_unit_test(more_rules_than_numbers),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(any_other_length),
		cmocka_unit_test(numbers_out_of_range),
		cmocka_unit_test(a_layout_of_python),
	};

	return cmocka_run_group_tests_name("unwind/table", tests, NULL, NULL);
}
