/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime_reading.h"
#include "small_jitdump.h"

struct dump {
	struct reading rd;
	struct base_buf bytes;
};

static int setup(void **state)
{
	static struct dump d;

	d = (struct dump){ 0 };
	reading_begin(&d.rd, foreign_jitdump_read);
	small_jitdump_begin(&d.bytes);
	*state = &d;
	return 0;
}

static int teardown(void **state)
{
	struct dump *d = *state;

	reading_end(&d->rd);
	base_buf_release(&d->bytes);
	return 0;
}

/* Lines, and the code at @addr of @len bytes that they are for. */
static void put(struct dump *d, const struct small_line *lines, size_t nr, uint64_t addr,
		uint64_t len)
{
	small_jitdump_debug(&d->bytes, addr, lines, nr);
	small_jitdump_load(&d->bytes, 1, addr, len, "f");
}

static void expect(struct dump *d, const char *text)
{
	reading_write(&d->rd, d->bytes.data, d->bytes.len);
	base_buf_clear(&d->bytes);
	assert_int_equal(reading_run(&d->rd), 0);
	reading_check(&d->rd, text);
}

#define NR(lines) (sizeof(lines) / sizeof((lines)[0]))

/* ---- what a record of them may hold ---------------------------------------------------------- */

static void test_order(void **state)
{
	static const struct small_line lines[] = {
		{ 0x1010, 3, "a.c" }, { 0x1000, 1, "\xff" }, { 0x1018, 4, "b.c" },
		{ 0x1010, 2, "c.c" }, { 0x1014, 2, "c.c" },  { 0x1020, 0, "c.c" },
		{ 0x1022, 9, "" },    { 0x1024, 9, "a.c" },
	};
	struct dump *d = *state;

	put(d, lines, NR(lines), 0x1000, 0x30);
	expect(d, "time 1\n1 routine 1000+30 f code 002f"
		  " +0=a.c:1 +10=c.c:2 +18=b.c:4 +20=? +24=a.c:9\n");
	assert_int_equal(d->rd.nr_bad, 0);
}

static void test_outside(void **state)
{
	static const struct small_line lines[] = {
		{ 0xfff, 1, "a.c" },  { 0x1000, 2, "a.c" },	{ 0x102f, 3, "a.c" },
		{ 0x1030, 4, "a.c" }, { 0x8000000000, 5, "a" }, { UINT64_MAX, 6, "a.c" },
		{ 0, 7, "a.c" },
	};
	struct dump *d = *state;

	put(d, lines, NR(lines), 0x1000, 0x30);
	expect(d, "time 1\n1 routine 1000+30 f code 002f +0=a.c:2 +2f=a.c:3\n");
	assert_int_equal(d->rd.nr_bad, 0);
}

static void test_none(void **state)
{
	struct dump *d = *state;

	put(d, NULL, 0, 0x1000, 4);
	expect(d, "time 1\n1 routine 1000+4 f code 0003\n");
	assert_int_equal(d->rd.nr_bad, 0);
}

/* Node.js names so what an ES module is compiled from. */
static void test_url(void **state)
{
	static const struct small_line lines[] = {
		{ 0x1000, 1, "file:///srv/some%20dir/%c3%84%C3%A4.mjs" },
		{ 0x1001, 2, "file:///srv/100%/a%0/b%00%zz%2" },
		{ 0x1002, 3, "file:///srv/a.mjs" },
		{ 0x1003, 4, "/srv/a%20b.js" },
		{ 0x1004, 5, "file://host/a%20b" },
		{ 0x1005, 6, "file://" },
		{ 0x1006, 7, "file:///" },
		{ 0x1007, 8, "node:internal/url" },
		{ 0x1008, 9, "\xff" },
		{ 0x1009, 10, "file:///srv/a.mjs" },
	};
	struct dump *d = *state;

	put(d, lines, NR(lines), 0x1000, 0x10);
	expect(d, "time 1\n1 routine 1000+10 f code 000f +0=/srv/some dir/Ää.mjs:1"
		  " +1=/srv/100%/a%0/b%00%zz%2:2 +2=/srv/a.mjs:3 +3=/srv/a%20b.js:4"
		  " +4=file://host/a%20b:5 +5=file://:6 +6=/:7 +7=node:internal/url:8"
		  " +8=node:internal/url:9 +9=/srv/a.mjs:10\n");
	assert_int_equal(d->rd.nr_bad, 0);
}

static void test_long_file(void **state)
{
	static char file[70000], text[70000];
	const struct small_line line = { 0x1000, 1, file };
	struct dump *d = *state;

	memset(file, 'f', sizeof(file) - 1);
	put(d, &line, 1, 0x1000, 4);
	snprintf(text, sizeof(text), "time 1\n1 routine 1000+4 f code 0003 +0=%.4095s:1\n", file);
	expect(d, text);
}

