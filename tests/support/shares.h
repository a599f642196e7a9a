/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SHARES_H
#define SHARES_H

#include <stdint.h>

/* Alike but for their names, and each of its own: none is folded into another. */
#define SHARES_ROUTINE(name)                                                                       \
	__attribute__((noinline, aligned(64))) void name(uint64_t turns)                           \
	{                                                                                          \
		for (; turns; turns--)                                                             \
			__asm__ volatile("# " #name);                                              \
	}

void share_a(uint64_t turns);
void share_b(uint64_t turns);
void share_c(uint64_t turns);
void share_d(uint64_t turns);
void share_e(uint64_t turns);

#endif
