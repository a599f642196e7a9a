/* SPDX-License-Identifier: BSD-2-Clause */
/* CPU time used up, by the clock of the thread itself: other load on the machine does not count. */
#ifndef BURN_H
#define BURN_H

#include <stdint.h>

uint64_t burn_cpu_ns(void); /* of the calling thread so far */
void burn(uint64_t ns);	    /* until it has used that much more */

#endif
