/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests/system/remap.sh: a shared object once for each SLOT. */
#include "slot.h"

void entry(unsigned long n);

__attribute__((aligned(4096))) void entry(unsigned long n)
{
	switch (SLOT) {
	case 0:
		slot_0(n / 2);
		break;
	case 1:
		slot_1(n / 2);
		break;
	default:
		slot_2(n / 2);
		break;
	}
	shared(n / 2);
}
