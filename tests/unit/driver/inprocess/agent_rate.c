/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent at a fifth of the tick's rate, ticked by the test. Bounds are six standard deviations:
 * of n samples drawn with a chance of p, sqrt(n p (1 - p)); each is missed once in 5e8 runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "inprocess_internal.h"

enum { EVERY = 5 };

static char folder[64];
static const struct inprocess_client *agent;

/* ---- in place of what the agent is loaded with ----------------------------------------------- */

/* Before the agent's own constructor. */
__attribute__((constructor(101))) static void give_orders(void)
{
	char orders[128];

	strcpy(folder, "/tmp/dcpi-rate-XXXXXX");
	if (!mkdtemp(folder))
		return;
	snprintf(orders, sizeof(orders), "%llu:%d:%s",
		 (unsigned long long)EVERY * inprocess_tick_ns(), INPROCESS_UNITS_MIN, folder);
	setenv(INPROCESS_ENV, orders, 1);
}

int __wrap_inprocess_set(const struct inprocess_client *client, int signo,
			 const struct inprocess_client **old);

int __wrap_inprocess_set(const struct inprocess_client *client, int signo,
			 const struct inprocess_client **old)
{
	(void)signo;
	(void)old;
	agent = client;
	return -1; /* no timers */
}

void agent_signal_prepare(void)
{
}

void agent_signal_keep(int signo)
{
	(void)signo;
}

/* ---- ticks and samples ----------------------------------------------------------------------- */

static struct inprocess_head head;

/* Read the ring of the life that is now; it goes out of the folder. */
static int take_ring(void)
{
	DIR *dir = opendir(folder);
	struct dirent *e;
	int fd = -1;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, INPROCESS_PREFIX, strlen(INPROCESS_PREFIX)) != 0)
			continue;
		assert_int_equal(fd, -1);
		fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC);
		assert_int_equal(unlinkat(dirfd(dir), e->d_name, 0), 0);
	}
	closedir(dir);
	assert_true(fd >= 0);
	return fd;
}

static void look(int fd)
{
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
}

static void tick(uint32_t nr)
{
	const struct inprocess_tick t = { .pc = (uintptr_t)tick, .nr = nr };

	assert_int_equal(agent->tick(agent->ctx, &t), 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Children of one that waits, each with one tick. */
static void short_lives(void **state)
{
	uint64_t nr = 0;

	(void)state;
	assert_non_null(agent);
	close(take_ring());
	for (int i = 0; i < 200; i++) {
		int fd, status = -1;
		pid_t pid = fork();

		if (!pid) {
			agent->forked(agent->ctx);
			tick(1);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		fd = take_ring();
		look(fd);
		close(fd);
		nr += head.received;
		assert_int_equal(head.missed, 0);
	}
	assert_in_range(nr, 40 - 34, 40 + 34);
}

/* Five that tick in turn, as threads may. */
static void ticks_in_turn(void **state)
{
	uint64_t nr[EVERY] = { 0 };
	int fd;

	(void)state;
	agent->forked(agent->ctx);
	fd = take_ring();
	head.received = 0;
	for (int i = 0; i < 10000; i++) {
		uint64_t before = head.received;

		tick(1);
		look(fd);
		nr[i % EVERY] += head.received - before;
	}
	assert_in_range(head.received, 2000 - 240, 2000 + 240);
	for (size_t i = 0; i < EVERY; i++)
		assert_in_range(nr[i], 400 - 108, 400 + 108);
	close(fd);
}

/* Seven in one signal: one sample, and by chance one that is missed. */
static void ticks_in_one_signal(void **state)
{
	int fd;

	(void)state;
	agent->forked(agent->ctx);
	fd = take_ring();
	for (int i = 0; i < 1000; i++)
		tick(EVERY + 2);
	look(fd);
	assert_int_equal(head.received, 1000);
	assert_in_range(head.missed, 400 - 93, 400 + 93);
	close(fd);
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_lives),
		cmocka_unit_test(ticks_in_turn),
		cmocka_unit_test(ticks_in_one_signal),
	};

	return cmocka_run_group_tests(tests, NULL, remove_folder);
}
