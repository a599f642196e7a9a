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

static volatile unsigned int sink;

HOT static void sixty(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sink += i;
}

HOT static void thirty(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sink += i;
}

HOT static void ten(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sink += i;
}

struct part {
	const char *name;
	void (*run)(unsigned int n);
	unsigned int weight;
	double seconds; /* that it took by its own clock */
	uint64_t ticks;
};

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Runs one after another must not repeat each other. */
static unsigned int seed(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (unsigned int)ts.tv_nsec;
}

static void work(struct part *parts, double seconds)
{
	while (cpu_seconds() < seconds) {
		for (int i = 0; i < 3; i++) {
			double from = cpu_seconds();

			/* Of random length: what goes in step with the tick is not sampled fairly.
			 * Long: on a busy machine a question for CPU time can end a thread's turn,
			 * before the tick that would have found it. */
			parts[i].run(parts[i].weight * (250000 + (unsigned int)rand() % 500000));
			parts[i].seconds += cpu_seconds() - from;
		}
	}
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

	if (!elements || sprofil(regions, 2, &tick, PROF_UINT) < 0) {
		perror("sprofil");
		return 1;
	}
	srand(seed());
	work(parts, argc > 1 ? atof(argv[1]) : 2);
	sprofil(NULL, 0, NULL, 0);
	add_up(parts, elements, nr);
	printf("a tick is %.3f ms\n", (double)tick.tv_usec / 1e3);
	for (struct part *p = parts; p < parts + 3; p++)
		printf("%-8s %6" PRIu64 " ticks %8.3f s, by its clock %8.3f s\n", p->name, p->ticks,
		       (double)p->ticks * (double)tick.tv_usec / 1e6, p->seconds);
	printf("%-8s %6" PRIu32 " ticks\n", "the rest", rest);
	free(elements);
	return 0;
}
