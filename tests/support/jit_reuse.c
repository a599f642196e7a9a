/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A JIT that puts two routines at one address in turn: "low" works in the first bytes of its block,
 * "high" in the last (and jumps there), so that whoever charges a sample to the wrong one is found
 * out by its offset. jit_reuse MILLISECONDS-PER-TURN TURNS Prints the number of milliseconds that
 * each of them ran. All of these are of CPU time.
 */
#include <dbgdyn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { BLOCK = 64, HIGH = 32 };

#if defined(__x86_64__)
static const unsigned char loop[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
static const unsigned char nop[] = { 0x90 };
static const unsigned char jump[] = { 0xeb, HIGH - 2 };
#elif defined(__aarch64__)
static const unsigned int loop[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
static const unsigned int nop[] = { 0xd503201f };
static const unsigned int jump[] = { 0x14000000 | HIGH / 4 };
#else
#error "jit_reuse speaks x86-64 and aarch64 only"
#endif

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void put(unsigned char *code, int high, dbgdyn_context context)
{
	const char *name = high ? "high" : "low";
	struct dbgdyn_routine r = {
		.size = sizeof(r), .name = { name, strlen(name) }, .code = code, .code_len = BLOCK
	};

	for (size_t i = 0; i < BLOCK; i += sizeof(nop))
		memcpy(code + i, nop, sizeof(nop));
	if (high)
		memcpy(code, jump, sizeof(jump));
	memcpy(code + (high ? HIGH : 0), loop, sizeof(loop));
	__builtin___clear_cache((char *)code, (char *)code + BLOCK);
	dbgdyn_register(context, &r, NULL);
}

int main(int argc, char **argv)
{
	double turn_ms = argc > 1 ? atof(argv[1]) : 2000, ran[2] = { 0 };
	int turns = argc > 2 ? atoi(argv[2]) : 4;
	dbgdyn_context context;
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return perror("jit_reuse: mmap"), 1;
	dbgdyn_begin("reuse", 5, NULL, &context);
	/* Until a daemon has it, nothing tells who lives at an address. */
	dbgdyn_flush(context);
	for (int i = 0; i < turns; i++) {
		double start = now();

		put(code, i % 2, context);
		while (now() < start + turn_ms)
			((void (*)(unsigned long))(void *)(code))(100000);
		ran[i % 2] += now() - start;
	}
	dbgdyn_end(context);
	printf("low %.0f\nhigh %.0f\n", ran[0], ran[1]);
	return 0;
}
