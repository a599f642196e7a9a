/* SPDX-License-Identifier: BSD-2-Clause */
/* Layouts of CPython: taken where its own functions read the same places, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "python_layout.h"

enum { RUNTIME = 0x10000, CODE_TYPE = 0x9000, FUNCTIONS = 0x4000 };

#define LOAD(disp)	0x48, 0x8b, 0x47, (disp)       /* mov disp(%rdi), %rax */
#define LOAD_AGAIN(d)	0x48, 0x8b, 0x40, (d)	       /* mov d(%rax), %rax */
#define LOAD_START	0x48, 0x8b, 0x00	       /* mov (%rax), %rax */
#define LOAD_GLOBAL(d)	0x48, 0x8b, 0x05, BYTES4(d)    /* mov d(%rip), %rax */
#define LEA_AGAIN(disp) 0x48, 0x8d, 0x90, BYTES4(disp) /* lea disp(%rax), %rdx */
#define OWNER(disp)	0x80, 0x78, (disp), 1	       /* cmpb $1, disp(%rax) */
#define RET		0xc3
#define BYTES4(d)	(d) & 0xff, (d) >> 8 & 0xff, (d) >> 16 & 0xff, (d) >> 24 & 0xff

static struct python_part parts[PYTHON_NR_SYMBOLS];

static void put(enum python_symbol symbol, uint64_t vaddr, const void *bytes, size_t len)
{
	parts[symbol].vaddr = vaddr;
	parts[symbol].len = len;
	memcpy(parts[symbol].bytes, bytes, len);
}

#define PUT(symbol, ...)                                                                           \
	do {                                                                                       \
		static const uint8_t bytes[] = { __VA_ARGS__ };                                    \
		put(symbol, FUNCTIONS + 0x100 * (symbol), bytes, sizeof(bytes));                   \
	} while (0)

static void put_version(uint64_t version)
{
	put(PYTHON_VERSION, 0x100, &version, sizeof(version));
	parts[PYTHON_RUNTIME].vaddr = RUNTIME;
	parts[PYTHON_CODE_TYPE].vaddr = CODE_TYPE;
}

/* As compilers make them of 3.11, where all is in one file. */
static int setup(void **state)
{
	const uint32_t main_at = RUNTIME + 48 - (FUNCTIONS + 0x100 * PYTHON_MAIN + 7);
	uint8_t main_code[] = { LOAD_GLOBAL(0), RET };

	(void)state;
	memset(parts, 0, sizeof(parts));
	put_version(0x030b02f0);
	memcpy(main_code + 3, &main_at, sizeof(main_at));
	put(PYTHON_MAIN, FUNCTIONS + 0x100 * PYTHON_MAIN, main_code, sizeof(main_code));
	PUT(PYTHON_THREAD_HEAD, LOAD(16), RET);
	PUT(PYTHON_THREAD_NEXT, LOAD(8), RET);
	PUT(PYTHON_GET_FRAME, LOAD(56), LOAD_AGAIN(8), OWNER(69), RET);
	PUT(PYTHON_GET_CODE, LOAD(24), LOAD_AGAIN(32), RET);
	PUT(PYTHON_GET_BACK, LOAD(16), RET, LOAD_AGAIN(48), RET);
	PUT(PYTHON_GET_LASTI, LOAD(24), LOAD_AGAIN(32), LOAD_AGAIN(56), LEA_AGAIN(184), RET);
	return 0;
}

static uint16_t version(struct unwind_python *out)
{
	python_layout(parts, out);
	return out->version;
}

static void one_that_agrees_is_known(void **state)
{
	struct unwind_python p;

	(void)state;
	assert_int_equal(version(&p), UNWIND_PYTHON_3_11);
	assert_int_equal(p.main, RUNTIME + 48);
	assert_int_equal(p.current, RUNTIME + 576);
	assert_int_equal(p.code_type, CODE_TYPE);
	assert_int_equal(p.frame_instr, 56);
	assert_true(unwind_python_valid(&p));
}

/* As in shared libraries, which find the runtime by a table of addresses. */
static void the_runtime_may_be_found_by_its_pointer(void **state)
{
	struct unwind_python p;

	(void)state;
	PUT(PYTHON_MAIN, LOAD_GLOBAL(0x345678), LOAD_AGAIN(48), RET);
	assert_int_equal(version(&p), UNWIND_PYTHON_3_11);
	PUT(PYTHON_MAIN, LOAD_GLOBAL(0x345678), LOAD_AGAIN(40), RET);
	assert_int_equal(version(&p), 0);
}

