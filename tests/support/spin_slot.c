/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests/system/exec-twice.sh, linked statically and at a fixed address, once for each SLOT:
 * spin_slot LOG ITERATIONS [PROGRAM ITERATIONS] works, SLOT + 1 times so long, appends "SLOT
 * NANOSECONDS" of its own CPU time to descriptor LOG, and executes the next program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "slot.h"

static void (*volatile const slots[NR_SLOTS])(unsigned long n) = { slot_0, slot_1, slot_2 };
static volatile const int slot = SLOT;

static unsigned long long cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

int main(int argc, char **argv)
{
	unsigned long long start;
	unsigned long n;
	char line[64];
	int len;

	if (argc < 3)
		return 2;
	start = cpu_ns();
	/* Not all the same, so that no mean hides whose time it was. */
	n = strtoul(argv[2], NULL, 10) / 2 * (unsigned long)(slot + 1);
	slots[slot](n);
	shared(n);
	len = snprintf(line, sizeof(line), "%d %llu\n", slot, cpu_ns() - start);
	if (write(atoi(argv[1]), line, (size_t)len) != len)
		return 1;
	if (argc < 5)
		return 0;
	/* The next one finds itself where this one was. */
	argv[2] = argv[1];
	argv[1] = argv[3];
	argv[3] = argv[4];
	argv[4] = NULL;
	execv(argv[1], argv + 1);
	return 1;
}
