/* SPDX-License-Identifier: BSD-2-Clause */
/* On in both after fork, off at exec. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "burn.h"
#include "sprofil.h"

static uint32_t *shared; /* one element that both processes count in */

static bool ticks(volatile uint32_t *count, uint32_t nr)
{
	uint32_t from = *count;

	for (int i = 0; i < 1000 && *count - from < nr; i++)
		burn(5000000);
	return *count - from >= nr;
}

static int wait_for(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void start(uint32_t *count)
{
	struct prof one = { count, sizeof(*count), NULL, 2 };

	assert_int_equal(sprofil(&one, 1, NULL, PROF_UINT), 0);
}

static void test_fork(void **state)
{
	static uint32_t own;
	pid_t pid;

	(void)state;
	start(&own);
	pid = fork();
	if (!pid)
		_exit(!ticks(&own, 20));
	assert_int_equal(wait_for(pid), 0);
	/* The child's were in its copy; this process slept, but for fork, of several ticks. */
	assert_true(own < 20);
	assert_true(ticks(&own, 5));
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
}

static void test_fork_of_fork(void **state)
{
	pid_t pid;

	(void)state;
	*shared = 0;
	start(shared);
	pid = fork();
	if (!pid) {
		pid_t grandchild = fork();

		if (!grandchild)
			_exit(!ticks(shared, 5));
		_exit(wait_for(grandchild) != 0);
	}
	assert_int_equal(wait_for(pid), 0);
	assert_true(*shared >= 5);
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
}

/* A child that stops, or profiles anew, leaves its parent alone. */
static void test_child_disables(void **state)
{
	static uint32_t own, other;
	pid_t pid;

	(void)state;
	start(&own);
	pid = fork();
	if (!pid) {
		uint32_t before;

		if (sprofil(NULL, 0, NULL, 0))
			_exit(1);
		before = own;
		burn(20000000);
		if (own != before)
			_exit(2);
		start(&other);
		_exit(ticks(&other, 3) && own == before ? 0 : 3);
	}
	assert_int_equal(wait_for(pid), 0);
	assert_true(ticks(&own, 3));
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
}

static void *short_thread(void *arg)
{
	uint32_t before = *(volatile uint32_t *)arg;

	burn(30000000);
	return *(volatile uint32_t *)arg != before ? arg : NULL;
}

/* A child that no fork handler tells of is off until it asks, its threads too. */
static void test_raw_fork(void **state)
{
	static uint32_t own, other;
	pthread_t thread;
	void *result;
	pid_t pid;

	(void)state;
	start(&own);
	pid = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
	if (!pid) {
		uint32_t before = own;

		burn(30000000);
		if (pthread_create(&thread, NULL, short_thread, &own) ||
		    pthread_join(thread, &result) || result || own != before)
			_exit(1);
		start(&other);
		if (!ticks(&other, 3) || own != before || sprofil(NULL, 0, NULL, 0))
			_exit(2);
		start(&own);
		_exit(!ticks(&own, 3));
	}
	assert_int_equal(wait_for(pid), 0);
	assert_true(ticks(&own, 3));
}

#ifndef TEST_EMULATED /* no fork of several threads, and no exec of a program of its kind */
static void *child_thread(void *arg)
{
	return ticks(arg, 3) ? arg : NULL;
}

static _Atomic int stop, nr_ready;

static void *spinner(void *arg)
{
	(void)arg;
	burn(1000000);
	atomic_fetch_add(&nr_ready, 1);
	while (!atomic_load(&stop))
		burn(1000000);
	return NULL;
}

/* Other threads are in their handlers when it happens; the child can still stop and start. */
static void test_fork_of_many_threads(void **state)
{
	static uint32_t own;
	pthread_t threads[3];

	(void)state;
	atomic_store(&stop, 0);
	start(&own);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, spinner, NULL), 0);
	/* AddressSanitizer is no good for forks while threads begin: they allocate. */
	while (atomic_load(&nr_ready) < 3)
		usleep(1000);
	for (int i = 0; i < 6; i++) {
		pid_t pid = fork();

		if (!pid) {
			void *result = NULL;
			pthread_t thread;

			if (!ticks(&own, 1) || pthread_create(&thread, NULL, child_thread, &own) ||
			    pthread_join(thread, &result) || !result)
				_exit(1);
			_exit(sprofil(NULL, 0, NULL, 0) ? 2 : 0);
		}
		assert_int_equal(wait_for(pid), 0);
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
}

/* What runs after exec: SIGPROF has its default again and is not blocked, so that any that still
   came would end it. What was counted tells nothing: the memory went with the handler, and the
   process that called fork counts its own ticks there. */
static int after_exec(void)
{
	struct sigaction now;
	sigset_t blocked;

	burn(40000000);
	if (sigaction(SIGPROF, NULL, &now) || now.sa_handler != SIG_DFL)
		return 5;
	return sigprocmask(SIG_BLOCK, NULL, &blocked) || sigismember(&blocked, SIGPROF) ? 6 : 0;
}

static void test_exec(void **state)
{
	pid_t pid;

	(void)state;
	*shared = 0;
	start(shared);
	pid = fork();
	if (!pid) {
		if (!ticks(shared, 2))
			_exit(3);
		execl("/proc/self/exe", "fork", "after-exec", NULL);
		_exit(4);
	}
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
}
#endif

static int setup(void **state)
{
	(void)state;
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED;
}

static int off(void **state)
{
	(void)state;
	return sprofil(NULL, 0, NULL, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_fork, off),
		cmocka_unit_test_teardown(test_fork_of_fork, off),
		cmocka_unit_test_teardown(test_child_disables, off),
		cmocka_unit_test_teardown(test_raw_fork, off),
#ifndef TEST_EMULATED
		cmocka_unit_test_teardown(test_fork_of_many_threads, off),
		cmocka_unit_test_teardown(test_exec, off),
#endif
	};

	(void)argc;
	(void)argv;
#ifndef TEST_EMULATED
	if (argc > 1 && !strcmp(argv[1], "after-exec"))
		return after_exec();
#endif
	return cmocka_run_group_tests(tests, setup, NULL);
}
