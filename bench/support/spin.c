/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "spin.h"

enum { GAPS_MAX = 1 << 22, GAP_NS = 1000, TRIALS = 10001 };

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

/* What a step takes, most of which are not interrupted. */
static double time_work(struct spin *s)
{
	uint64_t before;

	for (size_t i = 0; i < TRIALS; i++) {
		before = ticks();
		s->work();
		s->gaps[i] = (uint32_t)(ticks() - before);
	}
	qsort(s->gaps, TRIALS, sizeof(*s->gaps), by_value);
	return s->gaps[TRIALS / 2] / s->per_ns; /* NOLINT(bugprone-integer-division) */
}

int spin_begin(struct spin *s, int cpu, void (*work)(void))
{
	struct sched_param rt = { .sched_priority = 50 };
	cpu_set_t set;

	*s = (struct spin){ .gaps = malloc(GAPS_MAX * sizeof(*s->gaps)), .work = work };
	if (!s->gaps)
		return -1;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0 ||
	    sched_setscheduler(0, SCHED_FIFO, &rt) < 0)
		return -1;
	for (size_t i = 0; i < GAPS_MAX; i += 1024)
		s->gaps[i] = 1; /* touched before it counts */
	s->per_ns = calibrate();
	if (work)
		s->work_ns = time_work(s);
	return 0;
}

void spin_for(struct spin *s, double seconds)
{
	uint64_t limit = (uint64_t)((GAP_NS + s->work_ns) * s->per_ns), last = ticks(), now;
	uint64_t end = last + (uint64_t)(seconds * 1e9 * s->per_ns);

	s->nr = 0;
	while (last < end) {
		if (s->work)
			s->work();
		now = ticks();
		if (now - last > limit && s->nr < GAPS_MAX)
			s->gaps[s->nr++] = (uint32_t)((double)(now - last) / s->per_ns);
		last = now;
	}
	qsort(s->gaps, s->nr, sizeof(*s->gaps), by_value);
}

uint32_t spin_median(const struct spin *s)
{
	return s->nr ? s->gaps[s->nr / 2] : 0;
}
