/* SPDX-License-Identifier: BSD-2-Clause */
/* The time that the machine was suspended since it was booted is read here. */
#include <time.h>

#include "base.h"

uint64_t base_boot_ahead_ns(void)
{
#ifdef CLOCK_BOOTTIME
	uint64_t now = base_now_ns(), boot_ns;
	struct timespec boot = { 0 };

	clock_gettime(CLOCK_BOOTTIME, &boot);
	boot_ns = (uint64_t)boot.tv_sec * 1000000000u + (uint64_t)boot.tv_nsec;
	return boot_ns > now ? boot_ns - now : 0;
#else
	return 0;
#endif
}
