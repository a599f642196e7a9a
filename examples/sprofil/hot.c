/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that profiles itself: three functions, an element for each 4 bytes of code, and one
 * for all the rest. usage: hot [SECONDS]
 *
 *	cc hot.c $(pkg-config --cflags --libs sprofil) -o hot && ./hot
 */
#include <sprofil.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Functions in a section of their own lie side by side; the linker names its ends. */
#define HOT __attribute__((noinline, noclone, section("hot")))
extern char __start_hot[], __stop_hot[];

static volatile uint64_t sink = 1;

/* One turn of a loop: divisions, each of which waits for the last, take the same time wherever the
 * code lies. */
#define TURN(x) (UINT64_MAX / (UINT64_MAX / (UINT64_MAX / (x) + 3) + 5))

HOT static void sixty(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sink = TURN(sink);
}

HOT static void thirty(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sink = TURN(sink);
}

HOT static void ten(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sink = TURN(sink);
}

struct part {
	const char *name;
	void (*run)(unsigned int n);
	unsigned int weight;
	uint64_t turns;
	uint64_t ticks;
};

static double seconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Runs one after another must not repeat each other. */
static unsigned int seed(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (unsigned int)ts.tv_nsec;
}

/*
 * How long each function takes is known by its turns: where programs share a CPU, one that asks for
 * its CPU time can lose the CPU then, before the tick that would have found it. Of random length:
 * what goes in step with the tick is not sampled fairly.
 */
static void work(struct part *parts, double length)
{
	double end = seconds(CLOCK_MONOTONIC) + length;

	do {
		for (struct part *p = parts; p < parts + 3; p++) {
			unsigned int n = p->weight * (1000 + (unsigned int)rand() % 2000);

			p->run(n);
			p->turns += n;
		}
	} while (seconds(CLOCK_MONOTONIC) < end);
}

/* An element belongs to the function that begins last at or below it. */
static void add_up(struct part *parts, const uint32_t *elements, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		uintptr_t pc = (uintptr_t)__start_hot + 4 * i, best = 0;
		struct part *owner = NULL;

		for (struct part *p = parts; p < parts + 3; p++) {
			if ((uintptr_t)p->run <= pc && (uintptr_t)p->run >= best) {
				best = (uintptr_t)p->run;
				owner = p;
			}
		}
		if (owner)
			owner->ticks += elements[i];
	}
}

int main(int argc, char **argv)
{
	struct part parts[] = { { "sixty", sixty, 60, 0, 0 },
				{ "thirty", thirty, 30, 0, 0 },
				{ "ten", ten, 10, 0, 0 } };
	size_t nr = ((size_t)(__stop_hot - __start_hot) + 3) / 4;
	uint32_t *elements = calloc(nr, sizeof(*elements)), rest = 0;
	struct prof regions[] = {
		/* 65536 is 1: a byte of elements for each byte of code */
		{ elements, (unsigned int)(nr * sizeof(*elements)), __start_hot, 65536 },
		{ &rest, sizeof(rest), NULL, 2 }, /* everything else */
	};
	struct timeval tick;
	double taken, turns;

	if (!elements || sprofil(regions, 2, &tick, PROF_UINT) < 0) {
		perror("sprofil");
		return 1;
	}
	srand(seed());
	work(parts, argc > 1 ? atof(argv[1]) : 2);
	sprofil(NULL, 0, NULL, 0);
	taken = seconds(CLOCK_PROCESS_CPUTIME_ID);
	turns = (double)(parts[0].turns + parts[1].turns + parts[2].turns);
	add_up(parts, elements, nr);
	printf("a tick is %.3f ms\n", (double)tick.tv_usec / 1e3);
	for (struct part *p = parts; p < parts + 3; p++)
		printf("%-8s %6" PRIu64 " ticks %8.3f s, by its turns %8.3f s\n", p->name, p->ticks,
		       (double)p->ticks * (double)tick.tv_usec / 1e6,
		       taken * (double)p->turns / turns);
	printf("%-8s %6" PRIu32 " ticks\n", "the rest", rest);
	free(elements);
	return 0;
}
