/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake.h"

#include <errno.h>
#include <unistd.h>

static const char code[64] = { 1 };

static int refuses_bad_arguments(void)
{
	struct dbgdyn_options o = { .size = sizeof(o) };
	char name[106];
	dbgdyn_context c = { 7 };

	memset(name, 'n', sizeof(name));
	CHECK(dbgdyn_begin(NULL, 1, NULL, &c) == DBGDYN_EINVAL && c.id == 0);
	CHECK(dbgdyn_begin("x", 0, NULL, &c) == DBGDYN_EINVAL);
	CHECK(dbgdyn_begin(name, 105, NULL, &c) == DBGDYN_EINVAL);
	CHECK(dbgdyn_begin("x", 1, NULL, NULL) == DBGDYN_EINVAL);
	o.size = 8;
	CHECK(dbgdyn_begin("x", 1, &o, &c) == DBGDYN_EINVAL);
	o = (struct dbgdyn_options){ .size = sizeof(o), .flags = 4 };
	CHECK(dbgdyn_begin("x", 1, &o, &c) == DBGDYN_EINVAL);
	o = (struct dbgdyn_options){ .size = offsetof(struct dbgdyn_options, registry_fd),
				     .flags = DBGDYN_REGISTRY_FD };
	CHECK(dbgdyn_begin("x", 1, &o, &c) == DBGDYN_EINVAL);
	o = (struct dbgdyn_options){ .size = offsetof(struct dbgdyn_options, registry_fd) - 1 };
	CHECK(dbgdyn_begin("x", 1, &o, &c) == DBGDYN_EINVAL);
	o = (struct dbgdyn_options){ .size = sizeof(o), .code_base = code };
	CHECK(dbgdyn_begin("x", 1, &o, &c) == DBGDYN_EINVAL);
	o = (struct dbgdyn_options){ .size = sizeof(o), .dst_base = code, .dst_len = SIZE_MAX };
	CHECK(dbgdyn_begin("x", 1, &o, &c) == DBGDYN_EINVAL);
	CHECK(dbgdyn_add((dbgdyn_context){ 0 }, DBGDYN_CODE, code, 1) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_begin(name, 104, NULL, &c) == DBGDYN_OK && c.id != 0);
	CHECK(dbgdyn_add(c, DBGDYN_CODE, NULL, 1) == DBGDYN_EINVAL);
	CHECK(dbgdyn_add(c, DBGDYN_CODE, code, 0) == DBGDYN_EINVAL);
	CHECK(dbgdyn_add(c, DBGDYN_CODE, code, SIZE_MAX) == DBGDYN_EINVAL);
	CHECK(dbgdyn_add(c, (enum dbgdyn_kind)3, code, 1) == DBGDYN_EINVAL);
	CHECK(dbgdyn_add((dbgdyn_context){ c.id + 1 }, DBGDYN_CODE, code, 1) == DBGDYN_EREFUSED);
	CHECK(dbgdyn_add((dbgdyn_context){ c.id + 256 }, DBGDYN_CODE, code, 1) == DBGDYN_EREFUSED);
	return 0;
}

static int check_header(const struct wire_registry *reg)
{
	CHECK(reg->magic == WIRE_REGISTRY_MAGIC && reg->version == WIRE_REGISTRY_VERSION);
	CHECK(reg->header_len == WIRE_PAGE && reg->facilities_off == WIRE_PAGE);
	CHECK(reg->ranges_off == 4096 + 64 * 128 && reg->words_off == reg->ranges_off + 2048 * 32);
	CHECK(reg->nr_words == WIRE_NR_WORDS && reg->ring_off == reg->words_off + 4 * 65536);
	CHECK(reg->ring_len == 4u << 20 && reg->heap_off == reg->ring_off + reg->ring_len);
	CHECK(reg->heap_len == 512u << 20 && reg->total_len == reg->heap_off + reg->heap_len);
	CHECK(reg->words_addr > reg->words_off && reg->words_addr % 4096 == 0);
	CHECK(reg->seq_addr ==
	      reg->words_addr - reg->words_off + offsetof(struct wire_registry, seq));
	CHECK(reg->seq == 0 && reg->heap_end == 0 && reg->nr_unlisted == 0);
	CHECK(reg->machine == 62 || reg->machine == 183 || reg->machine == 243);
	CHECK(reg->head == 0 && reg->tail == 0 && reg->attached == 0 && reg->flush_wanted == 0);
	return 0;
}

