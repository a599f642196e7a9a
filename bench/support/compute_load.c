/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compute_load SECONDS: compute-bound work on every CPU, alike each time: sorting, hashing,
 * formatting, floating point; some thousand addresses. Prints rounds done.
 */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ITEMS = 4096, THREADS_MAX = 256 };

static double seconds;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t hash_text(const char *s)
{
	uint64_t h = 14695981039346656037u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211u;
	return h;
}

static uint64_t format_all(const uint64_t *items)
{
	uint64_t sum = 0;
	char text[64];

	for (size_t i = 0; i < ITEMS / 8; i++) {
		snprintf(text, sizeof(text), "%llx-%lld", (unsigned long long)items[i],
			 (long long)(items[i] >> 3));
		sum += hash_text(text);
	}
	return sum;
}

static double series(uint64_t n)
{
	double s = 0;

	for (uint64_t i = 1; i < n; i++)
		s += sin((double)i) / sqrt((double)i);
	return s;
}

static void *work(void *arg)
{
	uint64_t state = 88172645463325252u, items[ITEMS], rounds = 0;
	volatile double keep = 0;
	double end = now() + seconds;

	while (now() < end) {
		for (size_t i = 0; i < ITEMS; i++)
			items[i] = next_random(&state);
		qsort(items, ITEMS, sizeof(*items), by_value);
		keep += (double)format_all(items) + series(ITEMS);
		rounds++;
	}
	*(uint64_t *)arg = rounds;
	return NULL;
}

int main(int argc, char **argv)
{
	long nr = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t threads[THREADS_MAX];
	uint64_t rounds[THREADS_MAX], sum = 0;

	if (argc < 2 || nr < 1 || nr > THREADS_MAX) {
		fputs("usage: compute_load SECONDS\n", stderr);
		return 2;
	}
	seconds = atof(argv[1]);
	for (long i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, work, &rounds[i]) != 0)
			return 1;
	for (long i = 0; i < nr; i++) {
		pthread_join(threads[i], NULL);
		sum += rounds[i];
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
