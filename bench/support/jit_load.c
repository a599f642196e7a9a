/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jit_load SECONDS [RATE [DIR]]: a busy JIT. A thread for each CPU makes routines in memory of its
 * own, 500 at once and RATE (1,000) more each second, registers them with libdbgdyn, or writes them
 * to DIR/jit-PID.dump, and runs them by turns. Prints how many times it ran one.
 */
#include "jitdump.h"

#include <dbgdyn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FIRST = 500, ROUTINES_MAX = 100000, APART = 64, THREADS_MAX = 256 };

/* Decrement the argument to 0, then return. */
#if defined(__x86_64__)
static const unsigned char countdown[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#elif defined(__aarch64__)
static const unsigned int countdown[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
#else
#error "jit_load speaks x86-64 and aarch64 only"
#endif

static uint64_t context;
static double seconds, rate = 1000;
static FILE *dump;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void make(unsigned char *arena, size_t i)
{
	unsigned char *code = arena + i * APART;
	char name[32];
	struct dbgdyn_routine r = {
		.size = sizeof(r), .name = { name, 0 }, .code = code, .code_len = sizeof(countdown)
	};

	r.name.len = (size_t)snprintf(name, sizeof(name), "routine_%p", (void *)code);
	memcpy(code, countdown, sizeof(countdown));
	__builtin___clear_cache((char *)code, (char *)code + sizeof(countdown));
	if (dump)
		jitdump_write(dump, code, sizeof(countdown), name, i);
	else
		dbgdyn_register(context, &r, NULL);
}

static void *work(void *nr_calls)
{
	unsigned char *arena =
		mmap(NULL, (size_t)ROUTINES_MAX * APART, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double start = now(), t = start;
	unsigned int seed = 1;
	size_t nr = 0, calls = 0;

	if (arena == MAP_FAILED)
		return NULL;
	while (nr < FIRST)
		make(arena, nr++);
	while ((t = now()) < start + seconds) {
		while (nr < ROUTINES_MAX && nr < FIRST + (size_t)((t - start) * rate))
			make(arena, nr++);
		for (int i = 0; i < 20; i++, calls++) {
			unsigned char *code = arena + (size_t)rand_r(&seed) % nr * APART;

			((void (*)(unsigned long))(void *)code)(
				1000 + (unsigned long)rand_r(&seed) % 9000);
		}
	}
	*(size_t *)nr_calls = calls;
	return NULL;
}

int main(int argc, char **argv)
{
	long nr = sysconf(_SC_NPROCESSORS_ONLN);
	size_t calls[THREADS_MAX] = { 0 }, sum = 0;
	pthread_t threads[THREADS_MAX];

	if (argc < 2 || nr < 1 || nr > THREADS_MAX) {
		fputs("usage: jit_load SECONDS [RATE [DIR]]\n", stderr);
		return 2;
	}
	seconds = atof(argv[1]);
	rate = argc > 2 ? atof(argv[2]) : rate;
	if (argc > 3 && !(dump = jitdump_open(argv[3])))
		return perror("jit_load: jitdump"), 1;
	dbgdyn_begin("jit_load", strlen("jit_load"), NULL, &context);
	for (long i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, work, &calls[i]) != 0)
			return 1;
	for (long i = 0; i < nr; i++) {
		pthread_join(threads[i], NULL);
		sum += calls[i];
	}
	dbgdyn_end(context);
	printf("%zu\n", sum);
	return 0;
}
