/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of one program at the same addresses, of which each works in a slot of its own: a sample
 * in another slot was charged to the wrong copy. SLOT says which one it is, and nothing else
 * differs.
 */
#ifndef TESTS_SLOT_H
#define TESTS_SLOT_H

enum { NR_SLOTS = 3 };

/* A page each. The number in it keeps the compiler from seeing three times the same. */
#define SLOT_ROUTINE(nr)                                                                           \
	__attribute__((noinline, noclone, used, aligned(4096))) void slot_##nr(unsigned long n)    \
	{                                                                                          \
		while (n--)                                                                        \
			__asm__ volatile("" : : "i"(nr), "r"(n));                                  \
	}

#endif
