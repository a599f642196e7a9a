/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The DST writers against bytes worked out by hand from the record tables of the OpenVMS Alpha
 * form: u16 length (whole record minus 1), u16 type, then the fields.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dbgdyn_vms.h"

static unsigned char space[1u << 20];

static struct dbgdyn_dst fresh(size_t len)
{
	memset(space, 0, sizeof(space));
	return (struct dbgdyn_dst){ .base = space, .len = len };
}

#define EXPECT(d, ...)                                                                             \
	do {                                                                                       \
		static const unsigned char want[] = { __VA_ARGS__ };                               \
		assert_int_equal((d).used, sizeof(want));                                          \
		assert_memory_equal(space, want, sizeof(want));                                    \
	} while (0)

static void test_sizes(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct dbgdyn_dst_head), 4);
	assert_int_equal(sizeof(struct dbgdyn_dst_modbeg), 14);
	assert_int_equal(sizeof(struct dbgdyn_dst_rtnbeg), 13);
	assert_int_equal(sizeof(struct dbgdyn_dst_end), 9);
	assert_int_equal(sizeof(struct dbgdyn_dst_blkbeg), 9);
	assert_int_equal(sizeof(struct dbgdyn_dst_prolog), 8);
	assert_int_equal(sizeof(struct dbgdyn_dst_base), 12);
	assert_int_equal(sizeof(struct dbgdyn_dst_declfile), 20);
}

static void test_scopes(void **state)
{
	struct dbgdyn_dst d = fresh(4096);

	(void)state;
	assert_int_equal(dbgdyn_dst_modbeg_put(&d, DBGDYN_DST_C, "Mod", 3, "cc", 2), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_rtnbeg_put(&d, 0x12345678, "go", 2), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_prolog_put(&d, 0x1234567c), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_blkbeg_put(&d, 0x12345680, "", 0), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_blkend_put(&d, 0x102), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_rtnend_put(&d, 0x10203), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_modend_put(&d), DBGDYN_OK);
	EXPECT(d,
	       /* MODBEG 188: flags (version present), unused, language, major, minor, counted name
		  and compiler */
	       20, 0, 188, 0, 2, 0, 7, 0, 0, 0, 1, 0, 13, 0, 3, 'M', 'o', 'd', 2, 'c', 'c',
	       /* RTNBEG 190: flags, address, descriptor, counted name */
	       15, 0, 190, 0, 0, 0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0, 2, 'g', 'o',
	       /* PROLOG 162: address */
	       7, 0, 162, 0, 0x7c, 0x56, 0x34, 0x12,
	       /* BLKBEG 176: unused, address, counted name */
	       9, 0, 176, 0, 0, 0x80, 0x56, 0x34, 0x12, 0,
	       /* BLKEND 177, RTNEND 191: unused, length */
	       8, 0, 177, 0, 0, 2, 1, 0, 0, 8, 0, 191, 0, 0, 3, 2, 1, 0,
	       /* MODEND 189 */
	       3, 0, 189, 0);
}

static void test_base(void **state)
{
	struct dbgdyn_dst d = fresh(4096);

	(void)state;
	assert_int_equal(dbgdyn_dst_base_put(&d, (void *)(uintptr_t)0x7f0102030405u), DBGDYN_OK);
	EXPECT(d, 11, 0, 0x01, 0x44, 5, 4, 3, 2, 1, 0x7f, 0, 0);
}

static void test_source(void **state)
{
	struct dbgdyn_dst d = fresh(4096);

	(void)state;
	assert_int_equal(dbgdyn_dst_file_put(&d, 0x102, "/a.c", 4), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_source_put(&d, 0x102, 3, 70000, 300), DBGDYN_OK);
	EXPECT(d,
	       /* SOURCE 155, DECLFILE: 24 bytes behind its length, no version check, no library */
	       29, 0, 155, 0, 1, 24, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255,
	       255, 4, '/', 'a', '.', 'c', 0,
	       /* SOURCE, SETFILE, SETREC_L, SETLNUM_L, DEFLINES_W */
	       19, 0, 155, 0, 2, 2, 1, 3, 0x70, 0x11, 1, 0, 5, 3, 0, 0, 0, 10, 0x2c, 1);
}

