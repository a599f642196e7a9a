/* SPDX-License-Identifier: BSD-2-Clause */
/* Every LINE_NUM command, by hand-worked bytes. Base 0x1000, the routine at 0x1010 … 0x1090. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dst_bytes.h"
#include "pseudoimg_internal.h"

enum { BASE = 0x1000, MAX_ROWS = 6, END = -1 };

struct expect {
	uint32_t addr; /* from BASE */
	int line;      /* END: closes */
};

struct line_case {
	const char *what;
	uint8_t bytes[40];
	size_t len;
	struct expect rows[MAX_ROWS];
	size_t nr_rows;
	uint32_t nr_bad;
};

#define BYTES(...) .bytes = { __VA_ARGS__ }, .len = sizeof((const uint8_t[]){ __VA_ARGS__ })
#define ROWS(...)                                                                                  \
	.rows = { __VA_ARGS__ },                                                                   \
	.nr_rows = sizeof((const struct expect[]){ __VA_ARGS__ }) / sizeof(struct expect)
#define MINUS(n) (uint8_t)(256 - (n))

static const struct line_case cases[] = {
	{ "delta 0 opens line 1 at the lowest routine, TERM_B closes", BYTES(0, 14, 4),
	  ROWS({ 0x10, 1 }, { 0x14, END }) },
	{ "one-byte deltas, the largest is 128", BYTES(0, MINUS(4), MINUS(128), 14, 1),
	  ROWS({ 0x10, 1 }, { 0x14, 2 }, { 0x94, 3 }, { 0x95, END }) },
	{ "1 DELTA_PC_W", BYTES(0, 1, 0x34, 0, 14, 2),
	  ROWS({ 0x10, 1 }, { 0x44, 2 }, { 0x46, END }) },
	{ "17 DELTA_PC_L", BYTES(17, 2, 0, 0, 0, 14, 2), ROWS({ 0x12, 1 }, { 0x14, END }) },
	{ "2 INCR_LINUM", BYTES(2, 9, 0, 14, 1), ROWS({ 0x10, 10 }, { 0x11, END }) },
	{ "3 INCR_LINUM_W", BYTES(3, 0, 1, 0, 14, 1), ROWS({ 0x10, 257 }, { 0x11, END }) },
	{ "18 INCR_LINUM_L", BYTES(18, 0, 0, 1, 0, 0, 14, 1),
	  ROWS({ 0x10, 65537 }, { 0x11, END }) },
	{ "4 SET_LINUM_INCR", BYTES(4, 5, 0, MINUS(1), 14, 1),
	  ROWS({ 0x10, 5 }, { 0x11, 10 }, { 0x12, END }) },
	{ "5 SET_LINUM_INCR_W", BYTES(5, 0, 1, 0, 14, 1), ROWS({ 0x10, 256 }, { 0x11, END }) },
	{ "6 RESET_LINUM_INCR", BYTES(4, 5, 0, 6, MINUS(1), 14, 1),
	  ROWS({ 0x10, 5 }, { 0x11, 6 }, { 0x12, END }) },
	{ "7, 8: in statement mode the line stays",
	  BYTES(0, 7, MINUS(2), MINUS(2), 8, MINUS(2), 14, 1),
	  ROWS({ 0x10, 1 }, { 0x12, 1 }, { 0x14, 1 }, { 0x16, 2 }, { 0x17, END }) },
	{ "7 with no line open is malformed", BYTES(7, 0, 14, 1), .nr_bad = 1 },
	{ "TERM leaves statement mode", BYTES(0, 7, 14, 1, 0, 14, 1),
	  ROWS({ 0x10, 1 }, { 0x11, END }, { 0x11, 2 }, { 0x12, END }) },
	{ "9 SET_LINUM", BYTES(9, 0x2c, 1, 0, 14, 1), ROWS({ 0x10, 301 }, { 0x11, END }) },
	{ "19 SET_LINUM_B", BYTES(19, 41, 0, 14, 1), ROWS({ 0x10, 42 }, { 0x11, END }) },
	{ "20 SET_LINUM_L", BYTES(20, 0, 0, 1, 0, 0, 14, 1), ROWS({ 0x10, 65537 }, { 0x11, END }) },
	{ "10 SET_PC: from the start", BYTES(0, 14, 1, 10, 8, 0, 14, 1),
	  ROWS({ 0x10, 1 }, { 0x11, END }, { 0x18, 2 }, { 0x19, END }) },
	{ "11 SET_PC_W", BYTES(11, 0, 1, 0, 14, 1), ROWS({ 0x110, 1 }, { 0x111, END }) },
	{ "12 SET_PC_L", BYTES(12, 3, 0, 0, 0, 0, 14, 1), ROWS({ 0x13, 1 }, { 0x14, END }) },
	{ "SET_PC with a line open is malformed; the open line ends where it began",
	  BYTES(0, MINUS(4), 10, 8, 14, 1), ROWS({ 0x10, 1 }, { 0x14, END }), .nr_bad = 1 },
	{ "13 SET_STMTNUM: a byte", BYTES(13, 7, 0, 14, 1), ROWS({ 0x10, 1 }, { 0x11, END }) },
	{ "15 TERM_W", BYTES(0, 15, 0x20, 0), ROWS({ 0x10, 1 }, { 0x30, END }) },
	{ "21 TERM_L", BYTES(0, 21, 0x30, 0, 0, 0), ROWS({ 0x10, 1 }, { 0x40, END }) },
	{ "TERM with no line open only moves", BYTES(14, 4, 0, 14, 1),
	  ROWS({ 0x14, 1 }, { 0x15, END }) },
	{ "16 SET_ABS_PC: from the base", BYTES(16, 0x20, 0, 0, 0, 0, 14, 1),
	  ROWS({ 0x20, 1 }, { 0x21, END }) },
	{ "16 with a line open is malformed", BYTES(0, 16, 0x20, 0, 0, 0), ROWS({ 0x10, END }),
	  .nr_bad = 1 },
	{ "lines left open end with the routine", BYTES(0, MINUS(8)),
	  ROWS({ 0x10, 1 }, { 0x18, 2 }, { 0x90, END }) },
	{ "left open outside of every routine: nobody knows how far", BYTES(16, 0xa0, 0, 0, 0, 0),
	  .nr_rows = 0 },
	{ "unknown command", BYTES(0, 14, 2, 22, 0), ROWS({ 0x10, 1 }, { 0x12, END }),
	  .nr_bad = 1 },
	{ "operand cut", BYTES(0, 14, 2, 20, 1, 0), ROWS({ 0x10, 1 }, { 0x12, END }), .nr_bad = 1 },
	{ "line number beyond 32 bits", BYTES(20, 0xff, 0xff, 0xff, 0xff, 0), .nr_bad = 1 },
};