/* One more or less than there are, a first name that is as before, no end of the last. */
static void test_lies(void **state)
{
	static const struct small_line lines[] = { { 0x1000, 1, "a.c" }, { 0x1002, 2, "\xff" } };
	static const struct small_line before = { 0x1000, 1, "\xff" };
	struct dump *d = *state;
	static const uint64_t lies[] = { 0, 1, 3, UINT64_MAX };
	size_t at;

	for (size_t i = 0; i < NR(lies); i++) {
		at = d->bytes.len;
		put(d, lines, NR(lines), 0x1000, 4);
		small_jitdump_set(&d->bytes, at, struct jitdump_debug, nr_entry, lies[i]);
	}
	put(d, &before, 1, 0x1000, 4);
	at = small_jitdump_debug(&d->bytes, 0x1000, lines, 1);
	d->bytes.data[d->bytes.len - 1] = 'x';
	small_jitdump_load(&d->bytes, 1, 0x1000, 4, "f");
	expect(d, "time 1\n1 routine 1000+4 f code 0003\n2 routine 1000+4 f code 0003\n"
		  "3 routine 1000+4 f code 0003\n4 routine 1000+4 f code 0003\n"
		  "5 routine 1000+4 f code 0003\n6 routine 1000+4 f code 0003\n");
	assert_int_equal(d->rd.nr_bad, 5);
}

static void test_too_many(void **state)
{
	struct small_line *lines = calloc(1 << 19, sizeof(*lines));
	struct dump *d = *state;

	assert_non_null(lines);
	for (size_t i = 0; i < 1 << 19; i++)
		lines[i] = (struct small_line){ 0x1000, 1, "a" };
	put(d, lines, 1 << 19, 0x1000, 4);
	put(d, lines, 1 << 18, 0x1000, 4);
	free(lines);
	expect(d, "time 1\n1 routine 1000+4 f code 0003\n2 routine 1000+4 f code 0003 +0=a:1\n");
	assert_int_equal(d->rd.nr_bad, 1);
}

/* ---- whose they are -------------------------------------------------------------------------- */

static const struct small_line line_a = { 0x1000, 1, "a.c" }, line_b = { 0x2000, 2, "b.c" };
static const struct small_line line_new = { 0x1000, 3, "new.c" };

static void test_of_threads(void **state)
{
	struct dump *d = *state;

	small_jitdump_debug(&d->bytes, 0x1000, &line_a, 1);
	small_jitdump_debug(&d->bytes, 0x2000, &line_b, 1);
	small_jitdump_load(&d->bytes, 1, 0x3000, 4, "none");
	small_jitdump_load(&d->bytes, 1, 0x1000, 4, "a");
	small_jitdump_load(&d->bytes, 1, 0x2000, 4, "b");
	small_jitdump_load(&d->bytes, 1, 0x1000, 4, "none");
	d->rd.file.answer_max = 0;
	expect(d, "time 1\n1 routine 3000+4 none code 0003\n2 routine 1000+4 a code 0003 +0=a.c:1\n"
		  "3 routine 2000+4 b code 0003 +0=b.c:2\n4 routine 1000+4 none code 0003\n");
	assert_int_equal(d->rd.place.debug_off, 0);
}

static void test_said_again(void **state)
{
	struct dump *d = *state;

	small_jitdump_debug(&d->bytes, 0x1000, &line_a, 1);
	small_jitdump_debug(&d->bytes, 0x1000, &line_new, 1);
	small_jitdump_load(&d->bytes, 1, 0x1000, 4, "f");
	expect(d, "time 1\n1 routine 1000+4 f code 0003 +0=new.c:3\n");
}

/* A routine that was left out does not leave its lines to another. */
static void test_of_a_bad_one(void **state)
{
	struct dump *d = *state;
	size_t at;

	small_jitdump_debug(&d->bytes, 0x1000, &line_a, 1);
	at = small_jitdump_load(&d->bytes, 1, 0x1000, 4, "bad");
	small_jitdump_set(&d->bytes, at, struct jitdump_load, code_size, 0);
	small_jitdump_load(&d->bytes, 1, 0x1000, 4, "f");
	expect(d, "time 1\n1 routine 1000+4 f code 0003\n");
}

/* As many bytes between as there may be, then one more; read at once, and in two. */
static void check_between(struct dump *d, size_t len, bool in_two, const char *text)
{
	uint8_t *body = calloc(1, len);

	assert_non_null(body);
	small_jitdump_debug(&d->bytes, 0x1000, &line_a, 1);
	small_jitdump_record(&d->bytes, SMALL_OTHER, 1, body, len - sizeof(struct jitdump_head));
	free(body);
	if (in_two)
		expect(d, "");
	small_jitdump_load(&d->bytes, 1, 0x1000, 4, "f");
	expect(d, text);
}

