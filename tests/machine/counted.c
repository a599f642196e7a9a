/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests/machine: executes 100 instructions in a loop, as often as its argument says, and some
 * tens before and after them; nothing else, for it has no library.
 */
#include <stdint.h>

enum { EXIT = 93 };

__attribute__((noinline, aligned(64))) static void hundred(uint64_t times)
{
	uint64_t x = 0;

	__asm__ volatile("hundred_begins:\n"
			 " .rept 98\n add %1, %1, #1\n .endr\n"
			 " subs %0, %0, #1\n"
			 " b.ne hundred_begins\n"
			 : "+r"(times), "+r"(x)
			 :
			 : "cc");
}

__attribute__((used, noreturn)) static void begin(const uint64_t *stack)
{
	uint64_t times = 0;

	for (const char *c = (const char *)stack[2]; *c; c++)
		times = times * 10 + (uint64_t)(*c - '0');
	hundred(times);
	__asm__ volatile("mov x8, %0\n mov x0, #0\n svc #0\n" : : "i"(EXIT) : "x0", "x8");
	__builtin_unreachable();
}

__asm__(".global _start\n_start:\n mov x0, sp\n b begin\n");
