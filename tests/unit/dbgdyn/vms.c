/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls under their original names: argument order, and odd on success. */
#include "fake.h"
#include "dbgdyn_vms.h"

#include <pthread.h>
#include <unistd.h>

static struct fake fake;
static char code_a[64], code_b[32], dst_a[64], dst_b[32];

static void *answer(void *unused)
{
	struct wire_registry reg;

	fake_attach(&fake, 1);
	do {
		usleep(1000);
		fake_header(&fake, &reg);
	} while (!reg.flush_wanted);
	fake_answer(&fake, 0);
	return unused;
}

static int three_calls(void)
{
	$DESCRIPTOR(facility, "RDB");
	struct wire_registry reg;
	struct wire_range range[4];
	struct wire_facility fac;
	pthread_t daemon;
	uint64_t context = 0;

	fake_open(&fake, FAKE_SOCKET);
	CHECK(DBG$DYN_BEGIN(&facility, sizeof(code_a), (uintptr_t)code_a, sizeof(dst_a),
			    (uintptr_t)dst_a, &context) == SS$_NORMAL);
	CHECK(context != 0 && fake_take(&fake));
	CHECK(DBG$DYN_ADD(DBG$C_DST, sizeof(dst_b), (uintptr_t)dst_b, &context) % 2 == 1);
	CHECK(DBG$DYN_ADD(DBG$C_CODE, sizeof(code_b), (uintptr_t)code_b, &context) % 2 == 1);
	fake_header(&fake, &reg);
	CHECK(reg.nr_ranges == 4);
	CHECK(pread(fake.fd, &fac, sizeof(fac), (off_t)reg.facilities_off) == sizeof(fac));
	CHECK(fac.name_len == 3 && !memcmp(fac.name, "RDB", 3));
	CHECK(pread(fake.fd, range, sizeof(range), (off_t)reg.ranges_off) == sizeof(range));
	CHECK(range[0].kind == WIRE_RANGE_CODE && range[0].base == (uintptr_t)code_a);
	CHECK(range[0].len == 64 && range[1].kind == WIRE_RANGE_DST);
	CHECK(range[1].base == (uintptr_t)dst_a && range[1].len == 64);
	CHECK(range[2].kind == WIRE_RANGE_DST && range[2].base == (uintptr_t)dst_b);
	CHECK(range[3].kind == WIRE_RANGE_CODE && range[3].len == 32);
	CHECK(!pthread_create(&daemon, NULL, answer, NULL));
	CHECK(DBG$DYN_END(&context) == SS$_NORMAL && context == 0);
	pthread_join(daemon, NULL);
	CHECK(DBG$DYN_END(&context) == DBG$_REFUSED);
	fake_close(&fake);
	return 0;
}

static int failures_are_even(void)
{
	$DESCRIPTOR(facility, "RDB");
	struct dsc$descriptor_s none = { 0 };
	uint64_t context = 7, before;

	fake_open(&fake, 0);
	CHECK(DBG$DYN_BEGIN(NULL, 0, 0, 0, 0, &context) == DBG$_BADPARAM && context == 0);
	CHECK(DBG$DYN_BEGIN(&none, 0, 0, 0, 0, &context) == DBG$_BADPARAM);
	context = 7;
	CHECK(DBG$DYN_BEGIN(&facility, -1, 0x1000, 0, 0, &context) == DBG$_BADPARAM &&
	      context == 0);
	CHECK(DBG$DYN_BEGIN(&facility, 8, 0x1000, INT64_MIN, 0, &context) == DBG$_BADPARAM);
	CHECK(DBG$DYN_BEGIN(&facility, 8, 0, 0, 0, &context) == DBG$_BADPARAM);
	CHECK(DBG$DYN_BEGIN(&facility, 0, 0, 0, 0, NULL) == DBG$_BADPARAM);
	CHECK(context == 0 && DBG$DYN_ADD(DBG$C_CODE, 8, 0x1000, &context) == DBG$_REFUSED);
	/* No range at first, an address without bytes: both are fine. */
	CHECK(DBG$DYN_BEGIN(&facility, 0, 0x1000, 0, 0, &context) == SS$_NORMAL);
	before = context;
	CHECK(DBG$DYN_ADD(0, 8, 0x1000, &context) == DBG$_BADPARAM);
	CHECK(DBG$DYN_ADD(DBG$C_DST, -8, 0x1000, &context) == DBG$_BADPARAM);
	CHECK(DBG$DYN_ADD(DBG$C_DST, 0, 0x1000, &context) == DBG$_BADPARAM);
	CHECK(DBG$DYN_ADD(DBG$C_DST, 8, 0x1000, NULL) == DBG$_BADPARAM);
	for (int i = 0; i < 2048; i++)
		CHECK(DBG$DYN_ADD(DBG$C_DST, 8, 0x1000, &context) == SS$_NORMAL);
	CHECK(DBG$DYN_ADD(DBG$C_DST, 8, 0x1000, &context) == DBG$_EXQUOTA);
	CHECK(context == before && DBG$DYN_END(NULL) == DBG$_BADPARAM);
	CHECK(DBG$DYN_END(&context) == DBG$_NODAEMON && context == 0);
	CHECK((DBG$_BADPARAM | DBG$_EXQUOTA | DBG$_NODAEMON | DBG$_INSFMEM | DBG$_TIMEOUT |
	       DBG$_REFUSED | DBG$_IOERROR) %
		      2 ==
	      0);
	fake_close(&fake);
	return 0;
}

FAKE_TEST(three_calls)
FAKE_TEST(failures_are_even)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_three_calls),
		cmocka_unit_test(test_failures_are_even),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
