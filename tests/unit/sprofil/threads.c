/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each thread's share is its CPU time. A thread runs a loop of its own in a region of its own with
 * one element, and looks at its CPU clock whenever the element has moved: up to there, ticks and
 * CPU time must agree, however busy the machine is (a late tick brings what it missed along).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "burn.h"
#include "loop.h"
#include "sprofil.h"

enum { NR_THREADS = 4, STRIDE = 4096 };

static unsigned char *space; /* a loop at each multiple of STRIDE */
static uint32_t counts[NR_THREADS], bin;
static double tick_ns;
static _Atomic int go;

static void start(void)
{
	struct prof entries[NR_THREADS + 1];
	struct timeval tick;

	memset(counts, 0, sizeof(counts));
	bin = 0;
	for (int i = 0; i < NR_THREADS; i++)
		entries[i] =
			(struct prof){ &counts[i], 4, space + i * STRIDE, 65536 / (STRIDE / 4) };
	entries[NR_THREADS] = (struct prof){ &bin, 4, NULL, 2 };
	assert_int_equal(sprofil(entries, NR_THREADS + 1, &tick, PROF_UINT), 0);
	tick_ns = (double)tick.tv_usec * 1e3;
}

struct share {
	int which;
	uint32_t ticks; /* to run */
	double expected;
	uint32_t got;
};

static void *runner(void *arg)
{
	struct share *share = arg;
	volatile uint32_t *count = &counts[share->which];
	uint64_t from;

	while (!atomic_load(&go))
		usleep(1000);
	from = burn_cpu_ns();
	for (int i = 0; i < 20000 && share->got < share->ticks; i++) {
		loop_run(space + share->which * STRIDE);
		if (*count == share->got)
			continue;
		share->got = *count;
		share->expected = (double)(burn_cpu_ns() - from) / tick_ns;
	}
	return NULL;
}

/*
 * The first tick is due at once: one more than the CPU time says. Ticks that fell into our own few
 * instructions are in the bin, one signal in some hundred, but on a busy machine one can stand for
 * many ticks.
 */
static void check(const struct share *share)
{
	if (share->got + bin < share->expected - 3 || share->got > share->expected + 3)
		fail_msg("thread %d: %u ticks for a CPU time of %.1f", share->which, share->got,
			 share->expected);
}

static void run_threads(bool later)
{
	struct share shares[NR_THREADS] = {
		{ 0, 10, 0, 0 }, { 1, 20, 0, 0 }, { 2, 30, 0, 0 }, { 3, 50, 0, 0 }
	};
	pthread_t threads[NR_THREADS];

	atomic_store(&go, 0);
	if (later)
		start();
	for (int i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, runner, &shares[i]), 0);
	if (!later)
		start();
	atomic_store(&go, 1);
	for (int i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
	for (int i = 0; i < NR_THREADS; i++) {
		check(&shares[i]);
		assert_int_equal(counts[i], shares[i].got);
	}
}

static void test_threads_before(void **state)
{
	(void)state;
	run_threads(false);
}

/* The caller sleeps in pthread_join meanwhile: nothing but their creation tells of them. */
static void test_threads_later(void **state)
{
	(void)state;
	run_threads(true);
}

#ifndef TEST_EMULATED /* when threads begin and get ticks is the emulator's affair */
/* ---- threads that live for less than a tick -------------------------------------------------- */

static void *short_life(void *arg)
{
	uint64_t end = burn_cpu_ns() + 400000;

	do
		loop_run(arg);
	while (burn_cpu_ns() < end);
	return NULL;
}

static void run_short_lives(void)
{
	for (int i = 0; i < 400; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, short_life, space), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

/*
 * 400 threads of 0.4 to 0.5 ms: 160 ms or more, 40 ticks of 4 ms. Each tick finds a thread or does
 * not, so the number is near Poisson's; five standard deviations below the mean are 8. Above: of
 * the time that there was, as the threads' clocks may go on while a virtual machine stands still.
 */
static void test_short_lives(void **state)
{
	clock_t began = clock();
	double expected, most;

	(void)state;
	start();
	expected = 400 * 400000 / tick_ns;
	run_short_lives();
	most = (double)(clock() - began) / CLOCKS_PER_SEC * 1e9 / tick_ns;
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
	if (counts[0] < expected / 5 || counts[0] > most * 4)
		fail_msg("%u ticks for a CPU time of %.1f or more", counts[0], expected);
}

/* ---- a thread that no library knows of ------------------------------------------------------- */

static int raw_thread(void *arg)
{
	(void)arg;
	while (!atomic_load(&go))
		loop_run(space);
	syscall(SYS_exit, 0);
	return 0;
}

static void test_raw_clone(void **state)
{
	enum { STACK_LEN = 65536 };
	char *stack =
		mmap(NULL, STACK_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static int32_t tid;

	(void)state;
	assert_ptr_not_equal(stack, MAP_FAILED);
	atomic_store(&go, 0);
	start();
	assert_true(clone(raw_thread, stack + STACK_LEN,
			  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
				  CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
			  NULL, &tid, NULL, &tid) > 0);
	/* Found by a tick of this thread, a tenth of a second after the last look, or a hundred
	   times what that look took. */
	for (int i = 0; i < 4000 && *(volatile uint32_t *)&counts[0] < 3; i++)
		burn(5000000);
	assert_true(counts[0] >= 3);
	atomic_store(&go, 1);
	while (*(volatile int32_t *)&tid)
		usleep(1000);
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
	munmap(stack, STACK_LEN);
}
#endif

static int setup(void **state)
{
	(void)state;
	space = loop_room(NR_THREADS * STRIDE);
	if (!space)
		return -1;
	for (int i = 0; i < NR_THREADS; i++)
		loop_write(space + i * STRIDE);
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
		cmocka_unit_test_teardown(test_threads_before, off),
		cmocka_unit_test_teardown(test_threads_later, off),
#ifndef TEST_EMULATED
		cmocka_unit_test_teardown(test_short_lives, off),
		cmocka_unit_test_teardown(test_raw_clone, off),
#endif
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
