/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exact.h"

/* The lines, with their checksum behind them. */
static void sealed(struct base_buf *out, const char *lines)
{
	base_buf_clear(out);
	assert_int_equal(base_buf_printf(out, "%s", lines), 0);
	assert_int_equal(base_buf_printf(out, "crc32c %08x\n", base_crc32c(0, out->data, out->len)),
			 0);
}

static int parse(struct exact *e, const char *lines, bool tab, struct base_err *err)
{
	struct base_buf b = { 0 };
	int r;

	sealed(&b, lines);
	r = tab ? exact_parse_tab(e, b.data, b.len, "x", err)
		: exact_parse(e, b.data, b.len, "x", err);
	base_buf_release(&b);
	return r;
}

/* A loop at 1000: 3 instructions before, 4 in it that run 10 times, one behind. */
static const char loop[] = "dcpi-xct 1\n"
			   "run 1700000000 2 -1 hand-1 a \\x0ab\\\\c\n"
			   "image file 0123456789abcdef\n"
			   "path /bin/a\n"
			   "path /bin/b\n"
			   "n 1000 1 3 5\n"
			   "n 100a 10 2 2 3\n"
			   "n 1013 1\n"
			   "e 1011 100a 9\n"
			   "e 1013 - 1\n"
			   "image process 42\n"
			   "path [dynamic]\n"
			   "n 7f0000000000 5\n";

static const struct exact_image *first(const struct exact *e)
{
	struct base_id id;

	assert_int_equal(base_id_parse(&id, "0123456789abcdef", 16), 0);
	return exact_find(e, &id);
}

static void asked(void **state)
{
	struct exact e = { 0 };
	const struct exact_image *x;

	(void)state;
	assert_int_equal(parse(&e, loop, false, NULL), 0);
	assert_int_equal(e.nr_runs, 1);
	assert_string_equal(e.runs[0].command, "a \nb\\c");
	assert_int_equal(e.runs[0].status, -1);
	x = first(&e);
	assert_non_null(x);
	assert_int_equal(x->nr_paths, 2);
	assert_int_equal(x->nr_counts, 8);
	assert_int_equal(exact_executions(x, 0x1000), 1);
	assert_int_equal(exact_executions(x, 0x1008), 1);
	assert_int_equal(exact_executions(x, 0x1009), 0);
	assert_int_equal(exact_executions(x, 0x100e), 10);
	assert_int_equal(exact_executions(x, 0x1011), 10);
	assert_int_equal(exact_taken(x, 0x1011, 0x100a), 9);
	assert_int_equal(exact_taken(x, 0x1011, 0x1013), 0);
	assert_int_equal(exact_taken(x, 0x1013, EXACT_OUTSIDE), 1);
	assert_int_equal(exact_fall(x, 0x1011, 0x1013), 1);
	assert_int_equal(exact_fall(x, 0x100e, 0x1011), 10);
	assert_int_equal(exact_fall(x, 0x1013, 0x1014), 0);
	exact_release(&e);
}

static void written_as_read(void **state)
{
	struct exact e = { 0 };
	struct base_buf want = { 0 }, got = { 0 };

	(void)state;
	sealed(&want, loop);
	assert_int_equal(exact_parse(&e, want.data, want.len, "x", NULL), 0);
	assert_int_equal(exact_format(&e, &got), 0);
	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.data, want.data, want.len);
	base_buf_release(&want);
	base_buf_release(&got);
	exact_release(&e);
}

static void summed(void **state)
{
	struct exact e = { 0 };
	const struct exact_image *x;

	(void)state;
	assert_int_equal(parse(&e, loop, false, NULL), 0);
	assert_int_equal(parse(&e, loop, false, NULL), 0);
	assert_int_equal(parse(&e,
			       "dcpi-xct 1\nimage file 0123456789abcdef\npath /bin/c\n"
			       "n ff0 3\nn 1013 7\ne 1011 100a 1\ne 1012 - 4\n",
			       false, NULL),
			 0);
	assert_int_equal(e.nr_runs, 2);
	assert_int_equal(e.nr_images, 2);
	x = first(&e);
	assert_int_equal(x->nr_paths, 3);
	assert_int_equal(x->nr_counts, 9);
	assert_int_equal(exact_executions(x, 0xff0), 3);
	assert_int_equal(exact_executions(x, 0x100a), 20);
	assert_int_equal(exact_executions(x, 0x1013), 9);
	assert_int_equal(exact_taken(x, 0x1011, 0x100a), 19);
	assert_int_equal(exact_taken(x, 0x1012, EXACT_OUTSIDE), 4);
	exact_release(&e);
}

static void too_much(void **state)
{
	static const char lines[] = "dcpi-xct 1\nimage file 0123456789abcdef\npath /bin/c\n"
				    "n 0 18446744073709551615\n";
	struct exact e = { 0 };
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(parse(&e, lines, false, NULL), 0);
	assert_int_equal(parse(&e, lines, false, &err), -DCPI_EOVERFLOW);
	assert_string_equal(err.text, "cannot add 'x': value does not fit");
	exact_release(&e);
}