static void test_long_ago(void **state)
{
	struct dump *d = *state;

	check_between(d, JITDUMP_PENDING_LEN, false,
		      "time 1\n1 routine 1000+4 f code 0003 +0=a.c:1\n");
	check_between(d, JITDUMP_PENDING_LEN, true, "2 routine 1000+4 f code 0003 +0=a.c:1\n");
	check_between(d, JITDUMP_PENDING_LEN + 1, false, "3 routine 1000+4 f code 0003\n");
	check_between(d, JITDUMP_PENDING_LEN + 1, true, "4 routine 1000+4 f code 0003\n");
}

static void check_crowd(struct dump *d, unsigned int nr, bool in_two, const char *text)
{
	small_jitdump_debug(&d->bytes, 0x1000, &line_a, 1);
	for (unsigned int i = 0; i < nr; i++)
		small_jitdump_debug(&d->bytes, 0x20000 + i, &line_b, 1);
	if (in_two)
		expect(d, "");
	small_jitdump_load(&d->bytes, 1, 0x1000, 4, "f");
	expect(d, text);
}

static void test_crowd(void **state)
{
	struct dump *d = *state;

	check_crowd(d, JITDUMP_NR_PENDING - 1, false,
		    "time 1\n1 routine 1000+4 f code 0003 +0=a.c:1\n");
	check_crowd(d, JITDUMP_NR_PENDING - 1, true, "2 routine 1000+4 f code 0003 +0=a.c:1\n");
	check_crowd(d, JITDUMP_NR_PENDING, false, "3 routine 1000+4 f code 0003\n");
	check_crowd(d, JITDUMP_NR_PENDING, true, "4 routine 1000+4 f code 0003\n");
}

/* ---- where they count from ------------------------------------------------------------------- */

/* Lines of a routine at 0x1000 of 256 bytes; @text: what its first line's place is found to be. */
static void check_base(struct dump *d, uint64_t first, uint64_t last, const char *text)
{
	const struct small_line lines[] = { { 0x1000 + first, 1, "a" }, { 0x1000 + last, 2, "a" } };
	char all[200];

	put(d, lines, 2, 0x1000, 0x100);
	snprintf(all, sizeof(all), "%s%" PRIu64 " routine 1000+100 f code 00ff%s\n",
		 d->rd.place.seq ? "" : "time 1\n", d->rd.place.seq + 1, text);
	expect(d, all);
}

static void test_exact(void **state)
{
	struct dump *d = *state;

	check_base(d, 0x50, 0x80, "");
	check_base(d, 0x3f, 0xff, " +3f=a:1 +ff=a:2");
	check_base(d, 0x50, 0x80, " +50=a:1 +80=a:2");
	check_base(d, 0x40, 0x80, " +40=a:1 +80=a:2");
	check_base(d, 0x50, 0x100, " +50=a:1");
}

static void test_high(void **state)
{
	struct dump *d = *state;

	check_base(d, 0x50, 0x100, "");
	check_base(d, 0x50, 0x140, "");
	check_base(d, 0x50, 0x101, " +10=a:1 +c1=a:2");
	check_base(d, 0x50, 0x80, " +10=a:1 +40=a:2");
	check_base(d, 0x40, 0x80, " +0=a:1 +40=a:2");
}

static void test_likely(void **state)
{
	struct dump *d = *state;

	check_base(d, 0x80, 0x40, " +0=a:2 +40=a:1");
	check_base(d, 0x50, 0x80, " +10=a:1 +40=a:2");
	check_base(d, 0x10, 0x90, " +10=a:1 +90=a:2");
	check_base(d, 0x40, 0x80, " +40=a:1 +80=a:2");
}

/* Two producers in one file. */
static void test_both(void **state)
{
	struct dump *d = *state;

	check_base(d, 0x10, 0x90, " +10=a:1 +90=a:2");
	check_base(d, 0x50, 0x110, " +10=a:1 +d0=a:2");
	check_base(d, 0x50, 0x90, "");
	check_base(d, 0x40, 0x90, " +0=a:1 +50=a:2");
	check_base(d, 0x20, 0x90, " +20=a:1 +90=a:2");
}

/* ---- names out of freed memory --------------------------------------------------------------- */

/* As Node.js 20 writes them: of each name the first 16 bytes are overwritten. */
static void put_freed(struct dump *d, const char *file, const char *routine, uint64_t last)
{
	const struct small_line lines[] = { { 0x1040, 1, file },
					    { 0x1050, 2, file },
					    { last, 3, file } };
	size_t at = small_jitdump_debug(&d->bytes, 0x1000, lines, 3), step = 16 + strlen(file) + 1;

	for (size_t i = 0; i < 3; i++)
		memcpy(d->bytes.data + at + sizeof(struct jitdump_debug) + i * step + 16,
		       "i\x1e\x01\0\0\0\0\0\xb8\xad\x77\xd3\x0d\x93\x75\xf0", 16);
	small_jitdump_load(&d->bytes, 1, 0x1000, 0x100, routine);
}

