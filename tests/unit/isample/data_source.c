/* SPDX-License-Identifier: BSD-2-Clause */
#include "told.h"

/* Words as perf 6.1 shows them for accesses of known kinds. */
static struct isample decode(uint64_t source)
{
	struct isample s = { 0 };

	isample_data_source(&s, source);
	return s;
}

static void test_a_hit_in_the_first_level(void **state)
{
	/* OP LOAD, LVL L1 hit, SNP None, TLB L1 or L2 hit, LCK No, BLK N/A */
	struct isample s =
		decode(2 | (2 | 8) << 5 | 2 << 19 | 1 << 24 | 0x1aull << 26 | 1ull << 33);

	(void)state;
	assert_told(&s, B(LOAD), B(STORE) | B(DCMISS) | B(LLCMISS) | B(MEMORY) | B(DTB2MISS));
	assert_untold(&s, B(DTBMISS) | B(BLOCKED) | C(LATENCY));
}

static void test_nothing_is_told_by_nothing(void **state)
{
	struct isample s = decode(0);

	(void)state;
	assert_int_equal(s.known, 0);
	/* All fields N/A, as of events that are of no access. */
	s = decode(1 | 1 << 5 | 1 << 19 | 1 << 24 | 1 << 26);
	assert_int_equal(s.known, 0);
}

static void test_a_line_on_its_way(void **state)
{
	struct isample s = decode(2 | (2 | 0x10) << 5);

	(void)state;
	assert_told(&s, B(LOAD) | B(DCMISS), 0);
	assert_untold(&s, B(L2MISS) | B(LLCMISS) | B(MEMORY));
}

static void test_another_cores_modified_line(void **state)
{
	struct isample s = decode(2 | (2 | 0x40) << 5 | 0x10 << 19);

	(void)state;
	assert_told(&s, B(DCMISS) | B(L2MISS) | B(OTHERCACHE) | B(MODIFIED),
		    B(LLCMISS) | B(REMOTE));
}

static void test_weights(void **state)
{
	struct isample s = { 0 };

	(void)state;
	isample_weight(&s, 5 | 6ull << 32 | 7ull << 48, true);
	assert_int_equal(s.counter[ISAMPLE_LATENCY], 5);
	assert_int_equal(s.counter[ISAMPLE_INFLIGHT], 6);
	assert_int_equal(s.counter[ISAMPLE_RETDELAY], 7);
	s = (struct isample){ 0 };
	isample_weight(&s, 1ull << 40, false);
	assert_int_equal(s.known, C(LATENCY));
	assert_int_equal(s.counter[ISAMPLE_LATENCY], UINT32_MAX);
	s = (struct isample){ 0 };
	isample_weight(&s, 0, true);
	assert_int_equal(s.known, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_hit_in_the_first_level),
		cmocka_unit_test(test_nothing_is_told_by_nothing),
		cmocka_unit_test(test_a_line_on_its_way),
		cmocka_unit_test(test_another_cores_modified_line),
		cmocka_unit_test(test_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