static void test_lines(void **state)
{
	static const struct dbgdyn_dst_line lines[] = { { 0, 0 },   { 2, 5 },	{ 130, 6 },
							{ 259, 4 }, { 259, 7 }, { 300, 0 },
							{ 301, 9 } };
	struct dbgdyn_dst d = fresh(4096);

	(void)state;
	assert_int_equal(dbgdyn_dst_lines_put(&d, 0x100, 400, lines, 7), DBGDYN_OK);
	EXPECT(d, 57, 0, 185, 0,
	       /* line 5 opens at 0x102: SET_LINUM_L 4, SET_ABS_PC, delta 0 */
	       20, 4, 0, 0, 0, 16, 0x02, 1, 0, 0, 0,
	       /* line 6, 128 on: the most that one byte holds */
	       20, 5, 0, 0, 0, 0x80,
	       /* line 4, 129 on: DELTA_PC_L */
	       20, 3, 0, 0, 0, 17, 129, 0, 0, 0,
	       /* line 7 in the same place */
	       20, 6, 0, 0, 0, 0,
	       /* none from 300 on: TERM_L 41 */
	       21, 41, 0, 0, 0,
	       /* line 9 opens at 0x100 + 301 */
	       20, 8, 0, 0, 0, 16, 0x2d, 2, 0, 0, 0,
	       /* and ends with the routine */
	       21, 99, 0, 0, 0);
}

static void test_no_lines_no_record(void **state)
{
	static const struct dbgdyn_dst_line none[] = { { 0, 0 }, { 8, 0 } };
	static const struct dbgdyn_dst_line down[] = { { 8, 1 }, { 7, 1 } };
	static const struct dbgdyn_dst_line outside[] = { { 16, 1 } };
	struct dbgdyn_dst d = fresh(4096);

	(void)state;
	assert_int_equal(dbgdyn_dst_lines_put(&d, 0, 16, NULL, 0), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_lines_put(&d, 0, 16, none, 2), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_lines_put(&d, 0, 16, down, 2), DBGDYN_EINVAL);
	assert_int_equal(dbgdyn_dst_lines_put(&d, 0, 16, outside, 1), DBGDYN_EINVAL);
	assert_int_equal(d.used, 0);
	assert_int_equal(space[0] | space[1] | space[2] | space[3], 0);
}

/* Follow the commands as a reader would; every line must come back at its place. */
static size_t follow(const unsigned char *p, size_t len, uint32_t *line, uint32_t *pc, bool *open,
		     const struct dbgdyn_dst_line *lines, size_t nr)
{
	uint32_t v;

	for (size_t i = 0; i < len;) {
		unsigned char c = p[i++];

		memcpy(&v, p + i, 4);
		if (c == DBGDYN_DST_SET_LINUM_L) {
			*line = v;
		} else if (c == DBGDYN_DST_SET_ABS_PC) {
			assert_false(*open);
			*pc = v;
		} else if (c == DBGDYN_DST_TERM_L) {
			*pc += v;
			*open = false;
		} else {
			assert_true(c == 0 || c >= 0x80 || c == DBGDYN_DST_DELTA_PC_L);
			*pc += c == DBGDYN_DST_DELTA_PC_L ? v : (uint32_t)(256 - c) % 256;
			*line += 1;
			*open = true;
			assert_int_equal(*pc, lines[nr].code_off);
			assert_int_equal(*line, lines[nr].line);
			nr++;
		}
		if (c != 0 && c < 0x80)
			i += 4;
	}
	return nr;
}

static void test_thousands_of_lines_in_several_records(void **state)
{
	static struct dbgdyn_dst_line lines[20000];
	struct dbgdyn_dst d = fresh(sizeof(space));
	uint32_t line = 0, pc = 0;
	size_t nr = 0, records = 0, pos = 0;
	bool open = false;

	(void)state;
	for (uint32_t i = 0; i < 20000; i++)
		lines[i] = (struct dbgdyn_dst_line){ i * 200, 1 + i * 7919 % 50000 };
	assert_int_equal(dbgdyn_dst_lines_put(&d, 0, 4000000, lines, 20000), DBGDYN_OK);
	for (; pos < d.used; records++) {
		uint16_t length;

		memcpy(&length, space + pos, 2);
		assert_int_equal(space[pos + 2], DBGDYN_DST_LINE_NUM);
		nr = follow(space + pos + 4, length + 1u - 4, &line, &pc, &open, lines, nr);
		pos += length + 1u;
	}
	assert_int_equal(pos, d.used);
	assert_int_equal(nr, 20000);
	assert_int_equal(pc, 4000000);
	assert_false(open);
	assert_true(records >= 4);
}

