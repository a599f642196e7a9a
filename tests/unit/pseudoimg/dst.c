/* SPDX-License-Identifier: BSD-2-Clause */
/* Records and scopes of DST, by hand-worked bytes, and by the writers of dbgdyn_vms.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dbgdyn_vms.h"
#include "dst_bytes.h"
#include "pseudoimg_internal.h"

enum { BASE = 0x1000 };

static void decode(struct base_buf *b, struct pseudoimg_dst *dst)
{
	assert_int_equal(pseudoimg_dst_decode(b->data, b->len, BASE, dst), 0);
}

static void done(struct base_buf *b, struct pseudoimg_dst *dst)
{
	pseudoimg_dst_release(dst);
	base_buf_release(b);
}

static void zeros(struct base_buf *b, size_t len)
{
	void *space;

	assert_int_equal(base_buf_extend(b, len, &space), 0);
}

static void assert_routine(const struct pseudoimg_dst *dst, size_t i, uint64_t addr, uint32_t len,
			   char name)
{
	assert_true(i < dst->routines.nr);
	assert_int_equal(dst->routines.v[i].addr, addr);
	assert_int_equal(dst->routines.v[i].len, len);
	assert_int_equal(dst->routines.v[i].name.len, 1);
	assert_int_equal(dst->routines.v[i].name.p[0], name);
}

static void test_scopes_nest(void **state)
{
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;

	(void)state;
	dst_modbeg(&b);
	dst_rtnbeg(&b, 0x10, 'o');
	DST_BYTES(&b, 176, 0, 0x20, 0, 0, 0, 0); /* unnamed block */
	dst_rtnbeg(&b, 0x30, 'i');
	DST_BYTES(&b, 162, 0x34, 0, 0, 0); /* PROLOG */
	dst_rtnend(&b, 8);
	DST_BYTES(&b, 177, 0, 0x20, 0, 0, 0);
	dst_rtnend(&b, 0x80);
	dst_modend(&b);
	zeros(&b, 100);
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 0);
	assert_int_equal(dst.used, b.len - 100);
	assert_int_equal(dst.routines.nr, 2);
	assert_routine(&dst, 0, BASE + 0x30, 8, 'i');
	assert_routine(&dst, 1, BASE + 0x10, 0x80, 'o');
	done(&b, &dst);
}

/* Data symbols, PCLOC and whatever the future brings: by length. */
static void test_unknown_types_are_skipped(void **state)
{
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;

	(void)state;
	DST_BYTES(&b, 8, 1, 2, 3);
	dst_modbeg(&b);
	DST_BYTES(&b, 192, 1);
	dst_rtnbeg(&b, 0, 'r');
	dst_put(&b, 0xffff, NULL, 0);
	dst_rtnend(&b, 4);
	dst_modend(&b);
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 0);
	assert_routine(&dst, 0, BASE, 4, 'r');
	done(&b, &dst);
}

/* Unallocated, a prototype, inlined: such routines have no code of their own. */
static void test_routines_without_code(void **state)
{
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;

	(void)state;
	dst_modbeg(&b);
	for (int bit = 4; bit <= 6; bit++) {
		DST_BYTES(&b, 190, (uint8_t)(1 << bit), 0, 0, 0, 0, 0, 0, 0, 0, 1, 'x');
		dst_rtnend(&b, 4);
	}
	dst_rtnbeg(&b, 8, 'e');
	dst_rtnend(&b, 0);
	DST_BYTES(&b, 190, 1 << 7, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 'j'); /* JSB linkage: has */
	dst_rtnend(&b, 4);
	dst_modend(&b);
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 0);
	assert_int_equal(dst.routines.nr, 1);
	assert_routine(&dst, 0, BASE + 0x10, 4, 'j');
	done(&b, &dst);
}