static int hands_the_registry_over(void)
{
	struct dbgdyn_options o = {
		.size = sizeof(o), .code_base = code, .code_len = 64, .dst_base = &o, .dst_len = 8
	};
	struct wire_registry reg;
	struct wire_facility fac;
	struct wire_range range[3];
	struct fake f;
	dbgdyn_context c;

	fake_open(&f, FAKE_SOCKET | FAKE_QUEUE);
	errno = 4711;
	CHECK(dbgdyn_begin("my jit", 6, &o, &c) == DBGDYN_OK);
	CHECK(errno == 4711);
	CHECK(fake_take(&f) && f.message_pid == (uint32_t)getpid());
	CHECK(fake_bells(&f) == 1);
	CHECK(dbgdyn_add(c, DBGDYN_CODE, (void *)0x7000, 0x1000) == DBGDYN_OK);
	CHECK(fake_bells(&f) == 1);
	fake_header(&f, &reg);
	CHECK(check_header(&reg) == 0 && reg.nr_facilities == 1 && reg.nr_ranges == 3);
	CHECK(pread(f.fd, &fac, sizeof(fac), (off_t)reg.facilities_off) == sizeof(fac));
	CHECK(fac.state == WIRE_FACILITY_OPEN && fac.name_len == 6 && fac.end_wanted == 0);
	CHECK(!memcmp(fac.name, "my jit", 6));
	CHECK(pread(f.fd, range, sizeof(range), (off_t)reg.ranges_off) == sizeof(range));
	CHECK(range[0].kind == WIRE_RANGE_CODE && range[0].base == (uintptr_t)code);
	CHECK(range[1].kind == WIRE_RANGE_DST && range[1].base == (uintptr_t)&o);
	CHECK(range[1].len == 8 && range[0].len == 64 && range[0].flags == WIRE_RANGE_OWNED);
	CHECK(range[2].base == 0x7000 && range[2].len == 0x1000 && range[2].facility == 0);
	fake_close(&f);
	return 0;
}

static int keeps_its_bounds(void)
{
	struct dbgdyn_options two = { .size = sizeof(two),
				      .code_base = code,
				      .code_len = 64,
				      .dst_base = &two,
				      .dst_len = 8 };
	struct wire_registry reg;
	struct fake f;
	dbgdyn_context c[64], more;

	fake_open(&f, FAKE_SOCKET);
	for (int i = 0; i < 63; i++)
		CHECK(dbgdyn_begin("jit", 3, NULL, &c[i]) == DBGDYN_OK);
	for (int i = 0; i < 2047; i++)
		CHECK(dbgdyn_add(c[i % 63], DBGDYN_DST, code, 1) == DBGDYN_OK);
	CHECK(dbgdyn_begin("jit", 3, &two, &c[63]) == DBGDYN_EFULL && c[63].id == 0);
	CHECK(dbgdyn_begin("jit", 3, NULL, &c[63]) == DBGDYN_OK);
	CHECK(dbgdyn_begin("jit", 3, NULL, &more) == DBGDYN_EFULL && more.id == 0);
	CHECK(dbgdyn_add(c[0], DBGDYN_DST, code, 1) == DBGDYN_OK);
	CHECK(dbgdyn_add(c[0], DBGDYN_DST, code, 1) == DBGDYN_EFULL);
	for (int i = 0; i < 64; i++)
		for (int k = 0; k < i; k++)
			CHECK(c[i].id != c[k].id);
	CHECK(fake_take(&f));
	fake_header(&f, &reg);
	CHECK(reg.nr_facilities == 64 && reg.nr_ranges == 2048);
	fake_close(&f);
	return 0;
}

static int a_full_queue_does_not_matter(void)
{
	struct fake f;
	dbgdyn_context c;

	fake_open(&f, FAKE_SOCKET | FAKE_QUEUE);
	for (int i = 0; i < 20; i++)
		CHECK(dbgdyn_begin("jit", 3, NULL, &c) == DBGDYN_OK);
	CHECK(fake_bells(&f) == 10);
	fake_close(&f);
	return 0;
}

static int every_result_has_its_text(void)
{
	for (int i = 1; i >= DBGDYN_EINPROGRESS - 1; i--)
		for (int k = 1; k > i; k--) {
			bool known = i <= 0 && i >= DBGDYN_EINPROGRESS;

			CHECK(*dbgdyn_strerror(i));
			CHECK(!known || strcmp(dbgdyn_strerror(i), dbgdyn_strerror(k)));
		}
	return 0;
}

FAKE_TEST(refuses_bad_arguments)
FAKE_TEST(hands_the_registry_over)
FAKE_TEST(keeps_its_bounds)
FAKE_TEST(a_full_queue_does_not_matter)
FAKE_TEST(every_result_has_its_text)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_bad_arguments),
		cmocka_unit_test(test_hands_the_registry_over),
		cmocka_unit_test(test_keeps_its_bounds),
		cmocka_unit_test(test_a_full_queue_does_not_matter),
		cmocka_unit_test(test_every_result_has_its_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
