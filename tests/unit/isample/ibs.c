/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers of AMD's IBS, as a raw sample has them, are decoded. */
#include <string.h>

#include "told.h"

struct raw {
	uint32_t caps;
	uint64_t reg[8];
} __attribute__((packed));

static void test_a_load_from_far_memory(void **state)
{
	/* DataSrc 3, remote node; LdOp, DcMiss, L2Miss, both TLB levels missed, latency 300,
	 * TLB 40. */
	const struct raw raw = { 0x1bf,
				 { 0, 0x401000, 7 | 90 << 16, 3 | 1 << 4,
				   1 | 3 << 2 | 1 << 7 | 1 << 20 | 300ull << 32 | 40ull << 48 } };
	struct isample s = { 0 };

	(void)state;
	assert_int_equal(isample_ibs_op(&s, &raw, sizeof(raw)), 0);
	assert_told(&s,
		    B(RETIRED) | B(LOAD) | B(DCMISS) | B(L2MISS) | B(LLCMISS) | B(MEMORY) |
			    B(REMOTE) | B(DTBMISS) | B(DTB2MISS),
		    B(STORE) | B(BRANCH) | B(TAKEN) | B(FETCH) | B(OTHERCACHE));
	assert_untold(&s, B(TRAP) | B(COND) | B(CBRMISPREDICT) | B(ICMISS) | B(MODIFIED));
	assert_int_equal(s.counter[ISAMPLE_COMPLETED], 7);
	assert_int_equal(s.counter[ISAMPLE_INFLIGHT], 90);
	assert_int_equal(s.counter[ISAMPLE_LATENCY], 300);
	assert_int_equal(s.counter[ISAMPLE_XLAT], 40);
}

static void test_zen4_names_more_sources(void **state)
{
	/* 8 and 12 in two fields, which older ones do not have: a source that these do not name. */
	struct raw raw = { 0x1bf | 1 << 11, { 0, 0, 0, 1 << 6, 1 | 1 << 7 | 1 << 20 } };
	struct isample s = { 0 };

	(void)state;
	assert_int_equal(isample_ibs_op(&s, &raw, sizeof(raw)), 0);
	assert_told(&s, B(MEMORY), B(REMOTE));
	raw.reg[3] = 4 | 1 << 6;
	s = (struct isample){ 0 };
	assert_int_equal(isample_ibs_op(&s, &raw, sizeof(raw)), 0);
	assert_told(&s, B(MEMORY) | B(REMOTE), 0);
	raw.caps = 0x1bf;
	s = (struct isample){ 0 };
	assert_int_equal(isample_ibs_op(&s, &raw, sizeof(raw)), 0);
	assert_untold(&s, B(MEMORY) | B(REMOTE) | B(LLCMISS));
}

static void test_no_access_tells_nothing_of_caches(void **state)
{
	const struct raw raw = { 0x1bf, { 0, 0, 1ull << 35 | 1ull << 37, 3, 1 << 7 } };
	struct isample s = { 0 };

	(void)state;
	assert_int_equal(isample_ibs_op(&s, &raw, sizeof(raw)), 0);
	assert_told(&s, B(BRANCH) | B(TAKEN), B(MISPREDICT) | B(RETURN));
	assert_untold(&s, B(DCMISS) | B(MEMORY) | C(LATENCY) | C(XLAT));
}

static void test_an_invalid_address_voids_all(void **state)
{
	const struct raw raw = { 0x1bf, { 0, 0, 1ull << 38 | 5, 0, 1 } };
	struct isample s = { 0 };

	(void)state;
	assert_int_equal(isample_ibs_op(&s, &raw, sizeof(raw)), 0);
	assert_int_equal(s.known, B(INEXACT));
	assert_int_equal(s.bits, B(INEXACT));
}

static void test_a_fetch(void **state)
{
	const struct raw raw = { 0x3ff, { 123ull << 32 | 5ull << 49 | 3ull << 55, 0, 0, 77 } };
	struct isample s = { 0 };

	(void)state;
	assert_int_equal(isample_ibs_fetch(&s, &raw, 4 + 3 * 8), 0);
	assert_told(&s, B(FETCH) | B(ICMISS) | B(ITBMISS) | B(ITB2MISS), B(FETCHED) | B(IC2MISS));
	assert_untold(&s, C(ITBLAT) | B(RETIRED) | B(LOAD) | B(IC3MISS));
	assert_int_equal(s.counter[ISAMPLE_FETCHLAT], 123);
	assert_int_equal(isample_ibs_fetch(&s, &raw, sizeof(raw)), 0);
	assert_int_equal(s.counter[ISAMPLE_ITBLAT], 77);
}

static void test_short_ones_are_refused(void **state)
{
	const struct raw raw = { 0 };
	struct isample s = { 0 };

	(void)state;
	assert_int_equal(isample_ibs_op(&s, &raw, 4 + 7 * 8 - 1), -DCPI_EFORMAT);
	assert_int_equal(isample_ibs_op(&s, NULL, 0), -DCPI_EFORMAT);
	assert_int_equal(isample_ibs_fetch(&s, &raw, 4 + 3 * 8 - 1), -DCPI_EFORMAT);
	assert_int_equal(s.known, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_load_from_far_memory),
		cmocka_unit_test(test_zen4_names_more_sources),
		cmocka_unit_test(test_no_access_tells_nothing_of_caches),
		cmocka_unit_test(test_an_invalid_address_voids_all),
		cmocka_unit_test(test_a_fetch),
		cmocka_unit_test(test_short_ones_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