/* Whatever room there is: written whole, or not at all with the rest still zero. */
static void test_no_room(void **state)
{
	static const struct dbgdyn_dst_line lines[] = { { 0, 5 }, { 200, 6 } };
	struct dbgdyn_dst d;
	int r[8];

	(void)state;
	for (size_t len = 0; len < 100; len++) {
		for (int which = 0; which < 8; which++) {
			d = fresh(len);
			memset(space + len, 0xee, 64);
			r[which] = which == 0
					   ? dbgdyn_dst_modbeg_put(&d, DBGDYN_DST_C, "m", 1, "", 0)
				   : which == 1 ? dbgdyn_dst_modend_put(&d)
				   : which == 2 ? dbgdyn_dst_rtnbeg_put(&d, 1, "rr", 2)
				   : which == 3 ? dbgdyn_dst_rtnend_put(&d, 1)
				   : which == 4 ? dbgdyn_dst_file_put(&d, 1, "f", 1)
				   : which == 5 ? dbgdyn_dst_source_put(&d, 1, 1, 1, 1)
				   : which == 6 ? dbgdyn_dst_base_put(&d, space)
						: dbgdyn_dst_lines_put(&d, 0, 300, lines, 2);
			for (size_t i = d.used; i < len; i++)
				assert_int_equal(space[i], 0);
			for (size_t i = len; i < len + 64; i++)
				assert_int_equal(space[i], 0xee);
			assert_true(r[which] == DBGDYN_EFULL ? !d.used : d.used && d.used <= len);
		}
		assert_int_equal(r[0], len >= 17 ? DBGDYN_OK : DBGDYN_EFULL);
		assert_int_equal(r[1], len >= 4 ? DBGDYN_OK : DBGDYN_EFULL);
		assert_int_equal(r[4], len >= 27 ? DBGDYN_OK : DBGDYN_EFULL);
		assert_int_equal(r[7], len >= 60 ? DBGDYN_OK : DBGDYN_EFULL);
	}
}

static void test_names_have_one_length_byte(void **state)
{
	static char name[256];
	struct dbgdyn_dst d = fresh(sizeof(space));

	(void)state;
	memset(name, 'n', sizeof(name));
	assert_int_equal(dbgdyn_dst_rtnbeg_put(&d, 0, name, 256), DBGDYN_EINVAL);
	assert_int_equal(dbgdyn_dst_modbeg_put(&d, DBGDYN_DST_C, name, 256, "", 0), DBGDYN_EINVAL);
	assert_int_equal(dbgdyn_dst_file_put(&d, 0, name, 236), DBGDYN_EINVAL);
	assert_int_equal(d.used, 0);
	assert_int_equal(dbgdyn_dst_file_put(&d, 0, name, 235), DBGDYN_OK);
	assert_int_equal(space[5], 255);
	assert_int_equal(d.used, 4 + 20 + 1 + 235 + 1);
	assert_int_equal(dbgdyn_dst_rtnbeg_put(&d, 0, name, 255), DBGDYN_OK);
}

/* Each command of its stream: code, and bytes of its operand. */
static const struct {
	int command, code, width;
} line_commands[] = {
	{ DST$K_DELTA_PC_W, 1, 2 },	  { DST$K_INCR_LINUM, 2, 1 },
	{ DST$K_INCR_LINUM_W, 3, 2 },	  { DST$K_SET_LINUM_INCR, 4, 1 },
	{ DST$K_SET_LINUM_INCR_W, 5, 2 }, { DST$K_RESET_LINUM_INCR, 6, 0 },
	{ DST$K_BEG_STMT_MODE, 7, 0 },	  { DST$K_END_STMT_MODE, 8, 0 },
	{ DST$K_SET_LINUM, 9, 2 },	  { DST$K_SET_PC, 10, 1 },
	{ DST$K_SET_PC_W, 11, 2 },	  { DST$K_SET_PC_L, 12, 4 },
	{ DST$K_SET_STMTNUM, 13, 1 },	  { DST$K_TERM, 14, 1 },
	{ DST$K_TERM_W, 15, 2 },	  { DST$K_SET_ABS_PC, 16, 4 },
	{ DST$K_DELTA_PC_L, 17, 4 },	  { DST$K_INCR_LINUM_L, 18, 4 },
	{ DST$K_SET_LINUM_B, 19, 1 },	  { DST$K_SET_LINUM_L, 20, 4 },
	{ DST$K_TERM_L, 21, 4 },	  { 22, 22, -1 },
}, source_commands[] = {
	{ DST$K_SRC_DECLFILE, 1, -1 },	 { DST$K_SRC_SETFILE, 2, 2 },
	{ DST$K_SRC_SETREC_L, 3, 4 },	 { DST$K_SRC_SETREC_W, 4, 2 },
	{ DST$K_SRC_SETLNUM_L, 5, 4 },	 { DST$K_SRC_SETLNUM_W, 6, 2 },
	{ DST$K_SRC_INCRLNUM_B, 7, 1 },	 { 8, 8, -1 },
	{ DST$K_SRC_DEFLINES_W, 10, 2 }, { DST$K_SRC_DEFLINES_B, 11, 1 },
	{ DST$K_SRC_FORMFEED, 16, 0 },
};

