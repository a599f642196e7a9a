/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jit_values MILLISECONDS TURNS: a JIT whose routines c_0 to c_7 take turns at one address, each
 * alike but for its constants: eax is 0x1000 (N + 1), edx one more and its argument, 7 N + 1000.
 */
#include <dbgdyn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { ROUTINES = 8, ROUNDS = 6 };

#if defined(__x86_64__)
/* again: mov $C, %eax; lea C + 1(%rdi), %edx; dec %rsi; jnz again; ret */
static const unsigned char code[] = { 0xb8, 0, 0,    0,	   0,	 0x8d, 0x97, 0,	  0,
				      0,    0, 0x48, 0xff, 0xce, 0x75, 0xf0, 0xc3 };
#else
#error "jit_values speaks x86-64 only"
#endif

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void put(unsigned char *at, int number, dbgdyn_context context, dbgdyn_handle *handle)
{
	uint32_t constants[2] = { 0x1000 * ((uint32_t)number + 1) };
	char name[8];
	struct dbgdyn_routine r = { .size = sizeof(r),
				    .name = { name, (size_t)sprintf(name, "c_%d", number) },
				    .code = at,
				    .code_len = sizeof(code) };

	constants[1] = constants[0] + 1;
	memcpy(at, code, sizeof(code));
	memcpy(at + 1, &constants[0], sizeof(uint32_t));
	memcpy(at + 7, &constants[1], sizeof(uint32_t));
	dbgdyn_register(context, &r, handle);
}

int main(int argc, char **argv)
{
	double turn_ms = argc > 2 ? atof(argv[1]) : 10, end;
	int turns = argc > 2 ? atoi(argv[2]) : 200;
	unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	dbgdyn_handle handle = { 0 };
	dbgdyn_context context;

	if (at == MAP_FAILED)
		return perror("jit_values: mmap"), 1;
	dbgdyn_begin("values", 6, NULL, &context);
	for (int i = 0; i < turns; i++) {
		void (*routine)(uint64_t, uint64_t) = (void (*)(uint64_t, uint64_t))(void *)at;
		int number = i % ROUTINES;

		if (handle.id)
			dbgdyn_retire(context, handle);
		put(at, number, context, &handle);
		for (end = now_ms() + turn_ms; now_ms() < end;)
			for (int k = 0; k < 10000; k++)
				routine(7 * (uint64_t)number + 1000, ROUNDS);
	}
	dbgdyn_end(context);
	return 0;
}
