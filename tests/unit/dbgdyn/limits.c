/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource limits of the process: a smaller ring, or a refusal; never a signal. */
#include "fake.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define FIXED (4096u + 64 * 128 + 2048 * 32)
#define LEAST (FIXED + (4u << 10) + (16u << 10) + (4u << 10)) /* words, ring, heap */

static struct fake fake;
static dbgdyn_context context;
static const char code[4 << 20];

static int set_limit(int resource, rlim_t value)
{
	struct rlimit l;

	CHECK(getrlimit(resource, &l) == 0);
	l.rlim_cur = value;
	CHECK(setrlimit(resource, &l) == 0);
	return 0;
}

/* The ring that begin makes under the limit; 0 where it is refused. */
static uint64_t ring_under(int resource, rlim_t value)
{
	struct dbgdyn_routine r = fake_routine("f", code, 1);
	struct wire_registry reg;
	rlim_t before;
	struct rlimit l;
	int result;

	fake_open(&fake, FAKE_SOCKET);
	getrlimit(resource, &l);
	before = l.rlim_cur;
	set_limit(resource, value);
	result = dbgdyn_begin("jit", 3, NULL, &context);
	set_limit(resource, before);
	if (result == DBGDYN_ENOMEM) {
		fake_close(&fake);
		return dbgdyn_register(context, &r, NULL) == DBGDYN_EREFUSED ? 0 : 1;
	}
	if (result != DBGDYN_OK || !fake_take(&fake))
		return 1;
	fake_header(&fake, &reg);
	r.name = (struct dbgdyn_string){ code, 1000 };
	/* Usable to its very end: no write behind the object, which would be a SIGBUS. */
	while (dbgdyn_register(context, &r, NULL) == DBGDYN_OK &&
	       r.code < (void *)(code + sizeof(code)))
		r.code = (const char *)r.code + 1;
	fake_header(&fake, &reg);
	fake_close(&fake);
	return reg.nr_dropped == 1 && reg.head + 1100 > reg.ring_len &&
			       reg.heap_end + 1100 > reg.heap_len && reg.nr_unlisted
		       ? reg.ring_len
		       : 1;
}

static int file_size_makes_the_ring_smaller(void)
{
	CHECK(ring_under(RLIMIT_FSIZE, FIXED + (20u << 10) * 10 + 100) == 45056);
	return 0;
}

static int file_size_at_the_least(void)
{
	CHECK(ring_under(RLIMIT_FSIZE, LEAST) == 16u << 10);
	return 0;
}

/* A later begin, with the limit gone, works. */
static int file_size_too_small_is_refused(void)
{
	CHECK(ring_under(RLIMIT_FSIZE, 0) == 0);
	CHECK(ring_under(RLIMIT_FSIZE, LEAST - 1) == 0);
	CHECK(ring_under(RLIMIT_CORE, 0) == 4u << 20);
	return 0;
}

/* A broker makes nothing that its client could not use. */
static int a_broker_with_too_little_is_refused(void)
{
	int fd;

	set_limit(RLIMIT_FSIZE, LEAST - 1);
	CHECK(dbgdyn_registry_make() == DBGDYN_ENOMEM);
	set_limit(RLIMIT_FSIZE, LEAST);
	fd = dbgdyn_registry_make();
	CHECK(fd >= 0 && close(fd) == 0);
	return 0;
}

/* The client may make no file at all, and has the memory all the same. */
static int what_a_broker_made_is_no_file_of_ours(void)
{
	struct dbgdyn_options o = { .size = sizeof(o), .flags = DBGDYN_REGISTRY_FD };
	struct wire_registry reg;

	fake_open(&fake, 0);
	o.registry_fd = dbgdyn_registry_make();
	CHECK(o.registry_fd >= 0);
	set_limit(RLIMIT_FSIZE, 0);
	CHECK(dbgdyn_begin("jit", 3, &o, &context) == DBGDYN_OK);
	CHECK(pread(o.registry_fd, &reg, sizeof(reg), 0) == sizeof(reg));
	CHECK(reg.ring_len == 4u << 20 && reg.total_len > 500u << 20);
	fake_close(&fake);
	return 0;
}