static void check_command(size_t len, const unsigned char *p, int code, int width, uint32_t operand)
{
	bool fits = width == 4 || (width >= 0 && !(operand >> 8 * width));

	assert_int_equal(len, fits ? 1 + width : 0);
	if (!fits)
		return;
	assert_int_equal(p[0], code);
	for (int i = 0; i < width; i++)
		assert_int_equal(p[1 + i], operand >> 8 * i & 255);
	assert_int_equal(p[len], 0xee);
}

static void test_single_commands(void **state)
{
	static const uint32_t operands[] = { 0, 1, 0xff, 0x100, 0xffff, 0x10000, 0xfffefdfc };
	unsigned char p[DBGDYN_DST_COMMAND_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(operands) / sizeof(operands[0]); i++) {
		for (size_t j = 0; j < sizeof(line_commands) / sizeof(line_commands[0]); j++) {
			memset(p, 0xee, sizeof(p));
			check_command(
				dbgdyn_dst_line_command_put(
					p, (enum dbgdyn_dst_line_command)line_commands[j].command,
					operands[i]),
				p, line_commands[j].code, line_commands[j].width, operands[i]);
		}
		for (size_t j = 0; j < sizeof(source_commands) / sizeof(source_commands[0]); j++) {
			memset(p, 0xee, sizeof(p));
			check_command(
				dbgdyn_dst_source_command_put(
					p,
					(enum dbgdyn_dst_source_command)source_commands[j].command,
					operands[i]),
				p, source_commands[j].code, source_commands[j].width, operands[i]);
		}
	}
	assert_int_equal(dbgdyn_dst_delta_pc_put(p, 0), 1);
	assert_int_equal(p[0], 0);
	assert_int_equal(dbgdyn_dst_delta_pc_put(p, 128), 1);
	assert_int_equal(p[0], 0x80);
	assert_int_equal(dbgdyn_dst_delta_pc_put(p, 129), 3);
	assert_int_equal(dbgdyn_dst_delta_pc_put(p, 0x10000), 5);
}

static void test_commands_as_records(void **state)
{
	static const unsigned char commands[] = { 16 };
	struct dbgdyn_dst d = fresh(4096);

	(void)state;
	assert_int_equal(dbgdyn_dst_commands_put(&d, DBGDYN_DST_SOURCE, commands, 1), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_commands_put(&d, DBGDYN_DST_LINE_NUM, NULL, 0), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_commands_put(&d, DBGDYN_DST_MODBEG, NULL, 0), DBGDYN_EINVAL);
	assert_int_equal(dbgdyn_dst_commands_put(&d, DBGDYN_DST_SOURCE, space, 4096), DBGDYN_EFULL);
	EXPECT(d, 4, 0, 155, 0, 16, 3, 0, 185, 0);
}

static void test_append(void **state)
{
	unsigned char apart[64] = { 0 };
	struct dbgdyn_dst d = fresh(12), m = { .base = apart, .len = sizeof(apart) };

	(void)state;
	assert_int_equal(dbgdyn_dst_append(&d, &m), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_modend_put(&m), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_rtnbeg_flags_put(&m, DBGDYN_DST_RTNBEG_NO_CALL, 1, "", 0),
			 DBGDYN_OK);
	assert_int_equal(apart[8], 0x80);
	assert_int_equal(dbgdyn_dst_append(&d, &m), DBGDYN_EFULL);
	assert_int_equal(d.used | space[0] | space[2], 0);
	m.used = 4;
	assert_int_equal(dbgdyn_dst_append(&d, &m), DBGDYN_OK);
	assert_int_equal(dbgdyn_dst_append(&d, &m), DBGDYN_OK);
	EXPECT(d, 3, 0, 189, 0, 3, 0, 189, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_base),
		cmocka_unit_test(test_source),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_no_lines_no_record),
		cmocka_unit_test(test_thousands_of_lines_in_several_records),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_names_have_one_length_byte),
		cmocka_unit_test(test_single_commands),
		cmocka_unit_test(test_commands_as_records),
		cmocka_unit_test(test_append),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
