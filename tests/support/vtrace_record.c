/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs x86-64 instructions on this CPU and prints what each changes, for
 * tests/support/vtrace_record.sh. Lines of hexadecimal bytes in; for each, and each seed, a line
 * "BYTES SEED CHANGE…" out. A change is NAME=VALUE, in hexadecimal: vN.C chunk C of a vector
 * register (the low 32 bytes), kN a mask, rN a general register by DWARF's number, mN a word at
 * rdi, f the flags as VTRACE_FLAGS. An instruction that this CPU does not have is an error.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vtrace_known.h"

/* The registers as vtrace_record.S knows them. */
struct machine {
	uint64_t v[32][8], k[8], r[16], rflags, code, sp;
};

struct machine machine __attribute__((visibility("hidden"), aligned(64)));
void run_machine(void);
extern const char run_back[];

_Static_assert(offsetof(struct machine, k) == 2048 && offsetof(struct machine, r) == 2112 &&
		       offsetof(struct machine, rflags) == 2240 &&
		       offsetof(struct machine, code) == 2248 &&
		       offsetof(struct machine, sp) == 2256,
	       "as vtrace_record.S has it");

static sigjmp_buf refused;

static void refuse(int sig)
{
	siglongjmp(refused, sig);
}

/* Places in rflags of the flags that VTRACE_FLAGS has, in its order: carry, parity, zero, sign,
 * overflow. */
static const uint8_t flag_bits[5] = { 0, 2, 6, 7, 11 };

static void put_flags(uint8_t flags)
{
	machine.rflags = 2;
	for (int i = 0; i < 5; i++)
		machine.rflags |= (uint64_t)(flags >> i & 1) << flag_bits[i];
}

static uint8_t get_flags(void)
{
	uint8_t flags = 0;

	for (int i = 0; i < 5; i++)
		flags |= (uint8_t)((machine.rflags >> flag_bits[i] & 1) << i);
	return flags;
}

static void say(const char *name, int n, int chunk, uint64_t before, uint64_t after)
{
	if (before == after)
		return;
	printf(" %s%d", name, n);
	if (chunk >= 0)
		printf(".%d", chunk);
	printf("=%" PRIx64, after);
}

static void run_one(const char *hex, uint64_t seed, uint64_t *data)
{
	static struct known s;

	known_fill(&s, seed);
	memcpy(machine.v, s.v, sizeof(s.v));
	memcpy(machine.k, s.k, sizeof(s.k));
	memcpy(machine.r, s.r, sizeof(s.r));
	memcpy(data, s.data, sizeof(s.data));
	put_flags(s.flags);
	run_machine();
	printf("%s %" PRIu64, hex, seed);
	for (int i = 0; i < 32 * 8; i++)
		if (i % 8 < 4)
			say("v", i / 8, i % 8, s.v[i / 8][i % 8], machine.v[i / 8][i % 8]);
	for (int i = 0; i < 8; i++)
		say("k", i, -1, s.k[i], machine.k[i]);
	for (int i = 0; i < 16; i++)
		if (i != KNOWN_RSP)
			say("r", i, -1, s.r[i], machine.r[i]);
	for (int i = 0; i < 8; i++)
		say("m", i, -1, s.data[i], data[i]);
	if (get_flags() != s.flags)
		printf(" f=%x", get_flags());
	putchar('\n');
}

static size_t put_code(uint8_t *code, const char *hex)
{
	/* jmp *0(%rip), and where to. */
	static const uint8_t back[] = { 0xff, 0x25, 0, 0, 0, 0 };
	uint64_t to = (uint64_t)run_back;
	size_t len = 0;

	for (unsigned int byte; sscanf(hex + 2 * len, "%2x", &byte) == 1; len++)
		code[len] = (uint8_t)byte;
	memcpy(code + len, back, sizeof(back));
	memcpy(code + len + sizeof(back), &to, sizeof(to));
	return len;
}

int main(void)
{
	uint8_t *code = mmap(NULL, KNOWN_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *data = mmap((void *)KNOWN_DATA, KNOWN_PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	char hex[64];

	if (code == MAP_FAILED || data == MAP_FAILED)
		return perror("mmap"), 1;
	signal(SIGILL, refuse);
	signal(SIGSEGV, refuse);
	while (scanf("%63s", hex) == 1) {
		if (!put_code(code, hex))
			return fprintf(stderr, "no instruction: %s\n", hex), 1;
		machine.code = (uint64_t)code;
		if (sigsetjmp(refused, 1))
			return fprintf(stderr, "this CPU refuses %s\n", hex), 1;
		for (uint64_t seed = 1; seed <= KNOWN_SEEDS; seed++)
			run_one(hex, seed, (uint64_t *)(data + KNOWN_AT));
	}
	return 0;
}
