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

#include "dst_bytes.h"
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
		if (lines[i].line) {
			lines[i].file = seed / 256 % 3;
			lines[i].column = i % 4 ? seed / 65536 % 100 : (uint16_t)seed;
			lines[i].discriminator = i % 11 ? 0 : i % 2 ? i / 11 : (uint16_t)seed;
		}
		off += 1 + (i % 3 ? seed / 65536 % 24 : seed / 65536 % 2000);
	}
	assert_true(off < CODE_LEN);
}

static const struct job_image head = { .machine = 62, .facility = "j", .host = "h", .exe = "/x" };

/* The line table of a job's image. */
struct written {
	int fd;
	Dwarf *dw;
	Dwarf_Lines *rows;
	size_t nr;
};

static void written_open(struct written *w, struct base_buf *job)
{
	struct pseudoimg_result result;
	Dwarf_Off next;
	size_t header_len;
	Dwarf_Die die;

	w->fd = image_fd();
	assert_int_equal(pseudoimg_write(job->data, job->len, w->fd, &result, NULL), 0);
	base_buf_release(job);
	w->dw = dwarf_begin(w->fd, DWARF_C_READ);
	assert_non_null(w->dw);
	assert_int_equal(dwarf_nextcu(w->dw, 0, &next, &header_len, NULL, NULL, NULL), 0);
	assert_non_null(dwarf_offdie(w->dw, header_len, &die));
	assert_int_equal(dwarf_getsrclines(&die, &w->rows, &w->nr), 0);
}

static void written_close(struct written *w)
{
	dwarf_end(w->dw);
	close(w->fd);
}

static void check_rows(const struct written *w, const struct wire_line *lines,
		       const char *const *files)
{
	assert_int_equal(w->nr, NR_ROWS + 1);
	for (size_t i = 0; i <= NR_ROWS; i++) {
		Dwarf_Line *row = dwarf_onesrcline(w->rows, i);
		Dwarf_Addr addr;
		unsigned int discriminator;
		bool end;
		int line, column;

		assert_int_equal(dwarf_lineaddr(row, &addr), 0);
		assert_int_equal(dwarf_lineendsequence(row, &end), 0);
		assert_int_equal(end, i == NR_ROWS);
		assert_int_equal(addr, 0x7f0000000000 + (end ? CODE_LEN : lines[i].code_off));
		if (end)
			break;
		assert_int_equal(dwarf_lineno(row, &line), 0);
		assert_int_equal((uint32_t)line, lines[i].line);
		if (!line)
			continue;
		assert_string_equal(dwarf_linesrc(row, NULL, NULL), files[lines[i].file]);
		assert_int_equal(dwarf_linecol(row, &column), 0);
		assert_int_equal(column, lines[i].column);
		assert_int_equal(dwarf_linediscriminator(row, &discriminator), 0);
		assert_int_equal(discriminator, lines[i].discriminator);
	}
}

static void test_rows_are_read_back(void **state)
{
	static const char *const files[] = { "/a.c", "/b.c", "/c d.c", NULL };
	struct wire_line lines[NR_ROWS] = { 0 };
	uint8_t *code = calloc(1, CODE_LEN);
	struct base_buf job = { 0 };
	struct written w;

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
	written_open(&w, &job);
	check_rows(&w, lines, files);
	written_close(&w);
	free(code);
}

struct row {
	uint64_t addr;
	int line;
	bool end;
};

static void assert_rows(const struct written *w, const struct row *rows, size_t nr)
{
	assert_int_equal(w->nr, nr);
	for (size_t i = 0; i < nr; i++) {
		Dwarf_Line *row = dwarf_onesrcline(w->rows, i);
		Dwarf_Addr addr;
		bool end;
		int line;

		assert_int_equal(dwarf_lineaddr(row, &addr), 0);
		assert_int_equal(dwarf_lineendsequence(row, &end), 0);
		assert_int_equal(dwarf_lineno(row, &line), 0);
		assert_int_equal(addr, rows[i].addr);
		assert_int_equal(end, rows[i].end);
		if (!end)
			assert_int_equal(line, rows[i].line);
	}
}

/* One sequence in a section: gaps have a row without line, neighbours none between them. */
static void test_sequences_are_joined(void **state)
{
	static const struct row rows[] = {
		{ 0x1000, 5, false }, { 0x1004, 0, false }, { 0x1010, 6, false },
		{ 0x1014, 7, false }, { 0x1018, 0, true },  { 0x90001, 8, false },
		{ 0x90004, 0, true },
	};
	static const uint64_t addrs[] = { 0x1000, 0x1010, 0x1014, 0x90000 };
	static const uint8_t code[4] = { 0x90, 0x90, 0x90, 0xc3 };
	static const char *const files[] = { "/a.c", NULL };
	struct base_buf job = { 0 };
	struct written w;

	(void)state;
	job_image(&job, &head);
	job_run(&job, 0x1000, 0, 0x100000);
	for (uint32_t i = 0; i < 4; i++)
		job_routine(&job,
			    &(struct job_routine){ .addr = addrs[i],
						   .name = "r",
						   .code = code,
						   .code_len = 4,
						   .lines = &(struct wire_line){ .code_off = i / 3,
										 .line = 5 + i },
						   .nr_lines = 1,
						   .files = files });
	written_open(&w, &job);
	assert_rows(&w, rows, 7);
	written_close(&w);
}

static void put_module(struct base_buf *dst, uint8_t addr, uint8_t len, uint8_t line)
{
	dst_modbeg(dst);
	dst_rtnbeg(dst, addr, 'r');
	DST_BYTES(dst, 185, 19, line - 1, 0, 14, len);
	dst_rtnend(dst, len);
	dst_modend(dst);
}

/* Code that was changed has the lines of the addresses where it stood, as far as it reaches. */
static void test_lines_of_changed_code(void **state)
{
	static const struct row rows[] = {
		{ 0x503e, 5, false },	  { 0x5043, 0, false },	    { 0x5048, 6, false },
		{ 0x5058, 0, true },	  { 0x70000010, 5, false }, { 0x70000013, 0, false },
		{ 0x70000018, 6, false }, { 0x70000020, 0, true },
	};
	static const uint8_t bytes[0x60] = { 0x90, [0x5f] = 0xc3 };
	struct base_buf job = { 0 }, dst = { 0 };
	struct written w;

	(void)state;
	put_module(&dst, 0x3e, 5, 5);	 /* reaches into what was changed */
	put_module(&dst, 0x48, 0x10, 6); /* leaves it */
	job_image(&job, &head);
	job_run(&job, 0x5000, 0, 0x1000);
	job_run(&job, 0x70000000, 0x1000, 0x1000);
	job_bytes(&job, WIRE_RANGE_CODE, 0x5000, 0x100, bytes, sizeof(bytes));
	job_place(&job, 0x5040, 0x70000010, 0x10);
	job_bytes(&job, WIRE_RANGE_CODE, 0x70000010, 0x10, bytes, 1);
	job_bytes(&job, WIRE_RANGE_DST, 0x7000, 0x1000, dst.data, dst.len);
	base_buf_release(&dst);
	written_open(&w, &job);
	assert_rows(&w, rows, 8);
	written_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leb128),
		cmocka_unit_test(test_rows_are_read_back),
		cmocka_unit_test(test_sequences_are_joined),
		cmocka_unit_test(test_lines_of_changed_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
