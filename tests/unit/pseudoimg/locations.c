/* SPDX-License-Identifier: BSD-2-Clause */
/* CPython's tables of locations: each kind of entry, and tables that are cut off or lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "image.h"
#include "pseudoimg_internal.h"

/* The first byte of an entry of @nr instructions. */
#define ENTRY(kind, nr) (uint8_t)(0x80 | (kind) << 3 | ((nr)-1))

enum {
	SHORT = 3,
	SAME_LINE = 10,
	TWO_ON = 12,
	NO_COLUMNS = 13,
	LONG = 14,
	NOWHERE = 15,
	FILE_NR = 4
};

static struct base_buf rows;

static int teardown(void **state)
{
	(void)state;
	base_buf_release(&rows);
	return 0;
}

static void read_all(const uint8_t *table, size_t len, uint64_t code_len)
{
	base_buf_clear(&rows);
	assert_int_equal(pseudoimg_locations_read(table, len, 100, code_len, FILE_NR, &rows), 0);
}

static void assert_row(size_t i, uint32_t off, uint32_t line)
{
	const struct pseudoimg_row *row = (const void *)rows.data;

	assert_true(i < rows.len / sizeof(*row));
	assert_int_equal(row[i].off, off);
	assert_int_equal(row[i].line, line);
	assert_int_equal(row[i].file, line ? FILE_NR : PSEUDOIMG_NO_FILE);
}

static void assert_nr(size_t nr)
{
	assert_int_equal(rows.len / sizeof(struct pseudoimg_row), nr);
}

static void each_kind_of_entry(void **state)
{
	/* Three on; three back; 70 on, which takes two digits. */
	static const uint8_t table[] = { ENTRY(SHORT, 1),
					 9,
					 ENTRY(TWO_ON, 8),
					 1,
					 2,
					 ENTRY(NOWHERE, 2),
					 ENTRY(NO_COLUMNS, 1),
					 6,
					 ENTRY(NO_COLUMNS, 1),
					 7,
					 ENTRY(LONG, 3),
					 0x40 | (140 & 63),
					 140 >> 6,
					 1,
					 2,
					 0x40 | 3,
					 1,
					 ENTRY(SAME_LINE, 1),
					 1,
					 2 };

	(void)state;
	read_all(table, sizeof(table), 2 * 17);
	assert_row(0, 0, 100);
	assert_row(1, 2, 102);
	assert_row(2, 18, 0);
	assert_row(3, 22, 105);
	assert_row(4, 24, 102);
	assert_row(5, 26, 172);
	assert_nr(6);
}

static void a_table_that_is_cut_off_says_nothing_of_the_rest(void **state)
{
	static const uint8_t table[] = { ENTRY(SHORT, 1), 9, ENTRY(LONG, 4), 2, 1, 1, 1 };

	(void)state;
	read_all(table, 0, 20);
	assert_row(0, 0, 0);
	assert_nr(1);
	read_all(table, 2, 20);
	assert_row(0, 0, 100);
	assert_row(1, 2, 0);
	assert_nr(2);
	for (size_t len = 3; len < sizeof(table); len++) {
		read_all(table, len, 20);
		assert_row(1, 2, 0);
		assert_nr(2);
	}
	read_all(table, sizeof(table), 20);
	assert_row(1, 2, 101);
	assert_row(2, 10, 0);
	assert_nr(3);
}

static void lies_are_not_believed(void **state)
{
	static const uint8_t before_line_1[] = { ENTRY(NO_COLUMNS, 2), 0x40 | 63, 63 };
	static const uint8_t endless[] = {
		ENTRY(NO_COLUMNS, 1), 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f
	};
	static const uint8_t no_beginning[] = { 0x12, 0x34 };
	static const uint8_t too_many[] = { ENTRY(SHORT, 8), 0, ENTRY(TWO_ON, 8), 0, 0 };

	(void)state;
	read_all(before_line_1, sizeof(before_line_1), 4);
	assert_row(0, 0, 0);
	read_all(endless, sizeof(endless), 4);
	assert_row(0, 0, 0);
	assert_nr(1);
	read_all(no_beginning, sizeof(no_beginning), 4);
	assert_row(0, 0, 0);
	read_all(too_many, sizeof(too_many), 16);
	assert_row(0, 0, 100);
	assert_nr(1);
}

/* A record with such a table, in an image of no machine. */
static void an_image_of_functions(void **state)
{
	static const uint8_t table[] = { ENTRY(SHORT, 4), 9, ENTRY(TWO_ON, 4), 1, 2, 0 };
	static const struct job_image of = {
		.machine = EM_NONE, .facility = "python3", .host = "h", .exe = "/x/python3"
	};
	static const struct wire_line line = { .line = 7 };
	static const char *const files[] = { "/a/b.py", (const char *)table, NULL };
	const struct job_routine function = { .addr = 0x10000,
					      .name = "b.f",
					      .code_len = 16,
					      .lines = &line,
					      .nr_lines = 1,
					      .files = files };
	struct base_buf job = { 0 }, plain = { 0 };
	struct image img, other;

	(void)state;
	job_image(&job, &of);
	job_run(&job, 0x10000, 0, 0x1000);
	base_buf_append(&plain, job.data, job.len);
	job_routine(&plain, &function);
	image_write(&other, &plain);
	size_t at = job.len;
	job_routine(&job, &function);
	((struct wire_head *)(void *)(job.data + at))->flags |= WIRE_ROUTINE_LOCATIONS;
	image_write(&img, &job);
	assert_int_equal(img.status, 0);
	assert_int_equal(img.result.nr_routines, 1);
	assert_non_null(image_symbol(&img, "b.f"));
	assert_non_null(image_section(&img, ".debug_line"));
	/* The lines are part of what it is. */
	assert_int_equal(other.status, 0);
	assert_memory_not_equal(img.result.build_id, other.result.build_id,
				sizeof(img.result.build_id));
	image_release(&img);
	image_release(&other);
	base_buf_release(&job);
	base_buf_release(&plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_entry),
		cmocka_unit_test(a_table_that_is_cut_off_says_nothing_of_the_rest),
		cmocka_unit_test(lies_are_not_believed),
		cmocka_unit_test(an_image_of_functions),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