/* What came before a hole stands, what comes behind it is not looked at. */
static void test_hole_ends_it(void **state)
{
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;
	size_t len;

	(void)state;
	dst_module(&b, NULL, 0, NULL, 0);
	len = b.len;
	zeros(&b, 4);
	dst_module(&b, NULL, 0, NULL, 0);
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 1);
	assert_int_equal(dst.used, len);
	assert_int_equal(dst.routines.nr, 1);
	done(&b, &dst);
}

/* Each makes one record malformed, which ends the DST; the module before it stands. */
static void test_malformed_records(void **state)
{
	static const struct {
		const char *what;
		unsigned int type;
		uint8_t body[16];
		size_t len;
		bool in_module;
	} cases[] = {
		{ "MODBEG within a module", 188, { [10] = 0 }, 13, true },
		{ "MODBEG cut", 188, { 0 }, 10, false },
		{ "MODBEG whose name leaves it", 188, { [10] = 3 }, 13, false },
		{ "MODEND outside", 189, { 0 }, 0, false },
		{ "RTNBEG outside", 190, { 0 }, 10, false },
		{ "RTNBEG cut", 190, { 0 }, 9, true },
		{ "RTNBEG whose name leaves it", 190, { [9] = 1 }, 10, true },
		{ "RTNEND without beginning", 191, { 0 }, 5, true },
		{ "BLKBEG cut", 176, { 0 }, 5, true },
		{ "BLKEND without beginning", 177, { 0 }, 5, true },
		{ "LINE_NUM outside", 185, { 0 }, 1, false },
		{ "SOURCE outside", 155, { 16 }, 1, false },
		{ "PROLOG cut", 162, { 0 }, 3, true },
		{ "BASE within a module", 0x4401, { 0 }, 8, true },
		{ "BASE cut", 0x4401, { 0 }, 7, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct base_buf b = { 0 };
		struct pseudoimg_dst dst;
		size_t len;

		print_message("%s\n", cases[i].what);
		dst_module(&b, NULL, 0, NULL, 0);
		if (cases[i].in_module)
			dst_modbeg(&b);
		len = b.len;
		dst_put(&b, cases[i].type, cases[i].body, cases[i].len);
		dst_module(&b, NULL, 0, NULL, 0);
		decode(&b, &dst);
		assert_int_equal(dst.nr_bad, 1);
		assert_int_equal(dst.used, len);
		assert_int_equal(dst.routines.nr, 1);
		done(&b, &dst);
	}
}

static void test_scopes_must_match(void **state)
{
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;

	(void)state;
	dst_modbeg(&b);
	dst_rtnbeg(&b, 0, 'r');
	DST_BYTES(&b, 176, 0, 0, 0, 0, 0, 0);
	dst_rtnend(&b, 4); /* ends the block */
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 1);
	assert_int_equal(dst.routines.nr, 0);
	done(&b, &dst);

	dst_modbeg(&b);
	dst_rtnbeg(&b, 0, 'r');
	dst_modend(&b); /* with a routine open */
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 1);
	done(&b, &dst);
}

static void test_depth_is_bounded(void **state)
{
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;

	(void)state;
	dst_modbeg(&b);
	for (unsigned int i = 0; i < PSEUDOIMG_DST_DEPTH_MAX; i++)
		dst_rtnbeg(&b, 0, 'r');
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 0);
	pseudoimg_dst_release(&dst);
	dst_rtnbeg(&b, 0, 'r');
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 1);
	done(&b, &dst);
}

/* Read while it is written: routines that have ended count, the open one is not guessed. */
static void test_unfinished_module(void **state)
{
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;

	(void)state;
	dst_modbeg(&b);
	dst_rtnbeg(&b, 0x10, 'a');
	DST_BYTES(&b, 185, 0, 14, 4);
	dst_rtnend(&b, 4);
	dst_rtnbeg(&b, 0x20, 'b');
	zeros(&b, 64);
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 0);
	assert_int_equal(dst.routines.nr, 1);
	assert_int_equal(dst.rows.nr, 2);
	done(&b, &dst);
}

