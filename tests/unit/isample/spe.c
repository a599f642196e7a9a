/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of Arm's SPE are decoded, cut and hostile ones too. */
#include <string.h>

#include "told.h"

/* A branch of a real machine's, as others have shown its bytes: "B COND, TGT 0, RETIRED NOT-TAKEN,
 * PC ffffadc04120 el0, LAT 0 TOT, TS". */
static const uint8_t branch[] = { 0x4a, 0x01, 0xb1, 0,	  0,	0,    0,    0,	  0,
				  0,	0x80, 0x42, 0x42, 0xb0, 0x20, 0x41, 0xc0, 0xad,
				  0xff, 0xff, 0,    0x80, 0x98, 0,    0,    0x71, 0x80,
				  0x3e, 0xf7, 0x46, 0xe9, 0x01, 0,    0 };

static void test_a_branch_of_a_real_machine(void **state)
{
	struct isample_spe s;
	size_t pos = 0;

	(void)state;
	assert_int_equal(isample_spe_next(branch, sizeof(branch), 0, &pos, &s), 1);
	assert_int_equal(pos, sizeof(branch));
	assert_true(s.has_pc && s.has_time && !s.has_context && !s.bad);
	assert_int_equal(s.pc, 0xffffadc04120);
	assert_int_equal(s.el, 0);
	assert_int_equal(s.time, 2101429616256);
	assert_told(&s.sample, B(RETIRED) | B(VALID) | B(BRANCH) | B(COND),
		    B(TAKEN) | B(MISPREDICT) | B(CBRMISPREDICT) | B(LOAD) | B(TRAP));
	assert_untold(&s.sample, B(DCMISS) | B(DTB2MISS) | B(LLCMISS) | C(XLAT));
	assert_int_equal(s.sample.known & C(INFLIGHT), C(INFLIGHT));
	assert_int_equal(isample_spe_next(branch, sizeof(branch), 0, &pos, &s), 0);
}

static void test_padding_and_alignment(void **state)
{
	uint8_t data[256] = { 0 };
	struct isample_spe s;
	size_t pos = 0;

	(void)state;
	/* The long form of padding: up to a multiple of 4 bytes. */
	data[4] = 0x21;
	memcpy(data + 64, branch, sizeof(branch));
	assert_int_equal(isample_spe_next(data, sizeof(data), 0, &pos, &s), 1);
	assert_false(s.bad);
	assert_int_equal(s.pc, 0xffffadc04120);
	assert_int_equal(isample_spe_next(data, sizeof(data), 0, &pos, &s), 0);
	assert_int_equal(pos, sizeof(data));
}

static void test_kernel_addresses_are_whole(void **state)
{
	const uint8_t data[] = { 0xb0, 0x10, 0x20, 0x30, 0, 0, 0x80, 0xff, 0xa0, 0x01 };
	struct isample_spe s;
	size_t pos = 0;

	(void)state;
	assert_int_equal(isample_spe_next(data, sizeof(data), 0, &pos, &s), 1);
	assert_int_equal(s.pc, 0xffff800000302010);
	assert_int_equal(s.el, 1);
	assert_false(s.has_time);
}

static void test_cut_ones_are_bad(void **state)
{
	struct isample_spe s;

	(void)state;
	for (size_t len = 1; len < sizeof(branch); len++) {
		size_t pos = 0;

		assert_int_equal(isample_spe_next(branch, len, 0, &pos, &s), 1);
		assert_true(s.bad);
		assert_int_equal(s.sample.bits, B(UNREADABLE));
		assert_int_equal(pos, len);
	}
}

static void test_behind_a_bad_one_comes_a_good_one(void **state)
{
	uint8_t data[3 + 1 + sizeof(branch)] = { 0xff, 0xfe, 0x80, 0x01 };
	struct isample_spe s;
	size_t pos = 0;

	(void)state;
	memcpy(data + 4, branch, sizeof(branch));
	assert_int_equal(isample_spe_next(data, sizeof(data), 0, &pos, &s), 1);
	assert_true(s.bad);
	assert_int_equal(isample_spe_next(data, sizeof(data), 0, &pos, &s), 1);
	assert_false(s.bad);
	assert_int_equal(s.pc, 0xffffadc04120);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_branch_of_a_real_machine),
		cmocka_unit_test(test_padding_and_alignment),
		cmocka_unit_test(test_kernel_addresses_are_whole),
		cmocka_unit_test(test_cut_ones_are_bad),
		cmocka_unit_test(test_behind_a_bad_one_comes_a_good_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
