/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../routine_file.h"
#include "wire.h"

/* A routine with everything: 5 name bytes, 11 code bytes, 2 lines, 2 files. */
static const struct wire_routine good = { .head = { .type = WIRE_ROUTINE,
						    .flags = WIRE_ROUTINE_CODE },
					  .seq = 7,
					  .addr = 0x1000,
					  .code_len = 11,
					  .name_len = 5,
					  .nr_lines = 2,
					  .nr_files = 2 };
static const struct wire_line good_lines[2] = { { 0, 10, 0, 0, 0 }, { 6, 11, 1, 0, 0 } };
static const uint8_t files[] = { 3, 0, 'a', '.', 'c', 0, 0 };

static struct wire_routine *record(const struct wire_routine *r, const struct wire_line *lines)
{
	static _Alignas(8) uint8_t bytes[4096];
	size_t len = wire_routine_len(5, 11, true, 2, 0, sizeof(files));

	assert_int_equal(len, 112);
	memset(bytes, 0xee, sizeof(bytes));
	memcpy(bytes, r, sizeof(*r));
	memcpy(bytes + 56, "namesCODECODECOD", 16);
	memcpy(bytes + 72, lines, 32);
	memcpy(bytes + 104, files, sizeof(files));
	((struct wire_routine *)(void *)bytes)->head.len = (uint32_t)len;
	return (void *)bytes;
}

static int parse(const struct wire_routine *r)
{
	struct wire_routine_view v;

	return wire_routine_parse(&record(r, good_lines)->head, &v);
}

static void test_parts(void **state)
{
	struct wire_routine *rec = record(&good, good_lines);
	struct wire_routine_view v;
	size_t len = 99;

	(void)state;
	assert_int_equal(wire_routine_parse(&rec->head, &v), 0);
	assert_ptr_equal(v.rec, rec);
	assert_memory_equal(v.name, "names", 5);
	assert_memory_equal(v.code, "CODECODECOD", 11);
	assert_memory_equal(v.lines, good_lines, sizeof(good_lines));
	assert_int_equal(v.files_len, sizeof(files));
	assert_memory_equal(routine_file(&v, 0, &len), "a.c", 3);
	assert_int_equal(len, 3);
	assert_non_null(routine_file(&v, 1, &len));
	assert_int_equal(len, 0);
	assert_null(routine_file(&v, 2, &len));
	assert_null(routine_file(&v, UINT32_MAX, &len));
	assert_int_equal(wire_check(&rec->head), 0);
}

static void test_files_one_by_one(void **state)
{
	struct wire_routine r = good;
	struct wire_line lines[2] = { good_lines[0], good_lines[0] };
	struct wire_routine_view v;
	size_t pos = 0, len = 99;

	(void)state;
	assert_int_equal(wire_routine_parse(&record(&good, good_lines)->head, &v), 0);
	assert_memory_equal(wire_file_next(&v, &pos, &len), "a.c", 3);
	assert_int_equal(len, 3);
	assert_non_null(wire_file_next(&v, &pos, &len));
	assert_int_equal(len, 0);
	assert_int_equal(pos, sizeof(files));
	assert_null(wire_file_next(&v, &pos, &len));
	assert_null(wire_file_next(&v, &pos, &len));
	/* What pads the record is no file. */
	r.nr_files = 1;
	pos = 0;
	assert_int_equal(wire_routine_parse(&record(&r, lines)->head, &v), 0);
	assert_non_null(wire_file_next(&v, &pos, &len));
	assert_null(wire_file_next(&v, &pos, &len));
	assert_null(routine_file(&v, 1, &len));
}

static void test_without_code(void **state)
{
	struct wire_routine r = { .head = { .len = 64, .type = WIRE_ROUTINE },
				  .seq = 1,
				  .addr = 16,
				  .code_len = WIRE_CODE_MAX,
				  .name_len = 3 };
	static _Alignas(8) uint8_t bytes[64];
	struct wire_routine_view v;

	(void)state;
	memcpy(bytes, &r, sizeof(r));
	assert_int_equal(wire_routine_len(3, WIRE_CODE_MAX, false, 0, 0, 0), 64);
	assert_int_equal(wire_routine_parse((void *)bytes, &v), 0);
	assert_null(v.code);
}

/* Frames stand behind the files, up to the end. */
static int parse_framed(const struct wire_frame *frames, size_t nr, size_t missing,
			struct wire_routine_view *v)
{
	struct wire_routine *rec = record(&good, good_lines);
	size_t len = wire_routine_frames_len(rec->head.len, nr);

	assert_int_equal(len, 112 + 24 * nr);
	memcpy((uint8_t *)rec + 112, frames, nr * sizeof(*frames));
	rec->head.len = (uint32_t)(len - missing);
	rec->head.flags |= WIRE_ROUTINE_FRAMES;
	return wire_routine_parse(&rec->head, v);
}

