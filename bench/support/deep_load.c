/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * deep_load SECONDS DEPTH: a thread on each CPU computes below so many calls; prints how many
 * thousand rounds all of them made in a second of their CPU time. What interrupts take of that is
 * missing, and what other processes do to the caches; their own time is not.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CPUS_MAX = 256, ROUND = 20000 };

static volatile int depth, over;

struct cpu {
	pthread_t thread;
	int number;
	double rounds;
} __attribute__((aligned(64)));

__attribute__((noinline)) static unsigned long compute(unsigned long x)
{
	for (int i = 0; i < ROUND; i++)
		x = x * 31 + (x >> 7);
	return x;
}

/* Each call is followed by something, or it would become a jump. */
__attribute__((noinline)) static unsigned long even(unsigned long x, int left);

__attribute__((noinline)) static unsigned long odd(unsigned long x, int left)
{
	return left ? even(x + 1, left - 1) ^ 5 : compute(x) + 1;
}

static unsigned long even(unsigned long x, int left)
{
	return left ? odd(x + 3, left - 1) ^ 9 : compute(x) + 2;
}

static void *run(void *arg)
{
	struct cpu *c = arg;
	unsigned long x = 1;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(c->number, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	while (!over) {
		x = even(x, depth);
		c->rounds++;
	}
	return (void *)(x & 1);
}

int main(int argc, char **argv)
{
	static struct cpu cpus[CPUS_MAX];
	double all = 0, seconds = argc == 3 ? atof(argv[1]) : 0;
	struct timespec t = { .tv_sec = (time_t)seconds,
			      .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };
	int nr = 0;
	cpu_set_t set;

	if (seconds <= 0) {
		fputs("usage: deep_load SECONDS DEPTH\n", stderr);
		return 2;
	}
	depth = atoi(argv[2]);
	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPUS_MAX; i++) {
		if (!CPU_ISSET(i, &set))
			continue;
		cpus[nr].number = i;
		if (pthread_create(&cpus[nr].thread, NULL, run, &cpus[nr]) != 0)
			return 1;
		nr++;
	}
	nanosleep(&t, NULL);
	over = 1;
	for (int i = 0; i < nr; i++) {
		pthread_join(cpus[i].thread, NULL);
		all += cpus[i].rounds;
	}
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) < 0)
		return 1;
	printf("%.6g\n", all / 1000 / ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec));
	return 0;
}
