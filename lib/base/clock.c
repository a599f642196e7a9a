/* SPDX-License-Identifier: BSD-2-Clause */
#include <time.h>

#include "base.h"

uint64_t base_now_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