/* Every cut of a good DST: no byte beyond the end is read (asan), at most one complaint. */
/* Lines left open reach to the end of their module's routine that the last one is in. */
static void test_open_lines(void **state)
{
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;

	(void)state;
	dst_modbeg(&b);
	dst_rtnbeg(&b, 0, 'a');
	dst_rtnend(&b, 0x80);
	dst_modend(&b);
	dst_modbeg(&b);
	DST_BYTES(&b, 190, 1 << 5, 4, 0, 0, 0, 0, 0, 0, 0, 1, 'p'); /* has no code */
	dst_rtnend(&b, 4);
	dst_rtnbeg(&b, 0x10, 'b');
	dst_rtnend(&b, 0x10);
	dst_rtnbeg(&b, 0x20, 'c');
	dst_rtnend(&b, 0x10);
	DST_BYTES(&b, 185, 0, (uint8_t)-0x14);
	dst_modend(&b);
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 0);
	assert_int_equal(dst.rows.nr, 3);
	assert_int_equal(dst.rows.v[0].addr, BASE + 0x10);
	assert_int_equal(dst.rows.v[1].addr, BASE + 0x24);
	assert_int_equal(dst.rows.v[2].addr, BASE + 0x30);
	assert_true(dst.rows.v[2].end);
	done(&b, &dst);
}

/* Those of a module without routines count from its base. */
static void test_lines_without_routines(void **state)
{
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;

	(void)state;
	dst_modbeg(&b);
	DST_BYTES(&b, 185, 0, 14, 4);
	dst_modend(&b);
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 0);
	assert_int_equal(dst.rows.nr, 2);
	assert_int_equal(dst.rows.v[0].addr, BASE);
	assert_int_equal(dst.rows.v[1].addr, BASE + 4);
	done(&b, &dst);
}

static void test_every_cut(void **state)
{
	static const uint8_t source[] = { 1, 21,  0, 1,	   0,	 0,    0,    0,	   0,	 0,
					  0, 0,	  0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					  1, 'f', 0, 2,	   1,	 0,    11,   5 };
	static const uint8_t line[] = { 0, 0xfe, 20, 1, 0, 0, 0, 0, 14, 2 };
	struct base_buf b = { 0 };

	(void)state;
	dst_module(&b, line, sizeof(line), source, sizeof(source));
	for (size_t len = 0; len <= b.len; len++) {
		uint8_t *copy = malloc(len ? len : 1);
		struct pseudoimg_dst dst;

		memcpy(copy, b.data, len);
		assert_int_equal(pseudoimg_dst_decode(copy, len, BASE, &dst), 0);
		assert_true(dst.used <= len && dst.nr_bad <= (len < b.len));
		assert_int_equal(dst.routines.nr == 1, len >= b.len - 4); /* all but MODEND */
		pseudoimg_dst_release(&dst);
		free(copy);
	}
	base_buf_release(&b);
}

static void test_base_record(void **state)
{
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;
	size_t at;

	(void)state;
	dst_module(&b, NULL, 0, NULL, 0);
	at = b.len + 4;
	DST_BYTES(&b, 0x4401, 0, 0, 0, 0, 0x12, 0x7f, 0, 0);
	dst_module(&b, (const uint8_t[]){ 16, 0x20, 0, 0, 0, 0, 14, 1 }, 8, NULL, 0);
	DST_BYTES(&b, 0x4401, 0, 0, 0, 0, 0, 0, 0, 0);
	dst_module(&b, NULL, 0, NULL, 0);
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 0);
	assert_int_equal(dst.routines.nr, 3);
	assert_routine(&dst, 0, BASE + 0x10, 0x80, 'r');
	assert_routine(&dst, 1, 0x7f1200000010, 0x80, 'r');
	assert_routine(&dst, 2, BASE + 0x10, 0x80, 'r');
	assert_int_equal(dst.rows.v[0].addr, 0x7f1200000020);
	assert_int_equal(dst.absolute.nr, 1);
	assert_ptr_equal(dst.absolute.v[0].p, b.data + at);
	assert_int_equal(dst.absolute.v[0].len, 8);
	done(&b, &dst);
}

