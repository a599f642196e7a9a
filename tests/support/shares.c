/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shares SECONDS: routines of two images (the last two stand in libshares.so) that share the CPU by
 * known parts, in slices whose lengths are drawn from a fixed seed (the same work each time, in
 * step with no sampler). Prints each routine's part of the CPU time, by the process's own clock:
 * "NAME PERCENT". That goes on while a virtual machine's host runs something else, and one sample
 * comes of it: a slice, of a fraction of a millisecond, counts for 5 ms at most.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "shares.h"

SHARES_ROUTINE(share_a)
SHARES_ROUTINE(share_b)
SHARES_ROUTINE(share_c)

static struct {
	const char *name;
	void (*run)(uint64_t turns);
	uint64_t weight;
	double seconds;
} parts[] = {
	{ "share_a", share_a, 40, 0 }, { "share_b", share_b, 25, 0 }, { "share_c", share_c, 20, 0 },
	{ "share_d", share_d, 10, 0 }, { "share_e", share_e, 5, 0 },
};

enum { NR_PARTS = sizeof(parts) / sizeof(*parts) };

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double step(double *last)
{
	double now = cpu_seconds(), took = now - *last;

	*last = now;
	return took < 5e-3 ? took : 5e-3;
}

int main(int argc, char **argv)
{
	double last = cpu_seconds(), all = 0, length = argc > 1 ? atof(argv[1]) : 5;

	srand(1);
	while (all < length)
		for (int i = 0; i < NR_PARTS; i++) {
			double took;

			parts[i].run(parts[i].weight * (500 + (uint64_t)rand() % 20000));
			took = step(&last);
			parts[i].seconds += took;
			all += took;
		}
	for (int i = 0; i < NR_PARTS; i++)
		printf("%s %.3f\n", parts[i].name, 100 * parts[i].seconds / all);
	return 0;
}
