/* SPDX-License-Identifier: BSD-2-Clause */
/* What a listing shows where there is nothing to disassemble. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "listing.h"

/* Bytes without a disassembler are not the same as no bytes. */
static void test_no_disassembler(void **state)
{
	uint8_t code[8] = { 0 };
	struct analysis_unit u = { .kind = ANALYSIS_UNIT_BYTES, .vaddr = 0x1004 };
	struct analysis_listing l = { .symbol = { "f", 0x1000, 16 }, .code = code, .code_len = 8 };
	char text[64];

	(void)state;
	analysis_unit_text(&l, &u, text, sizeof(text));
	assert_string_equal(text, "(this code cannot be disassembled here)");
	u.vaddr = 0x1008;
	analysis_unit_text(&l, &u, text, sizeof(text));
	assert_string_equal(text, "(no bytes of this code)");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_disassembler) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
