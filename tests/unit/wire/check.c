/* SPDX-License-Identifier: BSD-2-Clause */
/* The other records: a good one of each kind passes, each lie in it does not. */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "wire.h"

#define HEAD(s, t, more)                                                                           \
	{                                                                                          \
		.len = sizeof(struct s) + (more), .type = (t)                                      \
	}

static void test_facility(void **state)
{
	struct {
		struct wire_facility_rec r;
		char name[8];
	} f = { .r = { .head = HEAD(wire_facility_rec, WIRE_FACILITY, 8), .name_len = 8 } };

	(void)state;
	assert_int_equal(wire_check(&f.r.head), 0);
	f.r.name_len = 9;
	assert_int_not_equal(wire_check(&f.r.head), 0);
	f.r.name_len = UINT32_MAX;
	assert_int_not_equal(wire_check(&f.r.head), 0);
}

static void test_range(void **state)
{
	struct wire_range_rec r = { .head = HEAD(wire_range_rec, WIRE_RANGE, 0),
				    .range = { .base = 4096, .len = 1, .kind = WIRE_RANGE_CODE } };

	(void)state;
	assert_int_equal(wire_check(&r.head), 0);
	r.range.len = 0;
	assert_int_not_equal(wire_check(&r.head), 0);
	r.range.len = UINT64_MAX - 4094;
	assert_int_not_equal(wire_check(&r.head), 0);
}

static void test_bytes(void **state)
{
	const struct wire_bytes good = { .head = HEAD(wire_bytes, WIRE_BYTES, 16),
					 .vaddr = 0x1010,
					 .bytes_len = 16,
					 .range_base = 0x1000,
					 .range_len = 0x20 };
	struct {
		struct wire_bytes r;
		uint8_t data[16];
	} b;

	(void)state;
#define LIE(member, value)                                                                         \
	do {                                                                                       \
		b.r = good;                                                                        \
		b.r.member = (value);                                                              \
		assert_int_not_equal(wire_check(&b.r.head), 0);                                    \
	} while (0)
	memset(&b, 0, sizeof(b));
	b.r = good;
	assert_int_equal(wire_check(&b.r.head), 0);
	b.r.vaddr = 0x1020; /* nothing left: trailing zeros are left out */
	b.r.bytes_len = 0;
	assert_int_equal(wire_check(&b.r.head), 0);
	LIE(bytes_len, 17);
	LIE(bytes_len, UINT64_MAX);
	LIE(vaddr, 0x1011);
	LIE(vaddr, 0xfff);
	LIE(vaddr, UINT64_MAX);
	LIE(range_len, 0x1f);
	LIE(range_base, UINT64_MAX - 8);
	LIE(head.len, sizeof(struct wire_bytes));
#undef LIE
}

#define LIE(member, value)                                                                         \
	do {                                                                                       \
		r = good;                                                                          \
		r.member = (value);                                                                \
		assert_int_not_equal(wire_check(&r.head), 0);                                      \
	} while (0)

static void test_retire(void **state)
{
	const struct wire_retire good = {
		.head = HEAD(wire_retire, WIRE_RETIRE, 0), .seq = 3, .handle = 2, .addr = 1
	};
	struct wire_retire r = good;

	(void)state;
	assert_int_equal(wire_check(&r.head), 0);
	r.handle = 0;
	r.code_len = 1;
	assert_int_equal(wire_check(&r.head), 0);
	LIE(seq, 0);
	LIE(handle, 0);
	LIE(code_len, UINT64_MAX);
	LIE(head.len, sizeof(r) - 8);
}

static void test_move(void **state)
{
	const struct wire_move good = { .head = HEAD(wire_move, WIRE_MOVE, 0),
					.seq = 3,
					.handle = 2,
					.from = 1,
					.to = UINT64_MAX - 8,
					.code_len = 8 };
	struct wire_move r = good;

	(void)state;
	assert_int_equal(wire_check(&r.head), 0);
	r.handle = 0;
	assert_int_equal(wire_check(&r.head), 0);
	LIE(seq, 0);
	LIE(code_len, 0);
	LIE(code_len, 9);
	LIE(code_len, WIRE_CODE_MAX + 1);
	LIE(head.flags, WIRE_ROUTINE_CODE);
	LIE(head.len, sizeof(r) - 8);
}

static void test_object(void **state)
{
	const struct wire_object good = { .head = HEAD(wire_object, WIRE_OBJECT, 0),
					  .seq = 1,
					  .elf_addr = 4096,
					  .elf_len = 64,
					  .addr = 8192,
					  .code_len = 16 };
	struct wire_object r = good;

	(void)state;
	assert_int_equal(wire_check(&r.head), 0);
	LIE(seq, 0);
	LIE(elf_len, 0);
	LIE(elf_len, UINT64_MAX);
	LIE(code_len, 0);
	LIE(code_len, UINT64_MAX);
	LIE(head.flags, WIRE_ROUTINE_CODE);
	LIE(head.len, sizeof(r) - 8);
}

