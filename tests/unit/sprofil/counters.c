/* SPDX-License-Identifier: BSD-2-Clause */
/* Elements: regions apart, overflow bin, maxima, arrays replaced and arrays that went away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "burn.h"
#include "loop.h"
#include "sprofil.h"

enum { ROOM_LEN = 65536, LOOP_B = 32768 };

static unsigned char *space; /* loop A at 0, loop B at LOOP_B */

/* Until *@nr is @least, running @at; a busy machine delays ticks. */
static void run_until(const void *nr, uint32_t least, const unsigned char *at)
{
	for (int i = 0; i < 20000 && *(const volatile uint32_t *)nr < least; i++)
		loop_run(at);
}

static void test_disjoint(void **state)
{
	uint32_t a[4] = { 0 }, b[4] = { 0 }, bin = 0;
	struct prof entries[] = {
		{ a, sizeof(a), space, 16384 }, /* 16 bytes of code an element */
		{ b, sizeof(b), space + LOOP_B - 16, 16384 },
		{ &bin, sizeof(bin), NULL, 2 },
	};

	(void)state;
	assert_int_equal(sprofil(entries, 3, NULL, PROF_UINT), 0);
	run_until(&a[0], 3, space);
	run_until(&b[1], 3, space + LOOP_B);
	for (int i = 0; i < 1000 && *(volatile uint32_t *)&bin < 3; i++)
		burn(5000000);
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
	assert_true(a[0] >= 3 && b[1] >= 3 && bin >= 3);
	assert_int_equal(a[1] + a[2] + a[3] + b[0] + b[2] + b[3], 0);
}

static void test_no_overflow_bin(void **state)
{
	uint32_t a = 0, b = 0;
	struct prof one = { &a, sizeof(a), space, 16384 }, two = { &b, sizeof(b), space, 16384 };

	(void)state;
	assert_int_equal(sprofil(&one, 1, NULL, PROF_UINT), 0);
	burn(20000000);
	assert_int_equal(sprofil(&two, 1, NULL, PROF_UINT), 0);
	run_until(&b, 2, space);
	assert_true(a == 0 && b >= 2);
}

/* The element beside it must stay: a counter that ran over would show there. */
static void check_saturation(unsigned int flags, size_t element)
{
	union {
		unsigned char bytes[24];
		uint16_t shorts[12];
		uint32_t words[6];
		uint64_t longs[3];
	} array, before;
	struct prof one = { array.bytes + element, (unsigned int)element, space, 2 };
	uint32_t bin = 0;
	struct prof other = { &bin, sizeof(bin), space, 16384 };

	memset(&array, 0, sizeof(array));
	memset(array.bytes + element, 0xff, element);
	before = array;
	array.bytes[element] = 0xfd; /* little-endian: two below the maximum */
	assert_int_equal(sprofil(&one, 1, NULL, flags), 0);
	for (int i = 0; i < 20000 && ((volatile unsigned char *)array.bytes)[element] != 0xff; i++)
		loop_run(space);
	assert_memory_equal(&array, &before, sizeof(array));
	loop_run(space);
	burn(10000000);
	assert_int_equal(sprofil(&other, 1, NULL, PROF_UINT), 0); /* some more ticks for sure */
	run_until(&bin, 2, space);
	assert_memory_equal(&array, &before, sizeof(array));
}

static void test_saturation(void **state)
{
	(void)state;
	check_saturation(PROF_USHORT, 2);
	check_saturation(PROF_UINT, 4);
	check_saturation(PROF_UINT64, 8);
}

static void test_overflow_bin_saturates(void **state)
{
	uint16_t bin[3] = { 0, 0xfffe, 0 };
	struct prof one = { &bin[1], sizeof(bin[1]), NULL, 2 };

	(void)state;
	assert_int_equal(sprofil(&one, 1, NULL, PROF_USHORT), 0);
	for (int i = 0; i < 1000 && ((volatile uint16_t *)bin)[1] != 0xffff; i++)
		burn(5000000);
	burn(30000000);
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
	assert_true(bin[0] == 0 && bin[1] == 0xffff && bin[2] == 0);
}

/* An element is added to as a whole, not as the four bytes of it that change first. */
static void test_carry(void **state)
{
	uint64_t array[2] = { 0xffffffff, 0 };
	struct prof one = { array, sizeof(array[0]), space, 2 };

	(void)state;
	assert_int_equal(sprofil(&one, 1, NULL, PROF_UINT64), 0);
	for (int i = 0; i < 20000 && ((volatile uint64_t *)array)[0] == 0xffffffff; i++)
		loop_run(space);
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
	assert_true(array[0] > 0xffffffff && array[0] < 0x100001000 && array[1] == 0);
}

/* An element at its maximum is not written to: memory that can only be read is no reason to stop.
 */
static void test_saturated_read_only(void **state)
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	uint32_t *page =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t other = 0;
	struct prof entries[] = { { page, 4, space, 16384 }, { &other, 4, space + LOOP_B, 16384 } };

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(sprofil(entries, 2, NULL, PROF_UINT), 0);
	run_until(page, 2, space); /* ticks do come there */
	assert_true(page[0] >= 2);
	page[0] = UINT32_MAX;
	assert_int_equal(mprotect(page, len, PROT_READ), 0);
	for (uint64_t end = burn_cpu_ns() + 60000000; burn_cpu_ns() < end;)
		loop_run(space);
	other = 0;
	run_until(&other, 3, space + LOOP_B);
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
	assert_true(page[0] == UINT32_MAX && other >= 3);
	munmap(page, len);
}

