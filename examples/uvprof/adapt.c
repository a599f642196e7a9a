/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A loop that adapts itself: a handler counts the interrupts in each of its operations, and the
 * operation with the most is replaced by its special version. usage: adapt
 *
 *	cc adapt.c $(pkg-config --cflags --libs uvprof) -o adapt && ./adapt
 */
#include <uvprof.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { NR_KINDS = 3, ENOUGH = 20 };

/* Functions in a section of their own lie side by side, so the handler can tell them by address. */
#define HOT __attribute__((noinline, noclone, section("hot")))
extern char __stop_hot[];

static volatile unsigned int sink;

HOT static unsigned int slow_square(unsigned int n)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += sink + n;
	return sum;
}

static unsigned int fast_square(unsigned int n)
{
	return n * (sink + n);
}

HOT static unsigned int slow_sum(unsigned int n)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < n / 16; i++)
		sum += sink + i;
	return sum;
}

HOT static unsigned int constant(unsigned int n)
{
	return sink + n;
}

typedef unsigned int operation(unsigned int n);

static operation *const plain[NR_KINDS] = { constant, slow_square, slow_sum };
static operation *const special[NR_KINDS] = { constant, fast_square, slow_sum };
static const char *const names[NR_KINDS] = { "constant", "square", "sum" };
static operation *current[NR_KINDS] = { constant, slow_square, slow_sum };
static volatile uint64_t seen[NR_KINDS];

/* The operation that begins last at or below the pc has it. */
static void at_interrupt(void *arg, void *pc, void *context)
{
	uintptr_t best = 0;
	int kind = -1;

	(void)arg;
	(void)context;
	for (int i = 0; i < NR_KINDS && (char *)pc < __stop_hot; i++) {
		uintptr_t begin = (uintptr_t)plain[i];

		if (begin <= (uintptr_t)pc && begin >= best) {
			best = begin;
			kind = i;
		}
	}
	if (kind >= 0)
		seen[kind]++;
}

static double seconds_of(unsigned int rounds)
{
	struct timespec from, to;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (unsigned int i = 0; i < rounds; i++) {
		for (int kind = 0; kind < NR_KINDS; kind++)
			sink = current[kind](1000) & 0xff;
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

static int hottest(void)
{
	int best = 0;

	for (int i = 1; i < NR_KINDS; i++) {
		if (seen[i] > seen[best])
			best = i;
	}
	return best;
}

int main(void)
{
	struct uvprof_request request = { at_interrupt, NULL, 1000000, UVPROF_TASK_CLOCK,
					  UVPROF_ANY };
	double before = seconds_of(1000), after;
	int best;

	if (uvprof_start(&request) < 0) {
		perror("uvprof_start");
		return 1;
	}
	do {
		seconds_of(1000);
		best = hottest();
	} while (seen[best] < ENOUGH);
	uvprof_stop();
	current[best] = special[best];
	after = seconds_of(1000);
	for (int i = 0; i < NR_KINDS; i++)
		printf("%-10s %6" PRIu64 " interrupts\n", names[i], seen[i]);
	printf("%s replaced: %.6f s, then %.6f s\n", names[best], before, after);
	return 0;
}
