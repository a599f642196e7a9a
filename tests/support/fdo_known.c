/* SPDX-License-Identifier: BSD-2-Clause */
/* A program whose branches go known ways, for tests/system/fdo.sh: it runs for so many seconds.
 * With NEXT it is its next version, with a new procedure and a new branch. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned int sink;

#ifdef NEXT
__attribute__((noinline)) static unsigned int least(unsigned int n)
{
	return n ? n : 1;
}
#endif

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
#ifdef NEXT
	if (n > 1000)
		sink = least(sink);
#endif
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
