/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jvmti_internal.h"

#define CODE	 ((const char *)0x10000)
#define CODE_LEN 0x100u
#if defined(__x86_64__)
#define NEXT 1u /* where the code behind an instruction may begin */
#elif defined(__riscv)
#define NEXT 2u
#else
#define NEXT 4u
#endif

/* Methods a, b, c, …: line 10 of method a from its bci 0 on, 11 from 5 on; b 20 and 21, … */
static jvmtiLineNumberEntry lines[26][2];
static struct jvmti_known known[26];

static jmethodID id(char name)
{
	return (jmethodID)(uintptr_t)(unsigned char)name;
}

static struct jvmti_known *find(void *arg, jmethodID which)
{
	size_t i = (uintptr_t)which - 'a';

	assert_ptr_equal(arg, known);
	return i < 26 ? &known[i] : NULL;
}

/* Methods b and d are of one file, n has none. */
static int setup(void **state)
{
	static char names[26], files[26][8];

	(void)state;
	for (int i = 0; i < 26; i++) {
		names[i] = (char)('a' + i);
		memcpy(files[i],
		       i == 3 ? "b.java" : (char[]){ names[i], '.', 'j', 'a', 'v', 'a', 0 }, 7);
		lines[i][0] = (jvmtiLineNumberEntry){ 0, 10 * (i + 1) };
		lines[i][1] = (jvmtiLineNumberEntry){ 5, 10 * (i + 1) + 1 };
		known[i] = (struct jvmti_known){ .id = id(names[i]),
						 .name = { &names[i], 1 },
						 .file = { files[i], i == 13 ? 0 : 6 },
						 .lines = lines[i],
						 .nr_lines = 2 };
	}
	return 0;
}

/* "OFF FRAMES": innermost first, each a method's letter and a bci's digit. */
static struct jvmti_place places[2000];
static jmethodID methods[2000][70];
static jint bcis[2000][70];
static size_t nr;

static void put(uint32_t start, const char *frames)
{
	uint32_t n = (uint32_t)strlen(frames) / 2;

	for (uint32_t i = 0; i < n; i++) {
		methods[nr][i] = id(frames[2 * i]);
		bcis[nr][i] = frames[2 * i + 1] - '0';
	}
	places[nr] = (struct jvmti_place){ start, n, methods[nr], bcis[nr] };
	nr++;
}

static struct jvmti_frames f;

/* The result as text: "OFF:FILE:LINE …" and "OFF+LEN name@FILE:LINE depth …". */
static char text[2][1000];

static void add(char *to, const char *format, ...)
{
	size_t len = strlen(to);
	va_list ap;

	va_start(ap, format);
	vsnprintf(to + len, sizeof(text[0]) - len, format, ap);
	va_end(ap);
}

static const char *file_of(uint32_t file, uint32_t line)
{
	if (!line)
		return "-";
	assert_true(file < f.nr_files);
	return f.files[file].text;
}

static void convert(uint32_t end)
{
	assert_int_equal(jvmti_frames_convert(&f, places, nr, end, CODE_LEN, find, known), 0);
	nr = 0;
	memset(text, 0, sizeof(text));
	for (size_t i = 0; i < f.nr_lines; i++)
		add(text[0], "%x:%s:%u ", f.lines[i].code_off,
		    file_of(f.lines[i].file, f.lines[i].line), f.lines[i].line);
	for (size_t i = 0; i < f.nr_inlines; i++) {
		const struct dbgdyn_inline *in = &f.inlines[i];

		add(text[1], "%x+%x %.*s@%s:%u %u ", in->code_off, in->code_len, (int)in->name.len,
		    in->name.text, file_of(in->call_file, in->call_line), in->call_line, in->depth);
	}
}

static void expect(const char *expected_lines, const char *expected_inlines)
{
	assert_string_equal(text[0], expected_lines);
	assert_string_equal(text[1], expected_inlines);
}

static void test_lines(void **state)
{
	(void)state;
	put(0, "a0");
	put(0x10, "a4"); /* the same line */
	put(0x20, "a7");
	put(0x30, "a1");
	convert(0x40);
	expect("0:a.java:10 20:a.java:11 30:a.java:10 40:-:0 ", "");
	put(0, "a0");
	convert(CODE_LEN);
	expect("0:a.java:10 ", "");
	convert(CODE_LEN);
	expect("", "");
}

static void test_one_part(void **state)
{
	(void)state;
	put(0, "a0");
	put(0x10, "b0a6");
	put(0x18, "b5a6"); /* goes on */
	put(0x20, "a6");
	convert(CODE_LEN);
	expect("0:a.java:10 10:b.java:20 18:b.java:21 20:a.java:11 ", "10+10 b@a.java:11 0 ");
}

/* Called twice from one line it is one part, from two lines it is two. */
static void test_call_sites(void **state)
{
	(void)state;
	put(0, "b0a5");
	put(0x10, "b0a7");
	put(0x20, "b0a1");
	put(0x30, "c0a1");
	convert(0x40);
	expect("0:b.java:20 30:c.java:30 40:-:0 ",
	       "0+20 b@a.java:11 0 20+10 b@a.java:10 0 30+10 c@a.java:10 0 ");
}

