/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime_reading.h"

static int setup(void **state)
{
	static struct reading rd;

	reading_begin(&rd, foreign_perfmap_read);
	*state = &rd;
	return 0;
}

static int teardown(void **state)
{
	reading_end(*state);
	return 0;
}

static void put(struct reading *rd, const char *text)
{
	reading_write(rd, text, strlen(text));
}

static void expect(struct reading *rd, const char *text)
{
	assert_int_equal(reading_run(rd), 0);
	reading_check(rd, text);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void test_names(void **state)
{
	struct reading *rd = *state;

	put(rd, "1000 20 Function:~foo file.js:1:2\n"
		"0x00007f1234567890 0x50 Lcom/foo;::bar\n"
		"0X1000 a0 0x20 is a name\r\n"
		"aBcDeF\t  1\t  two blanks \xff\x01\n"
		"2000 4 \n"
		"2000 4\n"
		"2000 4 again");
	expect(rd, "1 routine 1000+20 Function:~foo file.js:1:2\n"
		   "2 routine 7f1234567890+50 Lcom/foo;::bar\n"
		   "3 routine 1000+a0 0x20 is a name\n"
		   "4 routine abcdef+1   two blanks \xff\x01\n"
		   "5 routine 2000+4 \n"
		   "6 routine 2000+4 \n");
	put(rd, " or not\n");
	expect(rd, "7 routine 2000+4 again or not\n");
	assert_int_equal(rd->nr_bad, 0);
}

static void test_no_lines(void **state)
{
	static const char *const bad[] = {
		"",
		"\r",
		" 1000 20 blank before",
		"1000",
		"1000 ",
		"1000 name",
		"1000,20 name",
		"1000 20name",
		"0x 20 name",
		"1000 0x name",
		"-1000 20 name",
		"10000000000001000 20 name",
		"1000 10000000000000020 name",
		"1000 0 nothing there",
		"0 20 nowhere",
		"1000 1000001 too long",
		"ffffffffffffffff 2 wraps",
		"ffffffffffffff 2 leaves the address space",
	};
	struct reading *rd = *state;
	size_t nr = sizeof(bad) / sizeof(bad[0]);

	for (size_t i = 0; i < nr; i++) {
		put(rd, bad[i]);
		put(rd, "\n");
	}
	put(rd, "1000 1000000 long\nffffffffffffff 1 last\n");
	expect(rd, "1 routine 1000+1000000 long\n2 routine ffffffffffffff+1 last\n");
	assert_int_equal(rd->nr_bad, nr);
}

static void test_long_name(void **state)
{
	static char name[60000], text[60000];
	struct reading *rd = *state;

	memset(name, 'n', sizeof(name) - 1);
	put(rd, "1000 2 ");
	put(rd, name);
	put(rd, "\n");
	snprintf(text, sizeof(text), "1 routine 1000+2 %.*s\n", (int)WIRE_NAME_MAX, name);
	expect(rd, text);
}

/* A line of @len bytes without its end; counted once, whatever its length. */
static void check_long_line(struct reading *rd, size_t len, size_t nr_bad)
{
	char *line = malloc(len);
	uint64_t nr_before = rd->nr_bad;

	assert_non_null(line);
	memset(line, '1', len);
	reading_write(rd, line, len);
	free(line);
	assert_int_equal(reading_run(rd), 0);
	put(rd, "\n2000 4 next\n");
	assert_int_equal(reading_run(rd), 0);
	assert_int_equal(rd->nr_bad - nr_before, nr_bad);
}

static void test_long_lines(void **state)
{
	struct reading *rd = *state;

	check_long_line(rd, 65535, 1);
	check_long_line(rd, 65536, 1);
	check_long_line(rd, 1000000, 1);
	rd->file.deadline_ns = 1;
	check_long_line(rd, 3000000, 1);
	expect(rd, "1 routine 2000+4 next\n2 routine 2000+4 next\n3 routine 2000+4 next\n"
		   "4 routine 2000+4 next\n");
	assert_true(rd->nr_calls > 3000000 / 65536);
}

/* ---- code ------------------------------------------------------------------------------------ */

static void test_code(void **state)
{
	struct reading *rd = *state;

	reading_use_memory(rd);
	put(rd, "1010 20 within a page\n1ffe 4 over two\n1010 20 again\n2001 50003 many pages\n"
		"666010 4 hole\n665fff 1 before the hole\n665fff 2 into the hole\n"
		"666fff 2 out of the hole\n667000 2 behind the hole\n600000 80000 around it\n"
		"676010 4 of the same slot\n666010 4 hole\n");
	expect(rd, "1 routine 1010+20 within a page fetched 102f\n"
		   "2 routine 1ffe+4 over two fetched fe01\n"
		   "3 routine 1010+20 again fetched 102f\n"
		   "4 routine 2001+50003 many pages fetched 0103\n"
		   "5 routine 666010+4 hole\n"
		   "6 routine 665fff+1 before the hole fetched ffff\n"
		   "7 routine 665fff+2 into the hole\n"
		   "8 routine 666fff+2 out of the hole\n"
		   "9 routine 667000+2 behind the hole fetched 0001\n"
		   "10 routine 600000+80000 around it\n"
		   "11 routine 676010+4 of the same slot fetched 1013\n"
		   "12 routine 666010+4 hole\n");
	assert_int_equal(rd->nr_bad, 0);
}

/* ---- growth ---------------------------------------------------------------------------------- */

#define MAP    "1000 20 alpha\nbad\n2000 10 beta gamma\r\n\n1000 20 delta\n"
#define MAP_IS "1 routine 1000+20 alpha\n2 routine 2000+10 beta gamma\n3 routine 1000+20 delta\n"

static void test_cut_everywhere(void **state)
{
	(void)state;
	for (size_t cut = 0; cut < sizeof(MAP); cut++) {
		struct reading rd;

		reading_begin(&rd, foreign_perfmap_read);
		reading_write(&rd, MAP, cut);
		assert_int_equal(reading_run(&rd), 0);
		reading_write(&rd, MAP + cut, sizeof(MAP) - 1 - cut);
		assert_int_equal(reading_run(&rd), 0);
		reading_check(&rd, MAP_IS);
		assert_int_equal(rd.nr_bad, 2);
		reading_end(&rd);
	}
}

static void test_byte_by_byte(void **state)
{
	struct reading *rd = *state;

	for (size_t i = 0; i < sizeof(MAP) - 1; i++) {
		reading_write(rd, MAP + i, 1);
		assert_int_equal(reading_run(rd), 0);
		/* Until the file is longer nothing can have come. */
		assert_false(rd->place.ahead);
	}
	reading_check(rd, MAP_IS);
	assert_int_equal(rd->nr_bad, 2);
}

static void test_bounded_answers(void **state)
{
	struct reading *rd = *state;

	put(rd, MAP);
	rd->file.answer_max = 0;
	expect(rd, MAP_IS);
	assert_int_equal(rd->nr_bad, 2);
	assert_int_equal(rd->nr_calls, 4);
}

/* Room that was made before it is written, more than a line may have. */
static void test_zeros_behind(void **state)
{
	struct reading *rd = *state;

	reading_resize(rd, 100 << 20);
	expect(rd, "");
	for (size_t i = 0; i < sizeof(MAP) - 1; i++) {
		assert_true(rd->place.ahead);
		assert_int_equal(pwrite(rd->file.fd, MAP + i, 1, (off_t)i), 1);
		assert_int_equal(reading_run(rd), 0);
	}
	reading_check(rd, MAP_IS);
	assert_int_equal(rd->nr_bad, 2);
	assert_int_equal(rd->place.off, sizeof(MAP) - 1);
}

static void test_cut(void **state)
{
	struct reading *rd = *state;

	put(rd, MAP);
	expect(rd, MAP_IS);
	reading_resize(rd, sizeof(MAP) - 2);
	assert_int_equal(reading_run(rd), -DCPI_ETRUNCATED);
	rd->place = (struct foreign_place){ 0 };
	rd->nr_bad = 0;
	expect(rd, "1 routine 1000+20 alpha\n2 routine 2000+10 beta gamma\n");
	assert_int_equal(rd->nr_bad, 2);
}

/* As the JVM does each time it is asked for its map; what it adds may begin anywhere. */
static void test_written_anew(void **state)
{
	struct reading *rd = *state;

	put(rd, MAP);
	expect(rd, MAP_IS);
	reading_resize(rd, 0);
	put(rd, MAP "3000 10 epsilon\n");
	expect(rd, "4 routine 3000+10 epsilon\n");
	reading_resize(rd, 0);
	put(rd, "4000 10 zeta\n" MAP MAP);
	assert_int_equal(reading_run(rd), -DCPI_ETRUNCATED);
	reading_check(rd, "");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_names),	      T(test_no_lines),
		T(test_long_name),    T(test_long_lines),
		T(test_code),	      T(test_cut_everywhere),
		T(test_byte_by_byte), T(test_bounded_answers),
		T(test_zeros_behind), T(test_cut),
		T(test_written_anew),
	};

	return cmocka_run_group_tests_name("foreign/perfmap", tests, NULL, NULL);
}
