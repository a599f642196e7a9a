/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spinner CPU SECONDS: a real-time thread reads the clock without end on one CPU; a step longer
 * than a microsecond is an interruption. Prints "COUNT MEDIAN" (interruptions, nanoseconds). The
 * median is the sampling interrupt's as long as there are far more of them than of other kinds.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { GAPS_MAX = 1 << 22, GAP_NS = 1000 };

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#ifdef __x86_64__
static uint64_t ticks(void)
{
	return __builtin_ia32_rdtsc();
}
#else
static uint64_t ticks(void)
{
	return now_ns();
}
#endif

/* Clock ticks of ticks() in a nanosecond. */
static double calibrate(void)
{
	uint64_t t0 = ticks(), n0 = now_ns(), n1;

	do {
		n1 = now_ns();
	} while (n1 - n0 < 50000000);
	return (double)(ticks() - t0) / (double)(n1 - n0);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static size_t spin(uint32_t *gaps, double per_ns, double seconds)
{
	uint64_t limit = (uint64_t)(GAP_NS * per_ns), last = ticks(), now;
	uint64_t end = last + (uint64_t)(seconds * 1e9 * per_ns);
	size_t nr = 0;

	while (last < end) {
		now = ticks();
		if (now - last > limit && nr < GAPS_MAX)
			gaps[nr++] = (uint32_t)((double)(now - last) / per_ns);
		last = now;
	}
	return nr;
}

int main(int argc, char **argv)
{
	struct sched_param rt = { .sched_priority = 50 };
	uint32_t *gaps = malloc(GAPS_MAX * sizeof(*gaps));
	cpu_set_t set;
	double per_ns;
	size_t nr;

	if (argc != 3 || !gaps) {
		fputs("usage: spinner CPU SECONDS\n", stderr);
		return 2;
	}
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[1]), &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0 ||
	    sched_setscheduler(0, SCHED_FIFO, &rt) < 0) {
		perror("spinner");
		return 1;
	}
	for (size_t i = 0; i < GAPS_MAX; i += 1024)
		gaps[i] = 1; /* touched before it counts */
	per_ns = calibrate();
	nr = spin(gaps, per_ns, atof(argv[2]));
	qsort(gaps, nr, sizeof(*gaps), by_value);
	printf("%zu %u\n", nr, nr ? gaps[nr / 2] : 0);
	return 0;
}