/* Preorder, as libdbgdyn wants it. */
static void test_nested(void **state)
{
	(void)state;
	put(0, "c0b5a0");
	put(0x10, "d0c0b5a0");
	put(0x20, "b6a0");
	put(0x30, "c9b6a0");
	put(0x40, "c0a0");
	convert(0x50);
	expect("0:c.java:30 10:b.java:40 20:b.java:21 30:c.java:31 40:c.java:30 50:-:0 ",
	       "0+40 b@a.java:10 0 0+20 c@b.java:21 1 10+10 d@c.java:30 2 30+10 c@b.java:21 1 "
	       "40+10 c@a.java:10 0 ");
}

static void test_recursion(void **state)
{
	(void)state;
	put(0, "a5a0a0");
	put(0x10, "a0a0");
	convert(0x20);
	expect("0:a.java:11 10:a.java:10 20:-:0 ", "0+20 a@a.java:10 0 0+10 a@a.java:10 1 ");
}

/* b and d share a file, and a method without one has no lines. */
static void test_files(void **state)
{
	(void)state;
	put(0, "b0a0");
	put(0x10, "d0a0");
	put(0x20, "n0a0");
	put(0x30, "b0n0a0");
	convert(0x40);
	expect("0:b.java:20 10:b.java:40 20:-:0 30:b.java:20 40:-:0 ",
	       "0+10 b@a.java:10 0 10+10 d@a.java:10 0 20+20 n@a.java:10 0 30+10 b@-:0 1 ");
	assert_int_equal(f.nr_files, 2);
	/* No source at all. */
	put(0, "n0");
	convert(CODE_LEN);
	expect("", "");
	assert_int_equal(f.nr_files, 0);
}

/* Of a method that the JVM no longer knows the caller's line is shown. */
static void test_unknown(void **state)
{
	(void)state;
	put(0, "B0a5");
	put(0x10, "b0B0a5");
	put(0x20, "B0");
	convert(0x30);
	expect("0:a.java:11 10:b.java:20 20:-:0 ", "10+10 b@a.java:11 0 ");
}

static void test_deep(void **state)
{
	char deep[2 * 70 + 1] = "";

	(void)state;
	for (int i = 0; i < 70; i++)
		memcpy(deep + 2 * i, "a0", 3);
	put(0, deep);
	convert(CODE_LEN);
	assert_int_equal(f.nr_inlines, 64);
	assert_int_equal(f.inlines[63].depth, 63);
	assert_int_equal(f.inlines[63].code_len, CODE_LEN);
}

/* More than there is room for at first; and again with the same room. */
static void test_many(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 200; i++)
			put(i, i % 2 ? "b0a0" : "c5a0");
		convert(CODE_LEN);
		assert_int_equal(f.nr_lines, 200);
		assert_int_equal(f.nr_inlines, 200);
		assert_int_equal(f.nr_files, 3);
	}
}

static PCStackInfo record(const char *pc, jint nr_frames)
{
	static jint bci;
	static jmethodID method;

	return (PCStackInfo){ (void *)(uintptr_t)pc, nr_frames, &method, &bci };
}

/* A record is of the code up to its address; senseless ones are left out. */
static void test_records(void **state)
{
	const PCStackInfo records[] = { record(CODE + 0x10, 1),	 record(CODE + 0x08, 1),
					record(CODE + 0x20, 2),	 record(CODE + 0x20, 1),
					record(CODE - 4, 1),	 record(CODE + 0x28, 0),
					record(CODE + 0x100, 1), record(CODE + 0x30, 1) };
	struct jvmti_place out[8];
	uint32_t end = 0;

	(void)state;
	assert_int_equal(jvmti_places_of_records(out, records, 8, CODE, CODE_LEN, &end), 3);
	assert_int_equal(out[0].start, 0);
	assert_int_equal(out[1].start, 0x10 + NEXT);
	assert_int_equal(out[1].nr_frames, 2);
	assert_int_equal(out[2].start, 0x20 + NEXT);
	assert_int_equal(end, 0x30 + NEXT);
	assert_int_equal(jvmti_places_of_records(out, records, 1, CODE, 0x11, &end), 1);
	assert_int_equal(end, 0x11);
	assert_int_equal(jvmti_places_of_records(out, records, 0, CODE, CODE_LEN, &end), 0);
	assert_int_equal(end, 0);
}

/* An entry of a map is of the code from its address on. */
static void test_map(void **state)
{
	const jvmtiAddrLocationMap map[] = {
		{ CODE + 4, 0 }, { CODE + 0x20, 7 }, { CODE + 0x20, 3 },
		{ CODE - 1, 3 }, { CODE + 0x30, 1 }, { CODE + CODE_LEN, 1 },
	};
	struct jvmti_place out[6];
	jint space[6];
	jmethodID method = id('a');

	(void)state;
	nr = jvmti_places_of_map(out, map, space, 6, &method, CODE, CODE_LEN);
	assert_int_equal(nr, 3);
	memcpy(places, out, sizeof(out));
	convert(CODE_LEN);
	expect("4:a.java:10 20:a.java:11 30:a.java:10 ", "");
}

static int teardown(void **state)
{
	(void)state;
	jvmti_frames_release(&f);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	   cmocka_unit_test(test_one_part),
		cmocka_unit_test(test_call_sites), cmocka_unit_test(test_nested),
		cmocka_unit_test(test_recursion),  cmocka_unit_test(test_files),
		cmocka_unit_test(test_unknown),	   cmocka_unit_test(test_deep),
		cmocka_unit_test(test_many),	   cmocka_unit_test(test_records),
		cmocka_unit_test(test_map),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
