/* SPDX-License-Identifier: BSD-2-Clause */
#include "burn.h"

#include <time.h>

uint64_t burn_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void burn(uint64_t ns)
{
	uint64_t end = burn_cpu_ns() + ns;

	while (burn_cpu_ns() < end)
		for (volatile int i = 0; i < 2000; i++)
			;
}