/* ---- arrays that are replaced while other threads count in them ------------------------------ */

static _Atomic int stop;

static void *runner(void *arg)
{
	while (!atomic_load(&stop))
		loop_run(arg);
	return NULL;
}

/* Nothing of an array may be touched once a later call has returned: it is gone then, and something
   else is in its place that must stay as it is. */
static void test_replace(void **state)
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	pthread_t threads[2];
	uint32_t *array = NULL, sum = 0;

	(void)state;
	atomic_store(&stop, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, runner, space), 0);
	/* 60 times, and on a busy machine until the threads had their turns. */
	for (int i = 0; i < 60 || (!sum && i < 10000); i++) {
		uint32_t *next =
			mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct prof one = { next, 4, space, 16384 };

		assert_ptr_not_equal(next, MAP_FAILED);
		assert_int_equal(sprofil(&one, 1, NULL, PROF_UINT), 0);
		if (array) {
			uint32_t seen = array[0];

			sum += seen;
			usleep(i % 4 ? 0 : 8000);
			assert_int_equal(array[0], seen);
			assert_int_equal(munmap(array, len), 0);
		}
		usleep(4000);
		array = next;
	}
	for (int i = 0; i < 1000 && !*(volatile uint32_t *)array; i++)
		usleep(5000); /* the unmapped ones have not switched it off */
	assert_true(array[0] > 0 && sum > 0);
	atomic_store(&stop, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
	munmap(array, len);
}

/* ---- arrays that cannot be written ----------------------------------------------------------- */

static uint32_t *new_page(size_t len)
{
	void *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	return page;
}

/* Ticks are seen by the overflow bin: it stops moving when profiling is off. */
static void check_goes_off(void (*harm)(void *page, size_t len),
			   void (*recover)(void *page, size_t len))
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	uint32_t *page = new_page(len), bin = 0;
	struct prof entries[] = { { page, 4, space, 16384 }, { &bin, 4, NULL, 2 } };

	assert_int_equal(sprofil(entries, 2, NULL, PROF_UINT), 0);
	run_until(page, 2, space);
	assert_true(page[0] >= 2);
	harm(page, len);
	for (int tries = 0; tries < 100; tries++) {
		uint32_t before;

		for (int i = 0; i < 200; i++)
			loop_run(space); /* 20 ms: some ticks, the first switches it off */
		before = *(volatile uint32_t *)&bin;
		burn(20000000);
		if (*(volatile uint32_t *)&bin == before)
			break;
		assert_true(tries < 99);
	}
	recover(page, len);
	page[0] = 0;
	for (int i = 0; i < 300; i++)
		loop_run(space);
	assert_int_equal(page[0], 0); /* it stays off */
	assert_int_equal(sprofil(entries, 2, NULL, PROF_UINT), 0);
	run_until(page, 2, space);
	assert_true(page[0] >= 2); /* until the next call */
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
	munmap(page, len);
}

static void unmap(void *page, size_t len)
{
	assert_int_equal(munmap(page, len), 0);
}

static void map(void *page, size_t len)
{
	assert_ptr_equal(mmap(page, len, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 page);
}

static void read_only(void *page, size_t len)
{
	assert_int_equal(mprotect(page, len, PROT_READ), 0);
}

static void no_access(void *page, size_t len)
{
	assert_int_equal(mprotect(page, len, PROT_NONE), 0);
}

static void writable(void *page, size_t len)
{
	assert_int_equal(mprotect(page, len, PROT_READ | PROT_WRITE), 0);
}

static void test_unmapped(void **state)
{
	(void)state;
	check_goes_off(unmap, map);
}

static void test_read_only(void **state)
{
	(void)state;
	check_goes_off(read_only, writable);
}

static void test_no_access(void **state)
{
	(void)state;
	check_goes_off(no_access, writable);
}

/* From the beginning, and at addresses that no process has. */
static void test_never_there(void **state)
{
	static void *const bad[] = { NULL, (void *)8, (void *)(UINTPTR_MAX - 3),
				     (void *)0xffff800000000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct prof one = { bad[i], 4, space, 16384 };

		assert_int_equal(sprofil(&one, 1, NULL, PROF_UINT), 0);
		for (int n = 0; n < 200; n++)
			loop_run(space);
	}
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
}

static int setup(void **state)
{
	(void)state;
	space = loop_room(ROOM_LEN);
	if (!space)
		return -1;
	loop_write(space);
	loop_write(space + LOOP_B);
	return 0;
}

static int off(void **state)
{
	(void)state;
	return sprofil(NULL, 0, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_disjoint, off),
		cmocka_unit_test_teardown(test_no_overflow_bin, off),
		cmocka_unit_test_teardown(test_saturation, off),
		cmocka_unit_test_teardown(test_overflow_bin_saturates, off),
		cmocka_unit_test_teardown(test_carry, off),
		cmocka_unit_test_teardown(test_saturated_read_only, off),
		cmocka_unit_test_teardown(test_replace, off),
		cmocka_unit_test_teardown(test_unmapped, off),
		cmocka_unit_test_teardown(test_read_only, off),
		cmocka_unit_test_teardown(test_no_access, off),
		cmocka_unit_test_teardown(test_never_there, off),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
