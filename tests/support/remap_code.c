/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests/system/remap.sh: a shared object for each SLOT, 0 and 1. */
#include "slot.h"

void entry(unsigned long n);

__attribute__((aligned(4096))) void entry(unsigned long n)
{
	if (SLOT == 0)
		slot_0(n / 2);
	else
		slot_1(n / 2);
	shared(n / 2);
}
