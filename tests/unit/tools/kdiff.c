/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel does to its own code, told from two states of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <string.h>

#include "kdiff.h"

#define NOP5  0x0f, 0x1f, 0x44, 0x00, 0x00
#define CALL5 0xe8, 0x10, 0x20, 0x00, 0x00
#define JMP5  0xe9, 0x10, 0x00, 0x00, 0x00
#define ENDBR 0xf3, 0x0f, 0x1e, 0xfa
#define PUSH  0x53
#define RET   0xc3

static void differs(const uint8_t *was, const uint8_t *is, size_t len, size_t at, size_t place_len,
		    size_t bytes, enum kdiff_cause cause)
{
	struct kdiff_place p;

	assert_true(kdiff_next(EM_X86_64, was, is, len, 0, &p));
	assert_int_equal(p.at, at);
	assert_int_equal(p.len, place_len);
	assert_int_equal(p.bytes, bytes);
	assert_string_equal(kdiff_causes[p.cause], kdiff_causes[cause]);
	assert_false(kdiff_next(EM_X86_64, was, is, len, at + place_len, &p));
}

static void test_equal(void **state)
{
	static const uint8_t code[] = { ENDBR, PUSH, CALL5, RET };
	struct kdiff_place p;

	(void)state;
	assert_false(kdiff_next(EM_X86_64, code, code, sizeof(code), 0, &p));
	assert_false(kdiff_next(EM_X86_64, code, code, 0, 0, &p));
}

static void test_static_key(void **state)
{
	static const uint8_t off[] = { PUSH, NOP5, RET }, on[] = { PUSH, JMP5, RET };
	static const uint8_t off2[] = { PUSH, 0x66, 0x90, RET }, on2[] = { PUSH, 0xeb, 0x01, RET };

	(void)state;
	differs(off, on, sizeof(on), 1, 5, 3, KDIFF_KEY); /* two zero bytes are in both */
	differs(on, off, sizeof(on), 1, 5, 3, KDIFF_KEY);
	differs(off2, on2, sizeof(on2), 1, 2, 2, KDIFF_KEY);
}

static void test_tracing(void **state)
{
	static const uint8_t file[] = { CALL5, PUSH, RET }, run[] = { NOP5, PUSH, RET };
	static const uint8_t marked[] = { ENDBR, CALL5, RET }, marked_run[] = { ENDBR, NOP5, RET };

	(void)state;
	differs(file, run, sizeof(run), 0, 5, 3, KDIFF_TRACE);
	differs(marked, marked_run, sizeof(marked), 4, 5, 3, KDIFF_TRACE);
	differs(marked_run, marked, sizeof(marked), 4, 5, 3, KDIFF_TRACE);
}

static void test_static_call(void **state)
{
	static const uint8_t a[] = { PUSH, CALL5, RET };
	static const uint8_t b[] = { PUSH, 0xe8, 0x10, 0x33, 0x00, 0x00, RET };
	static const uint8_t c[] = { PUSH, NOP5, RET };

	(void)state;
	differs(a, b, sizeof(a), 1, 5, 1, KDIFF_CALL);
	differs(a, c, sizeof(a), 1, 5, 3, KDIFF_CALL);
}

/* "clac" in the place of three nops, and instructions of other lengths. */
static void test_other(void **state)
{
	static const uint8_t a[] = { PUSH, 0x90, 0x90, 0x90, RET };
	static const uint8_t b[] = { PUSH, 0x0f, 0x01, 0xca, RET };
	static const uint8_t c[] = { PUSH, 0x48, 0x89, 0xf8, 0x90, 0x90, RET };
	static const uint8_t d[] = { PUSH, 0x90, 0x90, 0x48, 0x89, 0xf8, RET };

	(void)state;
	differs(a, b, sizeof(a), 1, 3, 3, KDIFF_OTHER);
	differs(c, d, sizeof(c), 1, 5, 5, KDIFF_OTHER);
}

/* No instruction at all: it still ends, and finds what differs, the last byte too. */
static void test_data(void **state)
{
	uint8_t a[64], b[64];
	struct kdiff_place p;
	size_t bytes = 0;

	(void)state;
	memset(a, 0x06, sizeof(a));
	memcpy(b, a, sizeof(b));
	b[7] = b[63] = 0x0e;
	for (size_t at = 0; kdiff_next(EM_X86_64, a, b, sizeof(a), at, &p); at = p.at + p.len) {
		assert_true(p.len > 0 && p.at + p.len <= sizeof(a));
		bytes += p.bytes;
	}
	assert_int_equal(bytes, 2);
}

static void test_aarch64(void **state)
{
	static const uint32_t was[] = { 0xd503245f, 0xd503201f, 0xd503201f, 0xaa0003e1,
					0xd503201f };
	static const uint32_t is[] = { 0xd503245f, 0xd503201f, 0x94000010, 0xaa0003e1, 0x14000004 };
	struct kdiff_place p;

	(void)state;
	assert_true(kdiff_next(EM_AARCH64, (const void *)was, (const void *)is, sizeof(is), 0, &p));
	assert_int_equal(p.at, 8);
	assert_int_equal(p.cause, KDIFF_TRACE);
	assert_true(
		kdiff_next(EM_AARCH64, (const void *)was, (const void *)is, sizeof(is), 12, &p));
	assert_int_equal(p.at, 16);
	assert_int_equal(p.cause, KDIFF_KEY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal),	cmocka_unit_test(test_static_key),
		cmocka_unit_test(test_tracing), cmocka_unit_test(test_static_call),
		cmocka_unit_test(test_other),	cmocka_unit_test(test_data),
		cmocka_unit_test(test_aarch64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
