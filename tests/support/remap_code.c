/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests/system/remap.sh: a shared object once for each SLOT, entered at that slot's routine. */
#include "slot.h"

void slot_0(unsigned long n);
void slot_1(unsigned long n);
void slot_2(unsigned long n);
SLOT_ROUTINE(0)
SLOT_ROUTINE(1)
SLOT_ROUTINE(2)
