/* SPDX-License-Identifier: BSD-2-Clause */
/* A program whose branches go known ways, for tests/system/fdo.sh: it runs for so many seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned int sink;

/* The second way of each branch is taken once in eight, and once in sixteen calls. */
__attribute__((noinline)) void known(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (i & 7)
			sink += i;
		else
			sink ^= 3 * i + 1;
	}
	if (n & 1)
		sink++;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double end = now() + (argc > 1 ? atof(argv[1]) : 1);

	while (now() < end)
		for (unsigned int i = 0; i < 4096; i++)
			known(16 + !(i & 15));
	printf("%u\n", sink);
	return 0;
}
