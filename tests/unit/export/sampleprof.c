/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sampleprof.h"

static struct image *img;

static int set_up(void **state)
{
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(image_open_path(FIXTURES "/fixture.so", IMAGE_FILE, &img, &err), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	image_close(img);
	return 0;
}

/* Every block of the procedure, called @as, ran @count times. */
static int add_as(struct sampleprof *s, const char *name, const char *as, double count,
		  double entered)
{
	struct base_err err = { 0 };
	struct runs_procedure p = { .entered = entered };
	struct image_symbol symbol;
	struct flow *flow = NULL;
	size_t pos = 0;
	double *block;
	int r;

	p.symbol = image_symbol_find(img, name, &pos);
	assert_non_null(p.symbol);
	assert_int_equal(flow_build(img, p.symbol, &flow, &err), 0);
	block = calloc((size_t)flow->nr_blocks + 1, sizeof(*block));
	assert_non_null(block);
	for (uint32_t i = 0; i < flow->nr_blocks; i++)
		block[i] = count;
	symbol = *p.symbol;
	symbol.name = as;
	p.symbol = &symbol;
	p.flow = flow;
	p.block = block;
	r = sampleprof_add(s, img, &p);
	free(block);
	flow_free(flow);
	return r;
}

static int add(struct sampleprof *s, const char *name, double count, double entered)
{
	return add_as(s, name, name, count, entered);
}

static char *text_of(struct sampleprof *s)
{
	struct base_buf out = { 0 };

	assert_int_equal(sampleprof_format(s, &out), 0);
	assert_int_equal(base_buf_append(&out, "", 1), 0);
	return (char *)out.data;
}

static void check(struct sampleprof *s, const char *expected)
{
	char *text = text_of(s);

	assert_string_equal(text, expected);
	free(text);
	sampleprof_free(s);
}

/* "nest" begins at line 75 and calls "middle" (70) at 77, that "inner" (65) at 72, whose product
 * stands at 67. */
static void test_inlined(void **state)
{
	struct sampleprof *s;

	(void)state;
	assert_int_equal(sampleprof_new(&s), 0);
	assert_int_equal(add(s, "nest", 5, 2), 1);
	check(s, "nest:25:2\n"
		 " 1: 5\n"
		 " 2: 5\n"
		 " 3: 5\n"
		 " 2: middle:10\n"
		 "  2: 5\n"
		 "  2: inner:5\n"
		 "   2: 5\n");
}

/* "alpha" (13) calls "beta" (8) in its second line. Most counts come first. */
static void test_calls(void **state)
{
	struct sampleprof *s;

	(void)state;
	assert_int_equal(sampleprof_new(&s), 0);
	assert_int_equal(add(s, "beta", 7, 7), 1);
	assert_int_equal(add(s, "alpha", 9, 9), 1);
	check(s, "alpha:27:9\n"
		 " 1: 9\n"
		 " 2: 9 beta:9\n"
		 " 3: 9\n"
		 "beta:21:7\n"
		 " 1: 7\n"
		 " 2: 7\n"
		 " 3: 7\n");
	/* The calls of a line add up as well, over procedures of one name. */
	assert_int_equal(sampleprof_new(&s), 0);
	assert_int_equal(add(s, "alpha", 9, 9), 1);
	assert_int_equal(add(s, "alpha", 2, 2), 1);
	check(s, "alpha:33:11\n"
		 " 1: 11\n"
		 " 2: 11 beta:11\n"
		 " 3: 11\n");
}

/* Of one procedure the most, of procedures of one name the sum; estimates are rounded. */
static void test_sums(void **state)
{
	struct sampleprof *s;

	(void)state;
	assert_int_equal(sampleprof_new(&s), 0);
	assert_int_equal(add(s, "omega", 2.5, -1), 1);
	assert_int_equal(add(s, "omega", 0x1p80, 1), 1);
	assert_int_equal(add(s, "omega", -1, -1), 0); /* not known */
	check(s, "omega:18446744073709551615:1\n"
		 " 1: 9223372036854775811\n"
		 " 2: 9223372036854775811\n"
		 " 3: 9223372036854775811\n");
}

/* Copies and parts that a compiler made are the routine of the source, which parts do not enter; a
 * name cannot make a line. */
static void test_names(void **state)
{
	struct sampleprof *s;

	(void)state;
	assert_int_equal(sampleprof_new(&s), 0);
	assert_int_equal(add_as(s, "omega", "f.part.0", 1, 1), 1);
	assert_int_equal(add_as(s, "omega", "f.constprop.0.isra.0", 2, 2), 1);
	assert_int_equal(add_as(s, "omega", "f", 4, 4), 1);
	assert_int_equal(add_as(s, "omega", "\ng:1:1", 1, 1), 1);
	check(s, "f:21:6\n"
		 " 1: 7\n"
		 " 2: 7\n"
		 " 3: 7\n"
		 "?g:1:1:3:1\n"
		 " 1: 1\n"
		 " 2: 1\n"
		 " 3: 1\n");
}

/* Code of an assembler has no lines; nothing at all is printed then. */
static void test_no_lines(void **state)
{
	struct sampleprof *s;

	(void)state;
	assert_int_equal(sampleprof_new(&s), 0);
	assert_int_equal(add(s, "uneven_proc", 3, 3), 0);
	check(s, "");
}

/* Packed as LLVM's DILocation has it: 3 in the first seven bits, then 4 or (a set bit) nothing, and
 * the long form of 40. */
static void test_discriminators(void **state)
{
	(void)state;
	assert_int_equal(sampleprof_block_of(0), 0);
	assert_int_equal(sampleprof_copies_of(0), 1);
	assert_int_equal(sampleprof_block_of(3 << 1), 3);
	assert_int_equal(sampleprof_copies_of(3 << 1), 1);
	assert_int_equal(sampleprof_block_of(3 << 1 | 4 << 8), 3);
	assert_int_equal(sampleprof_copies_of(3 << 1 | 4 << 8), 4);
	assert_int_equal(sampleprof_block_of(1 | 4 << 2), 0);
	assert_int_equal(sampleprof_copies_of(1 | 4 << 2), 4);
	assert_int_equal(sampleprof_block_of((8 | 1 << 5 | 1 << 6) << 1), 40);
	assert_int_equal(sampleprof_copies_of((8 | 1 << 5 | 1 << 6) << 1 | 6 << 15), 6);
}

/* The same as test_calls, as gcc reads it: names with their lengths in bytes, lines in the upper
 * half of a word, counts in two words. */
static void test_gcov(void **state)
{
	static const uint32_t expected[] = {
		0x67636461, 2,		0,			      /* head */
		0xaa000000, 5,		2, 6, 0x68706c61, 0x00050061, /* "alpha", "beta" */
		0x65620000, 0x00006174,				      /* cut at the last of these */
	};
	static const uint32_t routines[] = {
		0xac000000, 40, 2,				 /* routines */
		9,	    0,	0, 3, 0,			 /* alpha */
		1 << 16,    0,	9, 0, 2 << 16, 1,	9, 0,	 /* lines 1 and 2 */
		7,	    1,	0, 9, 0,       3 << 16, 0, 9, 0, /* which calls beta; 3 */
		7,	    0,	1, 3, 0,			 /* beta */
		1 << 16,    0,	7, 0, 2 << 16, 0,	7, 0, 3 << 16, 0, 7, 0, 0xae000000, 1, 0,
	};
	size_t names_len = sizeof(expected) - 1;
	struct base_buf out = { 0 };
	struct sampleprof *s;

	(void)state;
	assert_int_equal(sampleprof_new(&s), 0);
	assert_int_equal(add(s, "beta", 7, 7), 1);
	assert_int_equal(add(s, "alpha", 9, 9), 1);
	assert_int_equal(sampleprof_format_gcov(s, &out), 0);
	assert_int_equal(out.len, names_len + sizeof(routines));
	assert_memory_equal(out.data, expected, names_len);
	assert_memory_equal((const uint8_t *)out.data + names_len, routines, sizeof(routines));
	base_buf_release(&out);
	sampleprof_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inlined),	 cmocka_unit_test(test_calls),
		cmocka_unit_test(test_sums),	 cmocka_unit_test(test_names),
		cmocka_unit_test(test_no_lines), cmocka_unit_test(test_discriminators),
		cmocka_unit_test(test_gcov),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