static void check_rows(const struct pseudoimg_dst *dst, const struct line_case *c)
{
	assert_int_equal(dst->nr_bad, c->nr_bad);
	assert_int_equal(dst->rows.nr, c->nr_rows);
	for (size_t i = 0; i < c->nr_rows; i++) {
		const struct pseudoimg_dst_row *row = &dst->rows.v[i];

		assert_int_equal(row->addr, BASE + c->rows[i].addr);
		assert_int_equal(row->end, c->rows[i].line == END);
		if (row->end)
			continue;
		assert_int_equal(row->line, c->rows[i].line);
		assert_int_equal(dst->files.v[row->file].p[0], 'm');
	}
}

static void test_commands(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct line_case *c = &cases[i];
		struct base_buf b = { 0 };
		struct pseudoimg_dst dst;

		print_message("%s\n", c->what);
		dst_module(&b, c->bytes, c->len, NULL, 0);
		assert_int_equal(pseudoimg_dst_decode(b.data, b.len, BASE, &dst), 0);
		assert_int_equal(dst.routines.nr, 1); /* lines gone wrong cost no routine */
		check_rows(&dst, c);
		pseudoimg_dst_release(&dst);
		base_buf_release(&b);
	}
}

/* All LINE_NUM records of a module are one stream, and one stands before the routine it counts
 * from. */
static void test_stream_spans_records(void **state)
{
	static const struct line_case c = { ROWS({ 0x10, 6 }, { 0x14, 7 }, { 0x16, END }) };
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;

	(void)state;
	dst_modbeg(&b);
	DST_BYTES(&b, 185, 19, 5);
	dst_rtnbeg(&b, 0x10, 'r');
	DST_BYTES(&b, 185, 0);
	dst_rtnend(&b, 8);
	DST_BYTES(&b, 185, MINUS(4), 14, 2);
	dst_modend(&b);
	assert_int_equal(pseudoimg_dst_decode(b.data, b.len, BASE, &dst), 0);
	check_rows(&dst, &c);
	pseudoimg_dst_release(&dst);
	base_buf_release(&b);
}

/* The state does not outlive its module. */
static void test_state_starts_anew(void **state)
{
	static const struct line_case c = { ROWS({ 0x10, 10 }, { 0x11, END }, { 0x40, 1 },
						 { 0x41, END }) };
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;

	(void)state;
	dst_modbeg(&b);
	dst_rtnbeg(&b, 0x10, 'r');
	DST_BYTES(&b, 185, 4, 10, 0, 14, 1);
	dst_rtnend(&b, 8);
	dst_modend(&b);
	dst_modbeg(&b);
	dst_rtnbeg(&b, 0x40, 's');
	DST_BYTES(&b, 185, 0, 14, 1);
	dst_rtnend(&b, 8);
	dst_modend(&b);
	assert_int_equal(pseudoimg_dst_decode(b.data, b.len, BASE, &dst), 0);
	check_rows(&dst, &c);
	pseudoimg_dst_release(&dst);
	base_buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_stream_spans_records),
		cmocka_unit_test(test_state_starts_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