/* Addresses that wrap are no addresses. */
static void test_wrapping_addresses(void **state)
{
	struct base_buf b = { 0 };
	struct pseudoimg_dst dst;

	(void)state;
	DST_BYTES(&b, 0x4401, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
	dst_module(&b, NULL, 0, NULL, 0);
	decode(&b, &dst);
	assert_int_equal(dst.nr_bad, 1);
	assert_int_equal(dst.routines.nr, 0);
	done(&b, &dst);
}

/* What a JIT author writes with the public header is what we read. */
static void test_public_writers(void **state)
{
	static const struct dbgdyn_dst_line lines[] = {
		{ 0, 3 }, { 4, 7 }, { 0x200, 0 }, { 0x204, 4 }
	};
	unsigned char space[1024] = { 0 };
	struct dbgdyn_dst d = { .base = space, .len = sizeof(space) };
	struct pseudoimg_dst dst;

	(void)state;
	assert_int_equal(dbgdyn_dst_modbeg_put(&d, DBGDYN_DST_C, "mod", 3, "cc", 2), 0);
	assert_int_equal(dbgdyn_dst_file_put(&d, 5, "/src/x.c", 8), 0);
	assert_int_equal(dbgdyn_dst_source_put(&d, 5, 3, 30, 2), 0);
	assert_int_equal(dbgdyn_dst_rtnbeg_put(&d, 0x40, "r", 1), 0);
	assert_int_equal(dbgdyn_dst_prolog_put(&d, 0x44), 0);
	assert_int_equal(dbgdyn_dst_lines_put(&d, 0x40, 0x300, lines, 4), 0);
	assert_int_equal(dbgdyn_dst_blkbeg_put(&d, 0x44, "", 0), 0);
	assert_int_equal(dbgdyn_dst_blkend_put(&d, 4), 0);
	assert_int_equal(dbgdyn_dst_rtnend_put(&d, 0x300), 0);
	assert_int_equal(dbgdyn_dst_modend_put(&d), 0);
	assert_int_equal(pseudoimg_dst_decode(space, sizeof(space), BASE, &dst), 0);
	assert_int_equal(dst.nr_bad, 0);
	assert_int_equal(dst.used, d.used);
	assert_routine(&dst, 0, BASE + 0x40, 0x300, 'r');

	const struct {
		uint64_t addr;
		uint32_t line;
		char file; /* last letter; 0: closes */
	} rows[] = { { 0x40, 30, 'c' },
		     { 0x44, 7, 'd' },
		     { 0x240, 0, 0 },
		     { 0x244, 31, 'c' },
		     { 0x340, 0, 0 } };

	assert_int_equal(dst.rows.nr, 5);
	for (size_t i = 0; i < 5; i++) {
		const struct pseudoimg_dst_row *row = &dst.rows.v[i];

		assert_int_equal(row->addr, BASE + rows[i].addr);
		assert_int_equal(row->end, !rows[i].file);
		assert_int_equal(row->line, rows[i].line);
		if (rows[i].file) {
			const struct pseudoimg_str *file = &dst.files.v[row->file];

			assert_int_equal(file->p[file->len - 1], rows[i].file);
		}
	}
	pseudoimg_dst_release(&dst);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scopes_nest),
		cmocka_unit_test(test_unknown_types_are_skipped),
		cmocka_unit_test(test_routines_without_code),
		cmocka_unit_test(test_hole_ends_it),
		cmocka_unit_test(test_malformed_records),
		cmocka_unit_test(test_scopes_must_match),
		cmocka_unit_test(test_depth_is_bounded),
		cmocka_unit_test(test_unfinished_module),
		cmocka_unit_test(test_open_lines),
		cmocka_unit_test(test_lines_without_routines),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_base_record),
		cmocka_unit_test(test_wrapping_addresses),
		cmocka_unit_test(test_public_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
