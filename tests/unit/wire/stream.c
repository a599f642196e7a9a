/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire.h"

static _Alignas(8) uint8_t bytes[256];

static void put(size_t at, uint32_t len, uint16_t type)
{
	struct wire_head h = { .len = len, .type = type };

	memcpy(bytes + at, &h, sizeof(h));
}

static void test_steps_through(void **state)
{
	const struct wire_head *h;
	size_t nr = 0;

	(void)state;
	put(0, 8, WIRE_PAD);
	put(8, 64, 999); /* unknown: the caller skips it */
	put(72, 24, WIRE_FACILITY);
	WIRE_FOR_EACH (h, bytes, 96, pos) {
		static const uint16_t types[] = { WIRE_PAD, 999, WIRE_FACILITY };

		assert_true(nr < 3);
		assert_int_equal(h->type, types[nr++]);
	}
	assert_int_equal(nr, 3);
}

/* Every cut: whole records come, then NULL with the position of what is malformed. */
static void test_truncation(void **state)
{
	(void)state;
	put(0, 16, WIRE_PAD);
	put(16, 32, WIRE_PAD);
	for (size_t len = 0; len <= 48; len++) {
		size_t pos = 0, last = len < 16 ? 0 : len < 48 ? 16 : 48;

		while (wire_next(bytes, len, &pos))
			;
		assert_int_equal(pos, last);
		assert_true((pos == len) == (len == 0 || len == 16 || len == 48));
	}
}

static void test_lying_lengths(void **state)
{
	static const uint32_t lies[] = {
		0,   1,	  4,	       7,	    9,		 12,
		100, 264, 0x80000000u, 0xfffffff8u, 0xffffffffu, WIRE_RECORD_MAX + 8
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		size_t pos = 0;

		put(0, lies[i], WIRE_PAD);
		assert_null(wire_next(bytes, sizeof(bytes), &pos));
		assert_int_equal(pos, 0);
	}
}

static void test_position_behind_the_end(void **state)
{
	size_t pos = 57;

	(void)state;
	assert_null(wire_next(bytes, 56, &pos));
	pos = SIZE_MAX;
	assert_null(wire_next(bytes, 56, &pos));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_through),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_lying_lengths),
		cmocka_unit_test(test_position_behind_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
