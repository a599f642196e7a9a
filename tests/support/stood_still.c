/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stood_still COMMAND…: run a test that measures; ends as it does.
 *
 * Where a virtual machine's host takes a CPU away for a while, clocks and CPU time go on and
 * samples do not come, so that what a test compares is not what it made. A test that fails while a
 * CPU stood still for STILL_MS or more in all has no result, and is run again: TRIES times at most.
 * A fault of ours fails on a machine that does not stand still, and there at the first time.
 *
 * A CPU stands still where a thread of the highest priority, which is due there every PERIOD_MS,
 * comes late by LATE_MS or more. Other programs do not hold it up, unless we may not have that
 * priority.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 3, STILL_MS = 250, PERIOD_MS = 20, LATE_MS = 10 };

static _Atomic int64_t late_ns;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void *watch(void *arg)
{
	const struct sched_param first = { .sched_priority = sched_get_priority_max(SCHED_FIFO) };
	cpu_set_t *here = arg;

	pthread_setaffinity_np(pthread_self(), sizeof(*here), here);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	for (;;) {
		int64_t due = now_ns() + PERIOD_MS * 1000000, late;
		struct timespec t = { due / 1000000000, due % 1000000000 };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		late = now_ns() - due;
		if (late >= LATE_MS * 1000000)
			atomic_fetch_add(&late_ns, late);
	}
	return NULL;
}

/* A CPU that is taken offline meanwhile has its thread elsewhere. */
static int watch_cpus(void)
{
	static cpu_set_t all, one[CPU_SETSIZE];
	pthread_t thread;
	int r;

	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return -errno;
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_SET(cpu, &one[cpu]);
		r = pthread_create(&thread, NULL, watch, &one[cpu]);
		if (r)
			return -r;
	}
	return 0;
}

/* What is run has the end of whoever waits for it, by a signal that it may answer. */
static int run(char **argv)
{
	pid_t parent = getpid(), pid = fork();
	int status = 0;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() == parent)
			execvp(argv[0], argv);
		fprintf(stderr, "stood_still: cannot run '%s': %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid < 0 ? 126 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	int r = argc < 2 ? -EINVAL : watch_cpus(), status = 1;

	if (r < 0)
		return fprintf(stderr, "stood_still: %s\n", strerror(-r)), 1;
	for (int i = 0; i < TRIES; i++) {
		int64_t before = atomic_load(&late_ns), ms;

		status = run(argv + 1);
		ms = (atomic_load(&late_ns) - before) / 1000000;
		if (status == 0 || status == 77 || ms < STILL_MS)
			break;
		printf("the machine stood still for %lld ms meanwhile: %s\n", (long long)ms,
		       i + 1 < TRIES ? "again" : "that was the last time");
		fflush(stdout);
	}
	return status;
}
