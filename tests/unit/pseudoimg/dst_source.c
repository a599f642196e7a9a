/* SPDX-License-Identifier: BSD-2-Clause */
/* Every SOURCE command, by hand-worked bytes, and what becomes of listing lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pseudoimg_internal.h"

/* DECLFILE of a one-letter file without library module: 23 bytes, of which 21 behind the count. */
#define DECL(id, letter)                                                                           \
	1, 21, 0, (id), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,    \
		(letter), 0

struct expect {
	uint32_t listing;
	char file; /* 0: not bound */
	uint32_t line;
};

struct source_case {
	const char *what;
	uint8_t bytes[80];
	size_t len;
	struct expect lines[6];
	size_t nr_lines;
	int result;
};

#define BYTES(...) .bytes = { __VA_ARGS__ }, .len = sizeof((const uint8_t[]){ __VA_ARGS__ })
#define LINES(...)                                                                                 \
	.lines = { __VA_ARGS__ },                                                                  \
	.nr_lines = sizeof((const struct expect[]){ __VA_ARGS__ }) / sizeof(struct expect)

static const struct source_case cases[] = {
	{ "1, 2, 11: a file from its first record on", BYTES(DECL(3, 'a'), 2, 3, 0, 11, 2),
	  LINES({ 0, 0, 0 }, { 1, 'a', 1 }, { 2, 'a', 2 }, { 3, 0, 0 }) },
	{ "10 DEFLINES_W", BYTES(DECL(3, 'a'), 2, 3, 0, 10, 0, 1),
	  LINES({ 1, 'a', 1 }, { 256, 'a', 256 }, { 257, 0, 0 }) },
	{ "3 SETREC_L", BYTES(DECL(3, 'a'), 2, 3, 0, 3, 0, 0, 1, 0, 11, 1),
	  LINES({ 1, 'a', 65536 }) },
	{ "4 SETREC_W", BYTES(DECL(3, 'a'), 2, 3, 0, 4, 44, 1, 11, 1), LINES({ 1, 'a', 300 }) },
	{ "5 SETLNUM_L", BYTES(DECL(3, 'a'), 2, 3, 0, 5, 0, 0, 1, 0, 11, 1),
	  LINES({ 65535, 0, 0 }, { 65536, 'a', 1 }) },
	{ "6 SETLNUM_W", BYTES(DECL(3, 'a'), 2, 3, 0, 6, 44, 1, 11, 1),
	  LINES({ 1, 0, 0 }, { 300, 'a', 1 }) },
	{ "7 INCRLNUM: lines between are of nothing",
	  BYTES(DECL(3, 'a'), 2, 3, 0, 11, 1, 7, 4, 11, 1),
	  LINES({ 1, 'a', 1 }, { 2, 0, 0 }, { 6, 'a', 2 }) },
	{ "16 FORMFEED changes no number", BYTES(DECL(3, 'a'), 2, 3, 0, 16, 11, 1),
	  LINES({ 1, 'a', 1 }) },
	{ "a file goes on where it was left",
	  BYTES(DECL(1, 'a'), DECL(2, 'b'), 2, 1, 0, 11, 2, 2, 2, 0, 11, 1, 2, 1, 0, 11, 1),
	  LINES({ 2, 'a', 2 }, { 3, 'b', 1 }, { 4, 'a', 3 }) },
	{ "declared again, an id means the new file",
	  BYTES(DECL(1, 'a'), DECL(1, 'b'), 2, 1, 0, 11, 1), LINES({ 1, 'b', 1 }) },
	{ "undeclared file", BYTES(2, 9, 0), .result = -DCPI_EFORMAT },
	{ "record of no file", BYTES(4, 1, 0), .result = -DCPI_EFORMAT },
	{ "lines of no file", BYTES(11, 1), .result = -DCPI_EFORMAT },
	{ "lines defined twice; the first stand",
	  BYTES(DECL(3, 'a'), 2, 3, 0, 11, 3, 6, 2, 0, 11, 1), LINES({ 2, 'a', 2 }),
	  .result = -DCPI_EFORMAT },
	{ "listing line beyond 32 bits",
	  BYTES(DECL(3, 'a'), 2, 3, 0, 5, 0xff, 0xff, 0xff, 0xff, 11, 2), .result = -DCPI_EFORMAT },
	{ "record beyond 32 bits", BYTES(DECL(3, 'a'), 2, 3, 0, 3, 0xff, 0xff, 0xff, 0xff, 11, 2),
	  .result = -DCPI_EFORMAT },
	{ "unknown command", BYTES(8), .result = -DCPI_EFORMAT },
	{ "unknown command beyond the table", BYTES(200), .result = -DCPI_EFORMAT },
	{ "operand cut", BYTES(3, 1, 2, 3), .result = -DCPI_EFORMAT },
	{ "DECLFILE longer than its record", BYTES(1, 21, 0, 3, 0), .result = -DCPI_EFORMAT },
	{ "DECLFILE too short for its name",
	  BYTES(1, 19, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 11, 0),
	  .result = -DCPI_EFORMAT },
};

static void check(const struct pseudoimg_source *s, const struct pseudoimg_dst *dst,
		  const struct source_case *c)
{
	for (size_t i = 0; i < c->nr_lines; i++) {
		uint32_t file = 0, line = 0;
		bool found = pseudoimg_source_find(s, c->lines[i].listing, &file, &line);

		assert_int_equal(found, c->lines[i].file != 0);
		if (!found)
			continue;
		assert_int_equal(dst->files.v[file].len, 1);
		assert_int_equal(dst->files.v[file].p[0], c->lines[i].file);
		assert_int_equal(line, c->lines[i].line);
	}
}

/* All on one state, begun anew each time: nothing may be left of the module before. */
static void test_commands(void **state)
{
	struct pseudoimg_source s = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct source_case *c = &cases[i];
		struct pseudoimg_dst dst = { 0 };

		print_message("%s\n", c->what);
		assert_int_equal(pseudoimg_source_begin(&s), 0);
		assert_int_equal(pseudoimg_source_run(
					 &s, (struct pseudoimg_cursor){ c->bytes, c->len }, &dst),
				 c->result);
		check(&s, &dst, c);
		pseudoimg_dst_release(&dst);
	}
	pseudoimg_source_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
