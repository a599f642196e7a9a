/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stood_still [-load] COMMAND…: run a test that measures; ends as it does.
 *
 * Where a virtual machine's host takes a CPU away for a while, clocks and CPU time go on and
 * samples do not come, so that what a test compares is not what it made. A test that fails while a
 * CPU stood still for STILL_MS or more in all has no result, and is run again: TRIES times at most.
 * A fault of ours fails on a machine that does not stand still, and there at the first time.
 *
 * A CPU stands still where a thread of the highest priority, which is due there every PERIOD_MS,
 * comes late by LATE_MS or more. Other programs do not hold it up, unless we may not have that
 * priority.
 *
 * With -load, for the few tests that cannot hold beside other programs, a test has no result either
 * where these had LOAD_PERCENT of a CPU or more: what all CPUs worked, less the CPU time of the
 * test and of all that it started. What a test leaves behind becomes our child, so that it counts.
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
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 3, STILL_MS = 250, PERIOD_MS = 20, LATE_MS = 10, LOAD_PERCENT = 25 };

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

/* Others that end meanwhile are daemons that @pid left to us. */
static void wait_for(pid_t pid, int *status)
{
	int other;

	for (pid_t got = 0; got != pid;) {
		got = waitpid(-1, &other, 0);
		if (got == pid)
			*status = other;
		if (got < 0 && errno != EINTR)
			return;
	}
	while (waitpid(-1, &other, WNOHANG) > 0)
		;
}

/* CPU time of programs and interrupts on all CPUs since the machine's start; 0 where it is not
 * told. */
static int64_t worked_ms(void)
{
	long long user = 0, nice = 0, system = 0, idle, wait, irq = 0, softirq = 0;
	FILE *f = fopen("/proc/stat", "re");
	int n = f ? fscanf(f, "cpu %lld %lld %lld %lld %lld %lld %lld", &user, &nice, &system,
			   &idle, &wait, &irq, &softirq)
		  : 0;

	if (f)
		fclose(f);
	return n == 7 ? (user + nice + system + irq + softirq) * 1000 / sysconf(_SC_CLK_TCK) : 0;
}

static int64_t children_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * INT64_C(1000) +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

/* Percent of a CPU that other programs had in the time since @began; @since: their CPU time then.
 */
static int64_t others_percent(int64_t began_ns, int64_t since_ms)
{
	int64_t ms = (now_ns() - began_ns) / 1000000;

	return ms ? 100 * (worked_ms() - children_ms() - since_ms) / ms : 0;
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
	if (pid > 0)
		wait_for(pid, &status);
	return pid < 0 ? 126 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct trial {
	int64_t still_ms, others_percent;
	int status;
};

static struct trial try(char **argv)
{
	int64_t still = atomic_load(&late_ns), began = now_ns(),
		others = worked_ms() - children_ms();
	struct trial t = { .status = run(argv) };

	t.still_ms = (atomic_load(&late_ns) - still) / 1000000;
	t.others_percent = others_percent(began, others);
	return t;
}

/* Whether @t has no result; says why. */
static bool disturbed(const struct trial *t, bool load)
{
	if (t->still_ms >= STILL_MS)
		printf("the machine stood still for %lld ms meanwhile: ", (long long)t->still_ms);
	else if (load && t->others_percent >= LOAD_PERCENT)
		printf("other programs had %lld %% of a CPU meanwhile: ",
		       (long long)t->others_percent);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	bool load = argc > 1 && !strcmp(argv[1], "-load");
	char **command = argv + 1 + load;
	int r = command[0] ? watch_cpus() : -EINVAL;
	struct trial t = { .status = 1 };

	if (r < 0)
		return fprintf(stderr, "stood_still: %s\n", strerror(-r)), 1;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < TRIES; i++) {
		t = try(command);
		if (t.status == 0 || t.status == 77 || !disturbed(&t, load))
			break;
		printf("%s\n", i + 1 < TRIES ? "again" : "that was the last time");
		fflush(stdout);
	}
	return t.status;
}
