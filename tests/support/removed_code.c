/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests/system/removed-files.sh: a library of which no file is left, another one for each SLOT.
 */
#include <time.h>

#include "removed_code.h"

static volatile unsigned long sum;

__attribute__((noinline)) static void removed_loop(void)
{
	for (unsigned long i = 0; i < 1000000 + SLOT; i++)
		sum += i;
}

/* CPU time: on a busy machine it has as many samples. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void removed_work(double seconds)
{
	double until = now() + seconds;

	while (now() < until)
		removed_loop();
}
