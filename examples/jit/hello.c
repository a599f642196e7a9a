/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The least that a JIT must do to be seen by DCPI: begin, register each routine, end. Three
 * routines, made at run time, count down; "sixty" does six times the work of "ten".
 *
 *	cc hello.c $(pkg-config --cflags --libs dbgdyn) -o hello && ./hello [SECONDS]
 *
 * SECONDS of CPU time: on a busy machine it takes longer, and has as many samples.
 */
#include <dbgdyn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Decrement the argument to 0, then return. */
#if defined(__x86_64__)
static const unsigned char countdown[] = {
	0x48, 0xff, 0xcf, /* dec rdi */
	0x75, 0xfb,	  /* jnz back */
	0xc3,		  /* ret */
};
#elif defined(__aarch64__)
static const unsigned int countdown[] = {
	0xf1000400, /* subs x0, x0, #1 */
	0x54ffffe1, /* b.ne back */
	0xd65f03c0, /* ret */
};
#else
#error "hello speaks x86-64 and aarch64 only"
#endif

static struct routine {
	const char *name;
	unsigned long turns;
	void (*run)(unsigned long turns);
	double seconds; /* CPU time that it took, as we measure it */
} routines[] = { { .name = "sixty", .turns = 600000 },
		 { .name = "thirty", .turns = 300000 },
		 { .name = "ten", .turns = 100000 } };

#define NR_ROUTINES (sizeof(routines) / sizeof(routines[0]))
#define APART	    64 /* bytes between two routines */

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double all = 0, last, end = argc > 1 ? atof(argv[1]) : 2;
	dbgdyn_context context;
	unsigned char *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return perror("hello: mmap"), 1;
	for (size_t i = 0; i < NR_ROUTINES; i++) {
		memcpy(code + i * APART, countdown, sizeof(countdown));
		routines[i].run = (void (*)(unsigned long))(void *)(code + i * APART);
	}
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC) < 0)
		return perror("hello: mprotect"), 1;
	__builtin___clear_cache((char *)code, (char *)code + 4096);

	dbgdyn_begin("hello", strlen("hello"), NULL, &context);
	for (size_t i = 0; i < NR_ROUTINES; i++) {
		struct dbgdyn_routine r = { .size = sizeof(r),
					    .name = { routines[i].name, strlen(routines[i].name) },
					    .code = code + i * APART,
					    .code_len = sizeof(countdown) };

		dbgdyn_register(context, &r, NULL);
	}

	last = cpu_seconds();
	while (last < end)
		for (size_t i = 0; i < NR_ROUTINES; i++) {
			/* Of random length, so that no sampler's period keeps step with it. */
			routines[i].run(routines[i].turns / 8 * (1 + (unsigned long)rand() % 15));
			double now = cpu_seconds();

			routines[i].seconds += now - last;
			all += now - last;
			last = now;
		}

	dbgdyn_end(context); /* waits until the image is on disk, if a daemon runs */
	for (size_t i = 0; i < NR_ROUTINES; i++)
		printf("%-8s %5.1f %%\n", routines[i].name, 100 * routines[i].seconds / all);
	return fflush(stdout) ? perror("hello"), 1 : 0;
}