static void procedures(void **state)
{
	static const char lines[] = "dcpi-tab 1\n"
				    "image dynamic ab\n"
				    "path calc\n"
				    "procedure 0 40 0123456789012345678901234567890123456789 "
				    "abcdef6789012345678901234567890123456789 a b\n"
				    "procedure 40 8 - - c\n";
	struct base_buf want = { 0 }, got = { 0 };
	struct exact e = { 0 };

	(void)state;
	assert_int_equal(parse(&e, lines, true, NULL), 0);
	assert_int_equal(e.images[0]->nr_procedures, 2);
	assert_string_equal(e.images[0]->procedures[0].name, "a b");
	assert_true(e.images[0]->procedures[0].hashed);
	assert_int_equal(e.images[0]->procedures[0].hashes.masked[0], 0xab);
	assert_false(e.images[0]->procedures[1].hashed);
	/* Once more: still two, and written as it was. */
	assert_int_equal(parse(&e, lines, true, NULL), 0);
	assert_int_equal(exact_format_tab(&e, &got), 0);
	sealed(&want, lines);
	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.data, want.data, want.len);
	base_buf_release(&want);
	base_buf_release(&got);
	exact_release(&e);
}

#define IMAGE "dcpi-xct 1\nimage file 01\npath /a\n"

static void refused(void **state)
{
	static const struct {
		const char *lines;
		int code;
	} bad[] = {
		{ "dcpi-xct 2\n", -DCPI_EVERSION },
		{ "dcpi-tab 1\n", -DCPI_EFORMAT },
		{ "dcpi-xct 1\nnonsense\n", -DCPI_EFORMAT },
		{ "dcpi-xct 1\n\n", -DCPI_EFORMAT },
		{ "dcpi-xct 1\nn 0 1\n", -DCPI_EFORMAT },
		{ "dcpi-xct 1\npath /a\n", -DCPI_EFORMAT },
		{ "dcpi-xct 1\nimage file 01\n", -DCPI_EFORMAT },
		{ "dcpi-xct 1\nimage file 0\npath /a\n", -DCPI_EFORMAT },
		{ "dcpi-xct 1\nimage file -\npath /a\npath /b\n", -DCPI_EFORMAT },
		{ "dcpi-xct 1\nimage none 01\npath /a\n", -DCPI_EFORMAT },
		{ "dcpi-xct 1\nimage process 4294967296\npath /a\n", -DCPI_EFORMAT },
		{ "dcpi-xct 1\nrun 1 1 0 c\n", -DCPI_EFORMAT },
		{ "dcpi-xct 1\nrun 1 1 0 c \\x00\n", -DCPI_EFORMAT },
		{ IMAGE "n 0\n", -DCPI_EFORMAT },
		{ IMAGE "n 0 0\n", -DCPI_EFORMAT },
		{ IMAGE "n 00 1\n", -DCPI_EFORMAT },
		{ IMAGE "n 0 1 \n", -DCPI_EFORMAT },
		{ IMAGE "n 0 1 0\n", -DCPI_EFORMAT },
		{ IMAGE "n 0 1 ffffffffffffffff 1\n", -DCPI_EFORMAT },
		{ IMAGE "n 0 18446744073709551616\n", -DCPI_EFORMAT },
		{ IMAGE "n 5 1\nn 5 1\n", -DCPI_EFORMAT },
		{ IMAGE "n G 1\n", -DCPI_EFORMAT },
		{ IMAGE "e 0 1\n", -DCPI_EFORMAT },
		{ IMAGE "e 0 1 0\n", -DCPI_EFORMAT },
		{ IMAGE "e 0 1 1 1\n", -DCPI_EFORMAT },
		{ IMAGE "e 2 1 1\ne 2 1 1\n", -DCPI_EFORMAT },
		{ IMAGE "e 2 1 1\nn 2 1\n", -DCPI_EFORMAT },
		{ IMAGE "procedure 0 1 - - a\n", -DCPI_EFORMAT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct exact e = { 0 };
		struct base_err err = { 0 };
		int r = parse(&e, bad[i].lines, false, &err);

		if (r != bad[i].code)
			fail_msg("%zu: %d, not %d: %s", i, r, bad[i].code, bad[i].lines);
		assert_int_equal(strcmp(err.hint, "a newer DCPI wrote it") == 0,
				 r == -DCPI_EVERSION);
		exact_release(&e);
	}
}

static void damaged(void **state)
{
	struct base_buf b = { 0 };

	(void)state;
	sealed(&b, loop);
	for (size_t len = 0; len < b.len; len++) {
		struct exact e = { 0 };

		assert_true(exact_parse(&e, b.data, len, "x", NULL) < 0);
		exact_release(&e);
	}
	for (size_t i = 0; i < b.len; i++) {
		struct exact e = { 0 };

		b.data[i] ^= 1;
		assert_true(exact_parse(&e, b.data, b.len, "x", NULL) < 0);
		b.data[i] ^= 1;
		exact_release(&e);
	}
	base_buf_release(&b);
}

static void line_is_named(void **state)
{
	struct base_err err = { 0 };
	struct exact e = { 0 };

	(void)state;
	assert_int_equal(parse(&e, IMAGE "n 0 1\nn 0 2\n", false, &err), -DCPI_EFORMAT);
	assert_string_equal(err.text, "cannot read 'x': line 5: malformed data");
	exact_release(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asked),      cmocka_unit_test(written_as_read),
		cmocka_unit_test(summed),     cmocka_unit_test(too_much),
		cmocka_unit_test(procedures), cmocka_unit_test(refused),
		cmocka_unit_test(damaged),    cmocka_unit_test(line_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