static void test_frames(void **state)
{
	const struct wire_frame frames[2] = {
		{ .cfa_off = 96, .fp_off = -16, .link_off = -24 },
		{ .code_off = 10, .flags = WIRE_FRAME_BY_FP, .cfa_off = 16, .fp_off = -16 },
	};
	const struct wire_frame faults[] = {
		{ .cfa_off = 0 },
		{ .cfa_off = -8 },
		{ .cfa_off = 12 },
		{ .cfa_off = WIRE_FRAME_FAR + 8 },
		{ .cfa_off = INT32_MIN },
		{ .cfa_off = 8, .flags = 4 },
		{ .cfa_off = 8, .reserved = 1 },
		{ .cfa_off = 96, .fp_off = 8 },
		{ .cfa_off = 96, .fp_off = -8 },
		{ .cfa_off = 96, .fp_off = -17 },
		{ .cfa_off = 96, .link_off = -104 },
		{ .cfa_off = 96, .link_off = INT32_MIN + 8 },
		{ .cfa_off = 96, .flags = WIRE_FRAME_BY_FP },
		{ .cfa_off = -WIRE_FRAME_FAR - 8, .flags = WIRE_FRAME_BY_FP, .fp_off = -16 },
	};
	struct wire_frame odd[2] = { frames[0], frames[1] };
	struct wire_routine_view v;

	(void)state;
	assert_int_equal(wire_routine_parse(&record(&good, good_lines)->head, &v), 0);
	assert_int_equal(v.nr_frames, 0);
	assert_int_equal(parse_framed(frames, 2, 0, &v), 0);
	assert_int_equal(v.nr_frames, 2);
	assert_memory_equal(v.frames, frames, sizeof(frames));
	assert_memory_equal(routine_file(&v, 0, &(size_t){ 0 }), "a.c", 3);
	assert_int_equal(parse_framed(frames, 0, 0, &v), -EINVAL);
	assert_int_equal(parse_framed(frames, 2, 8, &v), -EINVAL);
	odd[1].code_off = 11;
	assert_int_equal(parse_framed(odd, 2, 0, &v), -EINVAL);
	odd[1].code_off = 0;
	assert_int_equal(parse_framed(odd, 2, 0, &v), -EINVAL);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		assert_non_null(wire_frame_fault(&faults[i]));
		assert_int_equal(parse_framed(&faults[i], 1, 0, &v), -EINVAL);
	}
	assert_int_equal(wire_routine_frames_len(0, 1), 0);
	assert_int_equal(wire_routine_frames_len(64, WIRE_RECORD_MAX / 24), 0);
	assert_int_equal(wire_routine_frames_len(64, SIZE_MAX), 0);
}

#define LIE(member, value)                                                                         \
	do {                                                                                       \
		struct wire_routine lie = good;                                                    \
		lie.member = (value);                                                              \
		assert_int_not_equal(parse(&lie), 0);                                              \
	} while (0)

static void test_lies(void **state)
{
	(void)state;
	assert_int_equal(parse(&good), 0);
	LIE(head.type, WIRE_FACILITY);
	LIE(seq, 0);
	LIE(code_len, 0);
	LIE(code_len, 200);
	LIE(code_len, WIRE_CODE_MAX + 1);
	LIE(code_len, UINT64_MAX);
	LIE(addr, UINT64_MAX - 5);
	LIE(name_len, 100);
	LIE(name_len, WIRE_NAME_MAX + 1);
	LIE(name_len, UINT32_MAX);
	LIE(nr_lines, 4);
	LIE(nr_lines, UINT32_MAX);
	LIE(nr_lines, 0x10000000u); /* times 16 wraps in 32 bits */
	LIE(nr_files, 5);
	LIE(nr_files, UINT32_MAX);
	LIE(nr_files, 1); /* the second line's file is not there */
}

static void test_lines(void **state)
{
	static const struct wire_line bad[][2] = {
		{ { 6, 1, 0, 0, 0 }, { 5, 1, 0, 0, 0 } },  /* does not ascend */
		{ { 0, 1, 0, 0, 0 }, { 11, 1, 0, 0, 0 } }, /* behind the code */
		{ { 0, 1, 2, 0, 0 }, { 1, 1, 0, 0, 0 } },  /* no such file */
		{ { UINT32_MAX, 1, 0, 0, 0 }, { 0, 1, 0, 0, 0 } },
	};
	static const struct wire_line fine[2] = { { 3, 0, 99, 0, 0 }, { 3, 1, 1, 0, 0 } };
	struct wire_routine_view v;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_not_equal(wire_routine_parse(&record(&good, bad[i])->head, &v), 0);
	assert_int_equal(wire_routine_parse(&record(&good, fine)->head, &v), 0);
}

