/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

static void append(void **state)
{
	struct base_buf b = { 0 };

	(void)state;
	assert_int_equal(base_buf_append(&b, NULL, 0), 0);
	assert_int_equal(b.len, 0);
	for (unsigned int i = 0; i < 10000; i++) {
		uint8_t pair[2] = { (uint8_t)i, (uint8_t)(i >> 8) };

		assert_int_equal(base_buf_append(&b, pair, 2), 0);
	}
	assert_int_equal(b.len, 20000);
	assert_true(b.cap >= b.len && b.cap < 3 * b.len);
	for (unsigned int i = 0; i < 10000; i++)
		assert_int_equal(b.data[2 * i] | b.data[2 * i + 1] << 8, i);
	base_buf_release(&b);
	assert_null(b.data);
	assert_int_equal(b.cap, 0);
	base_buf_release(&b);
}

static void numbers(void **state)
{
	static const uint8_t want[] = {
		0xef, 0xbe, 0xad, 0xde, 0, 0xe5, 0x8e, 0x26, 0x7f, 0x80, 1
	};
	struct base_buf b = { 0 };

	(void)state;
	assert_int_equal(base_buf_append_le(&b, 0xdeadbeef, 4), 0);
	assert_int_equal(base_buf_append_leb128(&b, 0), 0);
	assert_int_equal(base_buf_append_leb128(&b, 624485), 0);
	assert_int_equal(base_buf_append_leb128(&b, 127), 0);
	assert_int_equal(base_buf_append_leb128(&b, 128), 0);
	assert_int_equal(b.len, sizeof(want));
	assert_memory_equal(b.data, want, sizeof(want));
	base_buf_clear(&b);
	assert_int_equal(base_buf_append_leb128(&b, UINT64_MAX), 0);
	assert_int_equal(b.len, 10);
	assert_memory_equal(b.data, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
	base_buf_clear(&b);
	assert_int_equal(base_buf_append_le(&b, UINT64_MAX - 1, 8), 0);
	assert_int_equal(b.len, 8);
	assert_memory_equal(b.data, "\xfe\xff\xff\xff\xff\xff\xff\xff", 8);
	base_buf_release(&b);
}

static void extend_zeroes(void **state)
{
	struct base_buf b = { 0 };
	uint8_t *p;
	void *out;

	(void)state;
	assert_int_equal(base_buf_extend(&b, 0, &out), 0);
	assert_int_equal(base_buf_append(&b, "xxxxxxxxxxxxxxxx", 16), 0);
	base_buf_clear(&b);
	assert_int_equal(b.len, 0);
	assert_int_equal(base_buf_append(&b, "y", 1), 0);
	assert_int_equal(base_buf_extend(&b, 15, &out), 0);
	p = out;
	assert_ptr_equal(p, b.data + 1);
	for (int i = 0; i < 15; i++)
		assert_int_equal(p[i], 0);
	assert_int_equal(b.data[0], 'y');
	assert_int_equal(base_buf_extend(&b, 100, NULL), 0);
	assert_int_equal(b.len, 116);
	base_buf_release(&b);
}

static void print(void **state)
{
	struct base_buf b = { 0 };

	(void)state;
	assert_int_equal(base_buf_printf(&b, "%s", ""), 0);
	assert_int_equal(b.len, 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(base_buf_printf(&b, "%d,", i % 10), 0);
	assert_int_equal(b.len, 200);
	assert_memory_equal(b.data, "0,1,2,3,4,5,6,7,8,9,0,", 22);
	assert_int_equal(b.data[200], 0);
	assert_int_equal(base_buf_printf(&b, "%300d", 7), 0);
	assert_int_equal(b.len, 500);
	assert_int_equal(b.data[499], '7');
	base_buf_release(&b);
}

static void lengths_that_wrap(void **state)
{
	struct base_buf b = { 0 };
	void *out;

	(void)state;
	assert_int_equal(base_buf_append(&b, "abc", 3), 0);
	assert_int_equal(base_buf_extend(&b, SIZE_MAX, &out), -ENOMEM);
	assert_int_equal(base_buf_extend(&b, SIZE_MAX - 3, &out), -ENOMEM);
	assert_int_equal(base_buf_extend(&b, (size_t)PTRDIFF_MAX, &out), -ENOMEM);
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "abc", 3);
	base_buf_release(&b);
}

static void grow(void **state)
{
	size_t cap = 0, moves = 0;
	uint64_t *v = NULL;

	(void)state;
	for (size_t nr = 0; nr < 5000; nr++) {
		size_t before = cap;

		assert_int_equal(base_grow(&v, &cap, nr + 1, sizeof(*v)), 0);
		assert_true(cap > nr);
		moves += cap != before;
		v[nr] = nr;
	}
	assert_true(moves < 15);
	for (size_t i = 0; i < 5000; i++)
		assert_int_equal(v[i], i);
	free(v);
}

static void grow_fails_untouched(void **state)
{
	uint64_t *v = NULL, *before;
	size_t cap = 0, cap_before;

	(void)state;
	assert_int_equal(base_grow(&v, &cap, 1, sizeof(*v)), 0);
	before = v;
	cap_before = cap;
	v[0] = 42;
	assert_int_equal(base_grow(&v, &cap, SIZE_MAX, sizeof(*v)), -ENOMEM);
	assert_int_equal(base_grow(&v, &cap, SIZE_MAX / 8 + 2, sizeof(*v)), -ENOMEM);
	assert_int_equal(base_grow(&v, &cap, SIZE_MAX / 16 + 1, sizeof(*v)), -ENOMEM);
	assert_ptr_equal(v, before);
	assert_int_equal(cap, cap_before);
	assert_int_equal(v[0], 42);
	free(v);
}

static void arithmetic(void **state)
{
	uint32_t v;

	(void)state;
	assert_true(base_add_overflow(UINT32_MAX, 1u, &v));
	assert_false(base_add_overflow(UINT32_MAX - 1, 1u, &v));
	assert_int_equal(v, UINT32_MAX);
	assert_true(base_mul_overflow(1u << 16, 1u << 16, &v));
	assert_int_equal(base_align_up(0, 8), 0);
	assert_int_equal(base_align_up(1, 8), 8);
	assert_int_equal(base_align_up(8, 8), 8);
	assert_int_equal(base_align_up(4097, 4096), 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(append),
		cmocka_unit_test(extend_zeroes),
		cmocka_unit_test(print),
		cmocka_unit_test(lengths_that_wrap),
		cmocka_unit_test(grow),
		cmocka_unit_test(grow_fails_untouched),
		cmocka_unit_test(arithmetic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
