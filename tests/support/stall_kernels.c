/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loops that are known to wait for one thing each:
 *   stall_kernels memory|branch|divide|front_end SECONDS_OF_CPU_TIME
 * spends its time in the function stall_NAME.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHAIN = 1 << 22, BITS = 1 << 18 };

static uint32_t *chain; /* each element says which comes next */
static uint8_t
	bits[BITS]; /* of eight bits: more than a predictor learns, fewer than the caches hold */
static volatile uint64_t sink;

static uint32_t random32(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

/* One cycle through all elements, in random order (Sattolo). */
static int prepare_memory(void)
{
	chain = malloc(CHAIN * sizeof(*chain));
	if (!chain)
		return -1;
	for (uint32_t i = 0; i < CHAIN; i++)
		chain[i] = i;
	for (uint32_t i = CHAIN - 1; i; i--) {
		uint32_t k = random32() % i, t = chain[i];

		chain[i] = chain[k];
		chain[k] = t;
	}
	return 0;
}

static int prepare_branch(void)
{
	for (uint32_t i = 0; i < BITS; i++)
		bits[i] = (uint8_t)random32();
	return 0;
}

static int prepare_nothing(void)
{
	return 0;
}

/* Each load's address is what the one before it brought, out of 16 MiB. */
__attribute__((noinline)) static void stall_memory(void)
{
	static uint32_t at;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 1 << 16; i++) {
		at = chain[at];
		sum += i;
		sum ^= i << 3;
		sum += at;
	}
	sink = sum;
}

/* Neither moved nor joined with others by the compiler. */
#define KEEP(change, var)                                                                          \
	do {                                                                                       \
		change;                                                                            \
		__asm__ volatile("" : "+r"(var));                                                  \
	} while (0)

/*
 * Either way is gone half of the time, and nothing tells when. The bytes come in by prefetching; a
 * branch whose bit has come with an earlier one's does not wait for its load.
 */
__attribute__((noinline)) static void stall_branch(void)
{
	uint64_t a = 0, b = 0;

	for (uint32_t i = 0; i < BITS; i++) {
		for (uint32_t byte = bits[i], k = 0; k < 8; k++, byte >>= 1) {
			if (byte & 1) {
				KEEP(a += 3, a);
				KEEP(b ^= 5, b);
				KEEP(b += 1, b);
			} else {
				KEEP(b += 7, b);
				KEEP(a += 2, a);
				KEEP(b ^= 9, b);
			}
		}
	}
	sink = a + b;
}

/* Nothing but the division takes more than a cycle. */
__attribute__((noinline)) static void stall_divide(void)
{
	uint64_t n = UINT64_MAX, d = 3, sum = 0;

	for (uint32_t i = 0; i < 1 << 16; i++) {
		n = (n / d) | 1ull << 63;
		sum += i;
		sum ^= i << 3;
		d = (i & 7) + 3;
	}
	sink = sum + n;
}

/*
 * Lines of 64 bytes, each jumping over many others to the next one: more of them than caches of
 * instructions and tables of branch targets hold.
 */
__attribute__((noinline)) static void stall_front_end(void)
{
#if defined(__x86_64__)
	__asm__ volatile(".p2align 6\n"
			 "4096: .set at, 0\n"
			 ".rept 32768\n"
			 "	.p2align 6\n"
			 "	add $1, %%eax\n"
			 "	add $1, %%ecx\n"
			 "	.if (at + 12289) %% 32768 == 0\n"
			 "	jmp 4097f\n"
			 "	.else\n"
			 "	jmp 4096b + 64 * ((at + 12289) %% 32768)\n"
			 "	.endif\n"
			 "	.set at, at + 1\n"
			 ".endr\n"
			 "4097:\n"
			 :
			 :
			 : "eax", "ecx", "cc");
#elif defined(__aarch64__)
	__asm__ volatile(".p2align 6\n"
			 "4096: .set at, 0\n"
			 ".rept 32768\n"
			 "	.p2align 6\n"
			 "	add w0, w0, #1\n"
			 "	add w1, w1, #1\n"
			 "	.if (at + 12289) %% 32768 == 0\n"
			 "	b 4097f\n"
			 "	.else\n"
			 "	b 4096b + 64 * ((at + 12289) %% 32768)\n"
			 "	.endif\n"
			 "	.set at, at + 1\n"
			 ".endr\n"
			 "4097:\n"
			 :
			 :
			 : "x0", "x1", "cc");
#endif
}

static const struct {
	const char *name;
	int (*prepare)(void);
	void (*run)(void);
} kernels[] = {
	{ "memory", prepare_memory, stall_memory },
	{ "branch", prepare_branch, stall_branch },
	{ "divide", prepare_nothing, stall_divide },
	{ "front_end", prepare_nothing, stall_front_end },
};

int main(int argc, char **argv)
{
	clock_t end = clock() + CLOCKS_PER_SEC * (argc > 2 ? atoi(argv[2]) : 1);

	for (size_t i = 0; argc > 1 && i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		if (strcmp(argv[1], kernels[i].name) != 0 || kernels[i].prepare() < 0)
			continue;
		while (clock() < end)
			kernels[i].run();
		return 0;
	}
	fprintf(stderr, "usage: stall_kernels memory|branch|divide|front_end SECONDS\n");
	return 2;
}
