/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * million_jit [OPTION…]: a JIT with very much code: routines of 256 bytes, with names of 40 bytes
 * and 10 lines of one file, one behind the other, all told as fast as it can and then run by turns.
 *	-routines N    (1000000)
 *	-seconds S     run them for so long (2)
 *	-warm          tell of them while it runs 50 of them, which it tells of first, so that
 *	               the last is told when the time is over
 *	-again         as -warm, each told twice, so that addresses change their lifetime all the
 *	               time
 *	-untold        tell nobody
 *	-jitdump DIR   tell of them by DIR/jit-PID.dump, not by libdbgdyn
 *	-wait          before END wait for a line of standard input
 * Prints "told SECONDS", "ran CALLS", "end SECONDS RESULT": of dbgdyn_end, which waits for the
 * image.
 */
#include "jit_code.h"
#include "jitdump.h"

#include <dbgdyn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { CODE = 256, NAME = 40, LINES = 10, HOT = 50, SPREAD = 7919 /* a prime */ };
#define BASE                                                                                       \
	0x300000000000ull /* where it may be had, so that the code can be told by its address */

static struct {
	size_t routines;
	double seconds;
	const char *jitdump;
	int wait, warm, again, unannounced;
} o = { .routines = 1000000, .seconds = 2 };

static unsigned char *code;
static struct dbgdyn_line lines[LINES];
static const struct dbgdyn_string source = { "/home/me/src/engine/fib.js", 26 };
static dbgdyn_context context;
static FILE *dump;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static double since(uint64_t start_ns)
{
	return (double)(now_ns() - start_ns) * 1e-9;
}

/* No two have the same bytes. */
static void make_code(void)
{
	code = mmap((void *)BASE, o.routines * CODE, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED) {
		perror("million_jit: memory");
		exit(1);
	}
	for (size_t i = 0; i < o.routines; i++) {
		memset(code + i * CODE, 0x90 + (int)(i % 7), CODE);
		jit_code_put(code + i * CODE);
		memcpy(code + (i + 1) * CODE - sizeof(i), &i, sizeof(i));
	}
	__builtin___clear_cache((char *)code, (char *)code + o.routines * CODE);
	for (uint32_t i = 0; i < LINES; i++)
		lines[i] = (struct dbgdyn_line){ .code_off = i * 25, .line = 100 + i };
}

/* ---- by libdbgdyn ---------------------------------------------------------------------------- */

static void tell(size_t i, const char *name)
{
	struct dbgdyn_routine r = { .size = sizeof(r),
				    .name = { name, NAME },
				    .code = code + i * CODE,
				    .code_len = CODE,
				    .lines = lines,
				    .nr_lines = LINES,
				    .files = &source,
				    .nr_files = 1 };
	int result = dbgdyn_register(context, &r, NULL);

	if (result < 0) {
		fprintf(stderr, "million_jit: dbgdyn_register: %d\n", result);
		exit(1);
	}
}

static void begin(void)
{
	struct dbgdyn_options opts = { .size = sizeof(opts), .timeout_ms = 300000 };
	int result = dbgdyn_begin("million", 7, &opts, &context);

	if (result < 0) {
		fprintf(stderr, "million_jit: dbgdyn_begin: %d\n", result);
		exit(1);
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void tell_any(size_t i)
{
	char name[64];

	snprintf(name, sizeof(name), "Engine.compile.routine(int, float)/%05zx", i);
	if (o.jitdump)
		jitdump_write(dump, code + i * CODE, CODE, name, i);
	else if (!o.unannounced)
		tell(i, name);
}

static void call(size_t i)
{
	((void (*)(unsigned long))(void *)(code + i * CODE))(20000);
}

static void tell_all(void)
{
	uint64_t start = now_ns();

	for (size_t i = 0; i < o.routines; i++)
		tell_any(i);
	printf("told %.3f\n", since(start));
}

static size_t run(void)
{
	uint64_t start = now_ns();
	unsigned int seed = 1;
	size_t calls = 0;

	while (since(start) < o.seconds)
		for (int i = 0; i < 20; i++, calls++)
			call((size_t)rand_r(&seed) % o.routines);
	return calls;
}

/* Those that run stand far apart, among those that are told meanwhile. */
static size_t run_warm(void)
{
	uint64_t start = now_ns();
	size_t apart = o.routines / HOT, calls = 0, next = 0;

	for (size_t i = 0; i < HOT; i++)
		tell_any(i * apart);
	while (since(start) < o.seconds) {
		size_t due = (size_t)(since(start) / o.seconds * (double)o.routines);

		for (; next < due && next < HOT * apart; next++) {
			/* Neighbours of each that runs, in the same block and not, all the time. */
			size_t hot = next % HOT * apart, i = hot + next / HOT * SPREAD % apart;

			if (i != hot)
				tell_any(i);
			if (o.again)
				tell_any(hot + 1);
		}
		call(calls++ % HOT * apart);
	}
	return calls;
}

static int options(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";

		o.wait |= !strcmp(name, "-wait");
		o.unannounced |= !strcmp(name, "-untold");
		o.again |= !strcmp(name, "-again");
		o.warm |= !strcmp(name, "-warm") || !strcmp(name, "-again");
		if (!strcmp(name, "-wait") || !strcmp(name, "-untold") || !strcmp(name, "-warm") ||
		    !strcmp(name, "-again"))
			continue;
		if (!strcmp(name, "-routines"))
			o.routines = strtoull(value, NULL, 0);
		else if (!strcmp(name, "-seconds"))
			o.seconds = strtod(value, NULL);
		else if (!strcmp(name, "-jitdump"))
			o.jitdump = value;
		else
			return -1;
		i++;
	}
	return o.routines >= HOT ? 0 : -1;
}

int main(int argc, char **argv)
{
	uint64_t start;
	int result = 0;

	if (options(argc, argv) < 0) {
		fputs("usage: million_jit [-routines N] [-seconds S] [-warm|-again] [-untold] "
		      "[-jitdump DIR] [-wait]\n",
		      stderr);
		return 2;
	}
	make_code();
	if (o.jitdump && !(dump = jitdump_open(o.jitdump)))
		return perror("million_jit: jitdump"), 1;
	if (!o.jitdump && !o.unannounced)
		begin();
	if (!o.warm)
		tell_all();
	printf("ran %zu\n", o.warm ? run_warm() : run());
	fflush(stdout);
	if (o.wait)
		getchar();
	start = now_ns();
	if (o.jitdump)
		fclose(dump);
	else if (!o.unannounced)
		result = dbgdyn_end(context);
	printf("end %.3f %d\n", since(start), result);
	return result < 0;
}