static int parse_inlines(const struct wire_inline *in, uint32_t nr)
{
	static _Alignas(8) uint8_t bytes[1024];
	struct wire_routine r = { .head = { .type = WIRE_ROUTINE },
				  .seq = 1,
				  .code_len = 100,
				  .nr_files = 2,
				  .nr_inlines = nr };
	struct wire_routine_view v;

	r.head.len = (uint32_t)wire_routine_len(0, 100, false, 0, nr, 4);
	assert_true(r.head.len > 0 && r.head.len <= sizeof(bytes));
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, &r, sizeof(r));
	memcpy(bytes + sizeof(r), in, nr * sizeof(*in));
	if (wire_routine_parse((void *)bytes, &v) < 0)
		return -1;
	assert_memory_equal(v.inlines, in, nr * sizeof(*in));
	assert_int_equal(v.files_len, 4);
	return 0;
}

static void test_inlines(void **state)
{
	/* code_off, code_len, name, call_file, call_line, depth */
	static const struct wire_inline fine[] = {
		{ 0, 50, 0, 0, 7, 0 },	{ 0, 20, 1, 1, 8, 1 },	{ 5, 15, 0, 0, 9, 2 },
		{ 20, 30, 1, 9, 0, 1 }, { 50, 50, 0, 1, 1, 0 }, { 99, 1, 0, 1, 1, 1 },
	};
	static const struct wire_inline bad[][2] = {
		{ { 0, 50, 0, 0, 1, 0 }, { 0, 50, 0, 0, 1, 2 } },  /* skips a depth */
		{ { 0, 50, 0, 0, 1, 1 }, { 0, 50, 0, 0, 1, 0 } },  /* begins deep */
		{ { 0, 50, 0, 0, 1, 0 }, { 40, 20, 0, 0, 1, 1 } }, /* leaves its parent */
		{ { 10, 50, 0, 0, 1, 0 }, { 9, 20, 0, 0, 1, 1 } }, /* before its parent */
		{ { 0, 50, 0, 0, 1, 0 }, { 49, 20, 0, 0, 1, 0 } }, /* overlaps its brother */
		{ { 0, 50, 0, 0, 1, 0 }, { 90, 11, 0, 0, 1, 0 } }, /* leaves the routine */
		{ { 0, 50, 0, 0, 1, 0 }, { 50, 0, 0, 0, 1, 0 } },  /* empty */
		{ { 0, 50, 2, 0, 1, 0 }, { 50, 1, 0, 0, 1, 0 } },  /* no such name */
		{ { 0, 50, 0, 2, 1, 0 }, { 50, 1, 0, 0, 1, 0 } },  /* no such file */
		{ { 0, 50, 0, 0, 1, 0 }, { 60, UINT32_MAX, 0, 0, 1, 0 } },
	};
	struct wire_inline deep[WIRE_INLINE_DEPTH / 2];

	(void)state;
	assert_int_equal(parse_inlines(fine, 6), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse_inlines(bad[i], 2), -1);
	}
	for (uint32_t i = 0; i < WIRE_INLINE_DEPTH / 2; i++)
		deep[i] = (struct wire_inline){ i, 100 - 2 * i, 0, 0, 1, i };
	assert_int_equal(parse_inlines(deep, WIRE_INLINE_DEPTH / 2), 0);
	deep[5].depth = WIRE_INLINE_DEPTH;
	assert_int_equal(parse_inlines(deep, WIRE_INLINE_DEPTH / 2), -1);
}

/* Cut anywhere, in a block of just that size, so that a sanitizer sees a read behind it. */
static void test_truncation(void **state)
{
	(void)state;
	for (uint32_t len = 8; len < 112; len += 8) {
		struct wire_head *cut = malloc(len);
		struct wire_routine_view v;

		assert_non_null(cut);
		memcpy(cut, record(&good, good_lines), len);
		cut->len = len;
		assert_int_not_equal(wire_routine_parse(cut, &v), 0);
		free(cut);
	}
}

static void test_len(void **state)
{
	(void)state;
	assert_int_equal(wire_routine_len(0, 1, false, 0, 0, 0), 56);
	assert_int_equal(wire_routine_len(1, 8, true, 0, 0, 1), 56 + 16 + 8);
	assert_int_equal(wire_routine_len(WIRE_NAME_MAX + 1, 1, false, 0, 0, 0), 0);
	assert_int_equal(wire_routine_len(1, WIRE_CODE_MAX + 1, false, 0, 0, 0), 0);
	assert_int_equal(wire_routine_len(1, SIZE_MAX, true, 0, 0, 0), 0);
	assert_int_equal(wire_routine_len(1, 1, false, SIZE_MAX / 16 + 1, 0, 0), 0);
	assert_int_equal(wire_routine_len(1, 1, false, 0, 0, SIZE_MAX), 0);
	assert_int_equal(wire_routine_len(1, 1, false, WIRE_RECORD_MAX / 16, 0, 0), 0);
	assert_true(wire_routine_len(WIRE_NAME_MAX, WIRE_CODE_MAX, true, 1000, 0, 1000) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files_one_by_one),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_without_code),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_inlines),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_len),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
