/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jit_load SECONDS [RATE [DIR]]: a busy JIT. A thread for each CPU makes routines in memory of its
 * own, 500 at once and RATE (1,000) more each second, registers them with libdbgdyn, or writes them
 * to DIR/jit-PID.dump, and runs them by turns. Prints how many times it ran one, and on a
 * second line how many nanoseconds it took on average to tell of one.
 */
#include "jit_code.h"
#include "jitdump.h"

#include <dbgdyn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FIRST = 500, THREADS_MAX = 256 };

static dbgdyn_context context;
static double seconds, rate = 1000;
static FILE *dump;

struct worker {
	pthread_t thread;
	size_t calls, told;
	double telling; /* seconds */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void make(struct worker *w, struct jit_code *j)
{
	unsigned char *code = jit_code_make(j);
	char name[32];
	double start;
	struct dbgdyn_routine r = {
		.size = sizeof(r), .name = { name, 0 }, .code = code, .code_len = jit_code_len
	};

	r.name.len = (size_t)snprintf(name, sizeof(name), "routine_%p", (void *)code);
	start = now();
	if (dump)
		jitdump_write(dump, code, jit_code_len, name, j->nr - 1);
	else
		dbgdyn_register(context, &r, NULL);
	w->telling += now() - start;
	w->told++;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	double start = now(), t = start;
	unsigned int seed = 1;
	struct jit_code j;

	if (jit_code_begin(&j) < 0)
		return NULL;
	while (j.nr < FIRST)
		make(w, &j);
	while ((t = now()) < start + seconds) {
		while (j.nr < JIT_CODE_MAX && j.nr < FIRST + (size_t)((t - start) * rate))
			make(w, &j);
		for (int i = 0; i < 20; i++, w->calls++)
			jit_code_call(&j, 1000 + (unsigned long)rand_r(&seed) % 9000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long nr = sysconf(_SC_NPROCESSORS_ONLN);
	static struct worker workers[THREADS_MAX];
	struct worker sum = { 0 };

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
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			return 1;
	for (long i = 0; i < nr; i++) {
		pthread_join(workers[i].thread, NULL);
		sum.calls += workers[i].calls;
		sum.told += workers[i].told;
		sum.telling += workers[i].telling;
	}
	dbgdyn_end(context);
	printf("%zu\n%.0f\n", sum.calls, sum.telling * 1e9 / (double)sum.told);
	return 0;
}