static void version_3_12_has_places_of_its_own(void **state)
{
	struct unwind_python p;

	(void)state;
	put_version(0x030c01f0);
	assert_int_equal(version(&p), 0);
	PUT(PYTHON_THREAD_HEAD, LOAD(72), RET);
	PUT(PYTHON_GET_FRAME, LOAD(56), LOAD_START, OWNER(70), RET);
	PUT(PYTHON_GET_CODE, LOAD(24), LOAD_START, RET);
	PUT(PYTHON_GET_BACK, LOAD(16), RET, LOAD_AGAIN(8), RET);
	PUT(PYTHON_GET_LASTI, LOAD(24), LOAD_START, LOAD_AGAIN(56), LEA_AGAIN(192), RET);
	assert_int_equal(version(&p), UNWIND_PYTHON_3_12);
	assert_int_equal(p.current, 0);
	assert_int_equal(p.cframe_frame, 0);
	assert_int_equal(p.string_ascii, 40);
}

/* A build that keeps one of them elsewhere, lacks one, or is of another version. */
static void others_are_not_known(void **state)
{
	static const uint8_t elsewhere[] = { LOAD(100), RET };
	struct unwind_python p;

	for (size_t i = 0; i < PYTHON_NR_SYMBOLS; i++) {
		if (i == PYTHON_RUN_FRAME)
			continue;
		setup(state);
		parts[i].vaddr = 0;
		assert_int_equal(version(&p), 0);
		if (i == PYTHON_RUNTIME || i == PYTHON_CODE_TYPE)
			continue;
		setup(state);
		parts[i].len = 2;
		assert_int_equal(version(&p), 0);
		if (i == PYTHON_VERSION)
			continue;
		setup(state);
		put((enum python_symbol)i, parts[i].vaddr, elsewhere, sizeof(elsewhere));
		assert_int_equal(version(&p), 0);
	}
	setup(state);
	put_version(0x030a02f0);
	assert_int_equal(version(&p), 0);
	put_version(0x030e00f0);
	assert_int_equal(version(&p), 0);
}

/* ---- the table of 3.13 ----------------------------------------------------------------------- */

static uint64_t table[71];

static int setup_table(void **state)
{
	(void)state;
	memset(parts, 0, sizeof(parts));
	put_version(0x030d00f0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		table[i] = 1000 + i;
	memcpy(table, "xdebugpy", 8);
	table[1] = 0x030d00f0;
	table[2] = 0;
	table[45] = 8;
	table[66] = 32;
	table[68] = 32;
	table[69] = 16;
	put(PYTHON_RUNTIME, RUNTIME, table, sizeof(table));
	parts[PYTHON_RUN_FRAME].vaddr = FUNCTIONS;
	parts[PYTHON_RUN_FRAME].size = 500;
	return 0;
}

static void version_3_13_tells_its_places(void **state)
{
	struct unwind_python p;

	(void)state;
	assert_int_equal(version(&p), UNWIND_PYTHON_3_13);
	assert_int_equal(p.main, RUNTIME + 1005);
	assert_int_equal(p.code, FUNCTIONS);
	assert_int_equal(p.code_end, FUNCTIONS + 500);
	assert_int_equal(p.threads, 1009);
	assert_int_equal(p.thread_frame, 1023);
	assert_int_equal(p.frame_owner, 1033);
	assert_int_equal(p.code_bytes, 1043);
	assert_int_equal(p.string_other, 1070 + 16);
}

/* Another mark or version, threads without a lock, objects that are not as they were, offsets that
 * cannot be; a table that is cut off. */
static void other_tables_are_not_known(void **state)
{
	static const size_t words[] = { 0, 1, 2, 45, 66, 68, 69 };
	static const size_t offsets[] = { 9, 23, 43, 70 };
	struct unwind_python p;

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		setup_table(state);
		table[words[i]] ^= 1ull << 20;
		put(PYTHON_RUNTIME, RUNTIME, table, sizeof(table));
		assert_int_equal(version(&p), 0);
	}
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		setup_table(state);
		table[offsets[i]] = UNWIND_PYTHON_OFFSET_MAX;
		put(PYTHON_RUNTIME, RUNTIME, table, sizeof(table));
		assert_int_equal(version(&p), 0);
	}
	setup_table(state);
	parts[PYTHON_RUNTIME].len--;
	assert_int_equal(version(&p), 0);
}

static void bytes_that_are_no_code_are_not_believed(void **state)
{
	struct unwind_python p;

	(void)state;
	for (size_t i = PYTHON_MAIN; i < PYTHON_NR_SYMBOLS; i++) {
		memset(parts[i].bytes, 0x06, sizeof(parts[i].bytes));
		parts[i].len = sizeof(parts[i].bytes);
	}
	assert_int_equal(version(&p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_that_agrees_is_known, setup),
		cmocka_unit_test_setup(the_runtime_may_be_found_by_its_pointer, setup),
		cmocka_unit_test_setup(version_3_12_has_places_of_its_own, setup),
		cmocka_unit_test_setup(others_are_not_known, setup),
		cmocka_unit_test_setup(version_3_13_tells_its_places, setup_table),
		cmocka_unit_test_setup(other_tables_are_not_known, setup_table),
		cmocka_unit_test_setup(bytes_that_are_no_code_are_not_believed, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
