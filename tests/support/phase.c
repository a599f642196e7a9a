/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * phase timer|loop PERIOD_NS SECONDS [LATER_NS]: two routines by turns, half of PERIOD_NS each, in
 * step with a sampler of that period; LATER_NS moves their changes. "timer": the clock says when to
 * change; "loop": loops tuned to it at start, and trimmed to stay in step. Ends after SECONDS of
 * CPU time, and prints its parts: "NAME PERCENT". CPU time goes on while a virtual machine's host
 * runs something else, and one sample comes of it: a turn counts for 5 ms at most.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURN_MAX_NS 5000000u

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define ROUTINE(name)                                                                              \
	__attribute__((noinline, aligned(64))) static void name(uint64_t turns)                    \
	{                                                                                          \
		for (; turns; turns--)                                                             \
			__asm__ volatile("# " #name);                                              \
	}
ROUTINE(phase_a)
ROUTINE(phase_b)

static uint64_t period, later;

static bool is_second_half(void)
{
	return (now_ns(CLOCK_MONOTONIC) - later) % period >= period / 2;
}

/* Turns of a tenth of a half period: short enough to change on time. */
static uint64_t tuned_turns(void)
{
	uint64_t turns = 1000000, best = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		uint64_t start = now_ns(CLOCK_MONOTONIC), took;

		phase_a(turns);
		took = now_ns(CLOCK_MONOTONIC) - start;
		best = took < best ? took : best;
	}
	return (uint64_t)((double)turns * (double)period / 2 / (double)best);
}

/* A slow loop takes longer than the period now and then: not as long as this. */
static uint64_t turn_ns(uint64_t *last)
{
	uint64_t now = now_ns(CLOCK_PROCESS_CPUTIME_ID), ns = now - *last;

	*last = now;
	return ns < TURN_MAX_NS ? ns : TURN_MAX_NS;
}

int main(int argc, char **argv)
{
	uint64_t length, turns, ns_in[2] = { 0 }, last;
	bool by_timer;

	if (argc < 4 || argc > 5 || (strcmp(argv[1], "timer") && strcmp(argv[1], "loop"))) {
		fputs("usage: phase timer|loop PERIOD_NS SECONDS [LATER_NS]\n", stderr);
		return 2;
	}
	by_timer = argv[1][0] == 't';
	period = strtoull(argv[2], NULL, 10);
	later = argc == 5 ? strtoull(argv[4], NULL, 10) : 0;
	turns = tuned_turns();
	length = (uint64_t)(atof(argv[3]) * 1e9);
	last = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int which = 0; ns_in[0] + ns_in[1] < length; which = !which) {
		void (*run)(uint64_t) = which ? phase_b : phase_a;

		if (by_timer) {
			while (is_second_half() == which)
				run(turns / 100);
		} else {
			/* Interruptions push the loop out of step; at a boundary it waits for the
			 * clock in the routine whose turn ends. */
			run(turns * 97 / 100);
			while (is_second_half() == which)
				run(turns / 200);
		}
		ns_in[which] += turn_ns(&last);
	}
	for (int i = 0; i < 2; i++)
		printf("phase_%c %.3f\n", 'a' + i,
		       100 * (double)ns_in[i] / (double)(ns_in[0] + ns_in[1]));
	return 0;
}