static void test_replaces(void **state)
{
	struct {
		struct wire_replaces r;
		struct wire_moved moved[2];
	} m = { .r = { .head = { .len = sizeof(m), .type = WIRE_REPLACES }, .nr_moved = 2 },
		.moved = { { .from = 0x10, .to = 0x100, .len = 0x10 },
			   { .from = 0x20, .to = 0, .len = 1 } } };

	(void)state;
	assert_int_equal(wire_check(&m.r.head), 0);
	assert_int_equal(wire_moved_off(&m.r, 0xf), 0xf);
	assert_int_equal(wire_moved_off(&m.r, 0x1f), 0x10f);
	assert_int_equal(wire_moved_off(&m.r, 0x20), 0);
	assert_int_equal(wire_moved_off(&m.r, 0x21), 0x21);
	m.moved[1].from = 0x1f; /* over the one before */
	assert_int_not_equal(wire_check(&m.r.head), 0);
	m.moved[1].from = 0x20;
	m.moved[1].len = 0;
	assert_int_not_equal(wire_check(&m.r.head), 0);
	m.moved[1].len = UINT64_MAX;
	assert_int_not_equal(wire_check(&m.r.head), 0);
	m.moved[1].len = 1;
	m.moved[0].to = UINT64_MAX;
	assert_int_not_equal(wire_check(&m.r.head), 0);
	m.moved[0].to = 0;
	m.r.nr_moved = 3;
	assert_int_not_equal(wire_check(&m.r.head), 0);
	m.r.nr_moved = UINT32_MAX;
	assert_int_not_equal(wire_check(&m.r.head), 0);
}

static void test_place(void **state)
{
	const struct wire_place good = {
		.head = HEAD(wire_place, WIRE_PLACE, 0), .vaddr = 1, .elf = 2, .len = 3
	};
	struct wire_place r = good;

	(void)state;
	assert_int_equal(wire_check(&r.head), 0);
	LIE(len, 0);
	LIE(len, UINT64_MAX);
	LIE(vaddr, UINT64_MAX);
	LIE(elf, UINT64_MAX - 1);
	LIE(head.len, sizeof(r) - 8);
}
#undef LIE

static void test_image(void **state)
{
	struct {
		struct wire_image r;
		char text[16];
	} i = { .r = { .head = HEAD(wire_image, WIRE_IMAGE, 16),
		       .facility_len = 5,
		       .host_len = 5,
		       .exe_len = 6 } };

	(void)state;
	assert_int_equal(wire_check(&i.r.head), 0);
	i.r.exe_len = 7;
	assert_int_not_equal(wire_check(&i.r.head), 0);
	i.r.facility_len = i.r.host_len = i.r.exe_len = UINT16_MAX;
	assert_int_not_equal(wire_check(&i.r.head), 0);
}

static void test_run(void **state)
{
	struct wire_run r = {
		.head = HEAD(wire_run, WIRE_RUN, 0), .vaddr = 1, .img_off = 1, .len = UINT64_MAX - 1
	};

	(void)state;
	assert_int_equal(wire_check(&r.head), 0);
	r.vaddr = 2;
	assert_int_not_equal(wire_check(&r.head), 0);
	r.vaddr = 1;
	r.img_off = 2;
	assert_int_not_equal(wire_check(&r.head), 0);
	r.len = 0;
	assert_int_not_equal(wire_check(&r.head), 0);
}

/* No type is read beyond the length that its head gives, whatever stands there. */
static void test_every_type_cut_short(void **state)
{
	static const uint32_t min_len[20] = {
		[WIRE_ROUTINE] = sizeof(struct wire_routine),
		[WIRE_FACILITY] = sizeof(struct wire_facility_rec),
		[WIRE_RANGE] = sizeof(struct wire_range_rec),
		[WIRE_BYTES] = sizeof(struct wire_bytes),
		[WIRE_IMAGE] = sizeof(struct wire_image),
		[WIRE_RUN] = sizeof(struct wire_run),
		[WIRE_REPLACES] = sizeof(struct wire_replaces),
	};

	(void)state;
	for (uint16_t type = 0; type < 20; type++)
		for (uint32_t len = 8; len <= 56; len += 8)
			for (int fill = 0; fill < 2; fill++) {
				struct wire_head *h = malloc(len);

				assert_non_null(h);
				memset(h, fill ? 0xff : 0, len);
				*h = (struct wire_head){ .len = len, .type = type };
				if (len < min_len[type])
					assert_int_equal(wire_check(h), -EINVAL);
				else
					(void)wire_check(h);
				free(h);
			}
}

static void test_unknown_types_pass(void **state)
{
	struct wire_head h = { .len = 8, .type = 4000 };

	(void)state;
	assert_int_equal(wire_check(&h), 0);
	h.type = WIRE_PAD;
	assert_int_equal(wire_check(&h), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facility),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_retire),
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_object),
		cmocka_unit_test(test_replaces),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_image),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_every_type_cut_short),
		cmocka_unit_test(test_unknown_types_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