static int no_descriptor_is_refused(void)
{
	int highest = open("/dev/null", O_RDONLY);

	close(highest);
	CHECK(ring_under(RLIMIT_NOFILE, (rlim_t)highest) == 0);
	return 0;
}

#ifndef __SANITIZE_ADDRESS__
/* Of the address space that the client has, it takes no more than of a registry of its own. */
static int a_client_keeps_to_its_address_space(void)
{
	struct dbgdyn_options o = { .size = sizeof(o), .flags = DBGDYN_REGISTRY_FD };
	struct wire_registry reg;
	struct rlimit l = { .rlim_cur = 1 };

	fake_open(&fake, 0);
	o.registry_fd = dbgdyn_registry_make();
	CHECK(o.registry_fd >= 0);
	set_limit(RLIMIT_AS, 64u << 20);
	getrlimit(RLIMIT_AS, &l);
	CHECK(dbgdyn_begin("jit", 3, &o, &context) == DBGDYN_OK);
	CHECK(pread(o.registry_fd, &reg, sizeof(reg), 0) == sizeof(reg));
	if (l.rlim_cur == 64u << 20)
		CHECK(reg.ring_len == 960u << 10);
	fake_close(&fake);
	return 0;
}

static int makes_the_ring_smaller(int resource)
{
	struct rlimit l = { .rlim_cur = 1 };

	set_limit(resource, 64u << 20);
	getrlimit(resource, &l);
	/* User-mode emulation does not limit it. */
	if (l.rlim_cur == 64u << 20)
		CHECK(ring_under(RLIMIT_CORE, 0) == 960u << 10);
	return 0;
}

static int address_space_makes_the_ring_smaller(void)
{
	return makes_the_ring_smaller(RLIMIT_AS);
}

/* Private memory, as what stands beside the registry is, counts whether it is touched or not. */
static int data_makes_the_ring_smaller(void)
{
	return makes_the_ring_smaller(RLIMIT_DATA);
}

/* Address space all but used up: a smaller ring. */
static int address_space_used_up(void)
{
	void *trace = mmap(NULL, 256u << 10, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rlimit l = { .rlim_cur = 1 };
	uint64_t ring;

	set_limit(RLIMIT_AS, 1u << 30);
	getrlimit(RLIMIT_AS, &l);
	if (l.rlim_cur != 1u << 30)
		return 0;
	for (size_t len = 1u << 30; len >= 4096;)
		if (mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			len /= 2;
	CHECK(munmap(trace, 256u << 10) == 0);
	ring = ring_under(RLIMIT_CORE, 0);
	CHECK(ring >= 16u << 10 && ring < 64u << 10);
	return 0;
}
#endif

FAKE_TEST(file_size_makes_the_ring_smaller)
FAKE_TEST(file_size_at_the_least)
FAKE_TEST(file_size_too_small_is_refused)
FAKE_TEST(a_broker_with_too_little_is_refused)
FAKE_TEST(what_a_broker_made_is_no_file_of_ours)
FAKE_TEST(no_descriptor_is_refused)
#ifndef __SANITIZE_ADDRESS__
FAKE_TEST(a_client_keeps_to_its_address_space)
FAKE_TEST(address_space_makes_the_ring_smaller)
FAKE_TEST(data_makes_the_ring_smaller)
FAKE_TEST(address_space_used_up)
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_size_makes_the_ring_smaller),
		cmocka_unit_test(test_file_size_at_the_least),
		cmocka_unit_test(test_file_size_too_small_is_refused),
		cmocka_unit_test(test_a_broker_with_too_little_is_refused),
		cmocka_unit_test(test_what_a_broker_made_is_no_file_of_ours),
		cmocka_unit_test(test_no_descriptor_is_refused),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(test_a_client_keeps_to_its_address_space),
		cmocka_unit_test(test_address_space_makes_the_ring_smaller),
		cmocka_unit_test(test_data_makes_the_ring_smaller),
		cmocka_unit_test(test_address_space_used_up),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
