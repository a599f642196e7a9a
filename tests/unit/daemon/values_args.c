/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments at calls, direct and through a stub. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record.h"
#include "values.h"
#include "values_args.h"

enum { PROCEDURE = 0x40, STUB = 0x50, INSNS = 10 };

#if defined(__aarch64__)
/* mov x0, #5; bl procedure; mov x0, #7; bl stub; svc #0 */
static const uint8_t code[] = { 0xa0, 0x00, 0x80, 0xd2, 0x0f, 0x00, 0x00, 0x94, 0xe0, 0x00,
				0x80, 0xd2, 0x11, 0x00, 0x00, 0x94, 0x01, 0x00, 0x00, 0xd4 };
/* mov x1, x0; ret */
static const uint8_t procedure[] = { 0xe1, 0x03, 0x00, 0xaa, 0xc0, 0x03, 0x5f, 0xd6 };
/* ldr x16, [x17]; br x16 */
static const uint8_t stub[] = { 0x30, 0x02, 0x40, 0xf9, 0x00, 0x02, 0x1f, 0xd6 };
enum { FIRST_RETURN = 8, SECOND_RETURN = 16, POINTER = 17, STACK = 31 };
#else
/* mov $5, %edi; call procedure; mov $7, %edi; call stub; syscall */
static const uint8_t code[] = { 0xbf, 5, 0, 0, 0,    0xe8, 0x36, 0, 0, 0,    0xbf,
				7,    0, 0, 0, 0xe8, 0x3c, 0,	 0, 0, 0x0f, 0x05 };
/* mov %edi, %eax; ret */
static const uint8_t procedure[] = { 0x89, 0xf8, 0xc3 };
/* endbr64; jmp *data(%rip) */
static const uint8_t stub[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xa6, 0xff, 0, 0 };
enum { FIRST_RETURN = 0xa, SECOND_RETURN = 0x14, POINTER = 3, STACK = 7 };
#endif

static struct record record;

static void fill(void)
{
	uint64_t target = RECORD_CODE + PROCEDURE;

	memset(&record, 0, sizeof(record));
	assert_int_equal(vtrace_blocks_new(VALUES_ARCH, &record.blocks), 0);
	memcpy(record.code, code, sizeof(code));
	memcpy(record.code + PROCEDURE, procedure, sizeof(procedure));
	memcpy(record.code + STUB, stub, sizeof(stub));
	memcpy(record.data, &target, sizeof(target));
	record.w.r[POINTER] = RECORD_DATA;
	record.w.r[STACK] = RECORD_DATA + 0x800;
}

static void expect_begin(struct vtrace_replay *r, struct values_args *a, struct vtrace_entry *e,
			 uint64_t pc, uint64_t first, uint64_t ret)
{
	bool begins = false;

	while (!begins && vtrace_replay_next(r, e) > 0) {
		begins = values_args_begin(a, e);
		if (begins) {
			assert_int_equal(e->pc, RECORD_CODE + pc);
			assert_true(a->known[0]);
			assert_int_equal(a->r[0], first);
			assert_int_equal(a->ret, RECORD_CODE + ret);
		}
		values_args_next(a, e);
	}
	assert_true(begins);
}

static void test_calls(void **state)
{
	struct vtrace_replay r;
	struct vtrace_state s;
	struct values_args a = { 0 };
	struct vtrace_entry e;

	(void)state;
	fill();
	assert_int_equal(record_run(&record, &s, VTRACE_LOG_READS, 64), VTRACE_SYSTEM);
	assert_int_equal(s.nr_insns, INSNS);
	assert_int_equal(vtrace_replay_init(&r, &record.w, record.words, record_block, &record), 0);
	expect_begin(&r, &a, &e, PROCEDURE, 5, FIRST_RETURN);
	expect_begin(&r, &a, &e, STUB, 7, SECOND_RETURN);
	expect_begin(&r, &a, &e, PROCEDURE, 7, SECOND_RETURN);
	/* To return is not to begin. */
	while (vtrace_replay_next(&r, &e) > 0) {
		assert_false(values_args_begin(&a, &e));
		values_args_next(&a, &e);
	}
	vtrace_blocks_free(record.blocks);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(values_of_vprof(0), "values");
	for (int i = 0; i < VALUES_NR_ARGS; i++)
		assert_int_equal(values_arg_of(values_of_vprof((size_t)i + 1)), i);
	assert_null(values_of_vprof(VALUES_NR_ARGS + 1));
	assert_int_equal(values_arg_of("values"), -1);
	assert_int_equal(values_arg_of("values.arg"), -1);
	assert_int_equal(values_arg_of("values.arg9"), -1);
	assert_int_equal(values_arg_of("values.arg01"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
