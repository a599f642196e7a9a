/* SPDX-License-Identifier: BSD-2-Clause */
#include <dbgdyn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "truth_jit.h"

#define PERIOD 1e-3 /* of the samples of these tests, seconds */

/* Count the first argument down, jump to the slot's bytes; there count the second one down. */
#if defined(__x86_64__)
static const unsigned char head[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xe9 };
static const unsigned char own[] = { 0x48, 0xff, 0xce, 0x75, 0xfb, 0xc3 };
static const unsigned char nop[] = { 0x90 };

static void put_head(unsigned char *out, size_t to)
{
	uint32_t rel = (uint32_t)(to - sizeof(head) - 4);

	memcpy(out, head, sizeof(head));
	memcpy(out + sizeof(head), &rel, sizeof(rel));
}
#elif defined(__aarch64__)
static const uint32_t head[] = { 0xf1000400, 0x54ffffe1 };
static const uint32_t own[] = { 0xf1000421, 0x54ffffe1, 0xd65f03c0 };
static const uint32_t nop[] = { 0xd503201f };

static void put_head(unsigned char *out, size_t to)
{
	uint32_t jump = 0x14000000 | (uint32_t)(to - sizeof(head)) / 4;

	memcpy(out, head, sizeof(head));
	memcpy(out + sizeof(head), &jump, sizeof(jump));
}
#else
#error "speaks x86-64 and aarch64 only"
#endif

void truth_code(unsigned char out[TRUTH_BLOCK], int slot)
{
	size_t at = TRUTH_HEAD + (size_t)slot * TRUTH_OWN;

	for (size_t i = 0; i < TRUTH_BLOCK; i += sizeof(nop))
		memcpy(out + i, nop, sizeof(nop));
	put_head(out, at);
	memcpy(out + at, own, sizeof(own));
}

int truth_slot(const char *name)
{
	const char *digits = strrchr(name, '_');
	char *end;
	long slot;

	if (!digits || digits[1] < '0' || digits[1] > '9')
		return -1;
	slot = strtol(digits + 1, &end, 10);
	return *end || slot >= TRUTH_SLOTS ? -1 : (int)slot;
}

unsigned char *truth_map(size_t len)
{
	void *p = mmap((void *)TRUTH_BASE, len, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void truth_put(unsigned char *code, int slot)
{
	truth_code(code, slot);
	__builtin___clear_cache((char *)code, (char *)code + TRUTH_BLOCK);
}

int truth_register(uint64_t context, const unsigned char *code, const char *prefix, int slot,
		   uint64_t *handle)
{
	struct dbgdyn_line lines[] = {
		{ 0, truth_line(slot, 0), 0 },
		{ TRUTH_HEAD, truth_line(slot, TRUTH_HEAD), 0 },
	};
	struct dbgdyn_string file = { "/src/truth.jit", strlen("/src/truth.jit") };
	char name[64];
	struct dbgdyn_routine r = {
		.size = sizeof(r),
		.code = code,
		.code_len = TRUTH_BLOCK,
		.lines = lines,
		.nr_lines = 2,
		.files = &file,
		.nr_files = 1,
	};

	r.name.len = (size_t)snprintf(name, sizeof(name), "%s_%d", prefix, slot);
	r.name.text = name;
	return dbgdyn_register(context, &r, handle);
}

int truth_make(uint64_t context, unsigned char *code, const char *prefix, int slot,
	       uint64_t *handle)
{
	truth_put(code, slot);
	return truth_register(context, code, prefix, slot, handle);
}

double truth_run(const unsigned char *code, clockid_t clock, double seconds, uint64_t *random)
{
	void (*run)(unsigned long shared, unsigned long alone) =
		(void (*)(unsigned long, unsigned long))(void *)(uintptr_t)code;
	double last = truth_clock(clock), ran = 0;

	while (ran < seconds) {
		uint64_t r = truth_random(random);
		double now;

		run(5000 + r % 30000, 5000 + (r >> 32) % 30000);
		now = truth_clock(clock);
		ran += now - last < PERIOD ? now - last : PERIOD;
		last = now;
	}
	return ran;
}

void truth_live(uint64_t context, unsigned char *code, const char *prefix, double seconds,
		double ran[TRUTH_SLOTS], uint64_t *random)
{
	double end = truth_clock(CLOCK_THREAD_CPUTIME_ID) + seconds;
	int slot[TRUTH_BLOCKS], nr = 0, at;

	while (truth_clock(CLOCK_THREAD_CPUTIME_ID) < end) {
		uint64_t r = truth_random(random);
		bool more = nr < TRUTH_BLOCKS;

		at = more ? nr++ : (int)(r % TRUTH_BLOCKS);
		if (more || !(r >> 32 & 15)) {
			slot[at] = (int)((r >> 16) % TRUTH_SLOTS);
			truth_make(context, code + at * TRUTH_BLOCK, prefix, slot[at], NULL);
		}
		ran[slot[at]] +=
			truth_run(code + at * TRUTH_BLOCK, CLOCK_THREAD_CPUTIME_ID, 1e-4, random);
	}
}

void truth_print(const char *prefix, const double ran[TRUTH_SLOTS])
{
	for (int i = 0; i < TRUTH_SLOTS; i++)
		if (ran[i] > 0)
			printf("%s_%d %.6f\n", prefix, i, ran[i]);
}

double truth_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* xorshift64*: Marsaglia 2003, Vigna 2016. */
uint64_t truth_random(uint64_t *random)
{
	*random ^= *random >> 12;
	*random ^= *random << 25;
	*random ^= *random >> 27;
	return *random * 0x2545f4914f6cdd1dull;
}
