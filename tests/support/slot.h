/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of one program at the same addresses. Half of its work each does in a slot of its own, so
 * that a sample of another slot was charged to the wrong copy; half in "shared", where samples of
 * all of them fall on the same addresses. SLOT says which one it is, and nothing else differs.
 */
#ifndef TESTS_SLOT_H
#define TESTS_SLOT_H

enum { NR_SLOTS = 3 };

/* A page each. The number in it keeps the compiler from seeing the same several times. */
#define SLOT_ROUTINE(name, nr)                                                                     \
	void name(unsigned long n);                                                                \
	__attribute__((noinline, noclone, used, aligned(4096))) void name(unsigned long n)         \
	{                                                                                          \
		while (n--)                                                                        \
			__asm__ volatile("" : : "i"(nr), "r"(n));                                  \
	}

SLOT_ROUTINE(slot_0, 0)
SLOT_ROUTINE(slot_1, 1)
SLOT_ROUTINE(slot_2, 2)
SLOT_ROUTINE(shared, NR_SLOTS)

#endif
