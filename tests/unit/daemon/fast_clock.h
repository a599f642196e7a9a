/* SPDX-License-Identifier: BSD-2-Clause */
/* base_now_ns that a test can hurry (linked with --wrap=base_now_ns). */
#ifndef FAST_CLOCK_H
#define FAST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

extern uint64_t ahead_ns; /* of the real one */
extern uint64_t
	stride_ns; /* so much it goes ahead at each look: as if we stood still between them */
/*
 * It goes ahead by these alone, however busy the machine is. base_wait_readable waits without a
 * limit then.
 */
extern bool stands;

#endif
