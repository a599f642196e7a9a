/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests/machine: executes 100 instructions in a loop, as often as its argument says, and some
 * tens before and after them; nothing else, for it has no library. No other program comes between
 * them, as it has the highest real-time priority.
 */
#include <stdint.h>

enum { EXIT = 93, SCHED_SETSCHEDULER = 119, SCHED_FIFO = 1, HIGHEST = 99 };

/* A system call that the kernel has by that number. */
static long call(long number, long a, long b, const void *c)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register const void *x2 __asm__("x2") = c;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
}

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
	const int priority = HIGHEST;
	uint64_t times = 0;

	for (const char *c = (const char *)stack[2]; *c; c++)
		times = times * 10 + (uint64_t)(*c - '0');
	if (call(SCHED_SETSCHEDULER, 0, SCHED_FIFO, &priority) < 0)
		call(EXIT, 1, 0, 0);
	hundred(times);
	call(EXIT, 0, 0, 0);
	__builtin_unreachable();
}

__asm__(".global _start\n_start:\n mov x0, sp\n b begin\n");
