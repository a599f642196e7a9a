/* SPDX-License-Identifier: BSD-2-Clause */
/* Nanoseconds of a context switch: two processes on one CPU pass a byte through pipes to and fro.
 * Prints the median of many short times: a busy machine makes some of them long. */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 1000, NR_BATCHES_MAX = 100000, SWITCHES_EACH = 2 };

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void stay_on_one_cpu(void)
{
	cpu_set_t all, one;
	int cpu = 0;

	sched_getaffinity(0, sizeof(all), &all);
	while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void answer(int from, int to)
{
	char c;

	while (read(from, &c, 1) == 1 && write(to, &c, 1) == 1)
		;
	_exit(0);
}

static double batch(int to, int from)
{
	double begun = seconds();
	char c = 'x';

	for (int i = 0; i < BATCH; i++)
		if (write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
			exit(1);
	return (seconds() - begun) * 1e9 / BATCH / SWITCHES_EACH;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static double all[NR_BATCHES_MAX];
	double end = seconds() + (argc > 1 ? atof(argv[1]) : 1);
	int there[2], back[2];
	size_t nr = 0;

	stay_on_one_cpu();
	if (pipe(there) < 0 || pipe(back) < 0)
		return 1;
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		answer(there[0], back[1]);
	}
	batch(there[1], back[0]);
	while (nr < NR_BATCHES_MAX && (!nr || seconds() < end))
		all[nr++] = batch(there[1], back[0]);
	qsort(all, nr, sizeof(all[0]), compare);
	printf("%.0f\n", all[nr / 2]);
	return 0;
}
