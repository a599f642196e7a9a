/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers as DWARF writes them, and every row read back by a reader that is not ours: libdw. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <elfutils/libdw.h>

#include "image.h"
#include "pseudoimg_internal.h"

static void assert_bytes(struct base_buf *b, const char *bytes, size_t len)
{
	assert_int_equal(b->len, len);
	assert_memory_equal(b->data, bytes, len);
	base_buf_clear(b);
}

static void test_leb128(void **state)
{
	struct base_buf b = { 0 };

	(void)state;
	pseudoimg_put_uleb(&b, 0);
	assert_bytes(&b, "\0", 1);
	pseudoimg_put_uleb(&b, 624485);
	assert_bytes(&b, "\xe5\x8e\x26", 3);
	pseudoimg_put_uleb(&b, UINT64_MAX);
	assert_bytes(&b, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
	pseudoimg_put_sleb(&b, 63);
	assert_bytes(&b, "\x3f", 1);
	pseudoimg_put_sleb(&b, 64);
	assert_bytes(&b, "\xc0\x00", 2);
	pseudoimg_put_sleb(&b, -64);
	assert_bytes(&b, "\x40", 1);
	pseudoimg_put_sleb(&b, -65);
	assert_bytes(&b, "\xbf\x7f", 2);
	pseudoimg_put_sleb(&b, INT64_MIN);
	assert_bytes(&b, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", 10);
	base_buf_release(&b);
}

enum { NR_ROWS = 500, CODE_LEN = 1 << 20 };

/* Steps of every size: each special opcode, and all that need the standard ones. */
static void make_lines(struct wire_line *lines)
{
	uint32_t off = 0, seed = 12345;

	for (size_t i = 0; i < NR_ROWS; i++) {
		seed = seed * 1103515245 + 12345;
		lines[i].code_off = off;
		lines[i].line = i % 7 == 6 ? 0 : i % 5 ? 1000 + seed / 65536 % 32 : seed;
		lines[i].file = seed / 256 % 3;
		if (lines[i].line == 0)
			lines[i].file = 0;
		off += 1 + (i % 3 ? seed / 65536 % 24 : seed / 65536 % 2000);
	}
	assert_true(off < CODE_LEN);
}

static void check_rows(Dwarf *dw, const struct wire_line *lines, const char *const *files)
{
	Dwarf_Off next, at = 0;
	size_t header_len, nr;
	Dwarf_Lines *rows;
	Dwarf_Die die;

	assert_int_equal(dwarf_nextcu(dw, at, &next, &header_len, NULL, NULL, NULL), 0);
	assert_non_null(dwarf_offdie(dw, at + header_len, &die));
	assert_int_equal(dwarf_getsrclines(&die, &rows, &nr), 0);
	assert_int_equal(nr, NR_ROWS + 1);
	for (size_t i = 0; i <= NR_ROWS; i++) {
		Dwarf_Line *row = dwarf_onesrcline(rows, i);
		Dwarf_Addr addr;
		bool end;
		int line;

		assert_int_equal(dwarf_lineaddr(row, &addr), 0);
		assert_int_equal(dwarf_lineendsequence(row, &end), 0);
		assert_int_equal(end, i == NR_ROWS);
		assert_int_equal(addr, 0x7f0000000000 + (end ? CODE_LEN : lines[i].code_off));
		if (end)
			break;
		assert_int_equal(dwarf_lineno(row, &line), 0);
		assert_int_equal((uint32_t)line, lines[i].line);
		if (line)
			assert_string_equal(dwarf_linesrc(row, NULL, NULL), files[lines[i].file]);
	}
}

static void test_rows_are_read_back(void **state)
{
	static const char *const files[] = { "/a.c", "/b.c", "/c d.c", NULL };
	const struct job_image head = { .machine = 62, .facility = "j", .host = "h", .exe = "/x" };
	struct wire_line lines[NR_ROWS] = { 0 };
	uint8_t *code = calloc(1, CODE_LEN);
	struct pseudoimg_result result;
	struct base_buf job = { 0 };
	int fd = image_fd();
	Dwarf *dw;

	(void)state;
	make_lines(lines);
	job_image(&job, &head);
	job_run(&job, 0x7f0000000000, 0, CODE_LEN);
	job_routine(&job, &(struct job_routine){ .addr = 0x7f0000000000,
						 .name = "r",
						 .code = code,
						 .code_len = CODE_LEN,
						 .lines = lines,
						 .nr_lines = NR_ROWS,
						 .files = files });
	assert_int_equal(pseudoimg_write(job.data, job.len, fd, &result, NULL), 0);
	dw = dwarf_begin(fd, DWARF_C_READ);
	assert_non_null(dw);
	check_rows(dw, lines, files);
	dwarf_end(dw);
	close(fd);
	free(code);
	base_buf_release(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leb128),
		cmocka_unit_test(test_rows_are_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
