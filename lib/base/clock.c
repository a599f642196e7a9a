/* SPDX-License-Identifier: BSD-2-Clause */
/* The clocks of the system are read here. */
#include <time.h>

#include "base.h"

uint64_t base_clock_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t base_now_ns(void)
{
	return base_clock_ns(CLOCK_MONOTONIC);
}