static void test_freed(void **state)
{
	struct dump *d = *state;

	put_freed(d, "/tmp/some dir/prog.js", "JS:*fib /tmp/some dir/prog.js:1:13", 0x1090);
	expect(d, "time 1\n1 routine 1000+100 JS:*fib /tmp/some dir/prog.js:1:13 code 00ff"
		  " +0=/tmp/some dir/prog.js:1 +10=/tmp/some dir/prog.js:2"
		  " +50=/tmp/some dir/prog.js:3\n");
	assert_int_equal(d->rd.nr_bad, 0);
}

static void test_freed_other_file(void **state)
{
	struct dump *d = *state;

	/* Of the same length; of another; too short to be told from others; no file; another's. */
	put_freed(d, "/tmp/some dir/prog.js", "JS:*fib /tmp/some dir/proh.js:1:13", 0x1090);
	put_freed(d, "/tmp/some dir/prog.js", "JS:*fib /tmp/other.js:1:13", 0x1090);
	put_freed(d, "/tmp/16/prog1.js", "JS:*fib /tmp/16/prog1.js:1:13", 0x1090);
	put_freed(d, "/tmp/some dir/prog.js", "Builtin:Function", 0x1090);
	put_freed(d, "/tmp/some dir/prog.js", "JS:*fib /tmp/some dir/prog.js:1:13", 0x9000);
	expect(d, "time 1\n1 routine 1000+100 JS:*fib /tmp/some dir/proh.js:1:13 code 00ff +0=?\n"
		  "2 routine 1000+100 JS:*fib /tmp/other.js:1:13 code 00ff\n"
		  "3 routine 1000+100 JS:*fib /tmp/16/prog1.js:1:13 code 00ff\n"
		  "4 routine 1000+100 Builtin:Function code 00ff\n"
		  "5 routine 1000+100 JS:*fib /tmp/some dir/prog.js:1:13 code 00ff\n");
	assert_int_equal(d->rd.nr_bad, 4);
}

/* As Node.js 18 writes them: one name, overwritten; "the same" behind it; places without a column.
 */
static void put_freed_first(struct dump *d, const char *file, const char *routine,
			    const char *garbage)
{
	const struct small_line lines[] = { { 0x1040, 1, file },
					    { 0x1050, 2, "\xff" },
					    { 0x1090, 3, "\xff" } };
	size_t at = small_jitdump_debug(&d->bytes, 0x1000, lines, 3);

	memcpy(d->bytes.data + at + sizeof(struct jitdump_debug) + 16, garbage, 16);
	small_jitdump_load(&d->bytes, 1, 0x1000, 0x100, routine);
}

static void test_freed_first(void **state)
{
	struct dump *d = *state;

	put_freed_first(d, "/tmp/some dir/prog.js", "LazyCompile:*fib /tmp/some dir/prog.js:1",
			"\xaaj\x01\x06\xf3U\0\0\xff\0\x01\x02\x03\x04\x05\x06");
	/* It looks like a name. */
	put_freed_first(d, "/tmp/some dir/prog.js", "Function:^fob /tmp/some dir/prog.js:7",
			"abcdefghijklmnop");
	put_freed_first(d, "/tmp/some dir/prog.js", "Function:^oth /tmp/some dir/proh.js:7",
			"abcdefghijklmno\0");
	expect(d, "time 1\n1 routine 1000+100 LazyCompile:*fib /tmp/some dir/prog.js:1 code 00ff"
		  " +0=/tmp/some dir/prog.js:1 +10=/tmp/some dir/prog.js:2"
		  " +50=/tmp/some dir/prog.js:3\n"
		  "2 routine 1000+100 Function:^fob /tmp/some dir/prog.js:7 code 00ff"
		  " +0=/tmp/some dir/prog.js:1 +10=/tmp/some dir/prog.js:2"
		  " +50=/tmp/some dir/prog.js:3\n"
		  "3 routine 1000+100 Function:^oth /tmp/some dir/proh.js:7 code 00ff\n");
	assert_int_equal(d->rd.nr_bad, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_order),	      T(test_outside),	  T(test_none),
		T(test_url),	      T(test_long_file),  T(test_lies),
		T(test_too_many),     T(test_of_threads), T(test_said_again),
		T(test_of_a_bad_one), T(test_long_ago),	  T(test_crowd),
		T(test_exact),	      T(test_high),	  T(test_likely),
		T(test_both),	      T(test_freed),	  T(test_freed_other_file),
		T(test_freed_first),
	};

	return cmocka_run_group_tests_name("foreign/jitdump_lines", tests, NULL, NULL);
}
