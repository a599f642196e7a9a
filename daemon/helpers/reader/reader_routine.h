/* SPDX-License-Identifier: BSD-2-Clause */
/* Routines of a process's memory, as dcpid tells its helpers of them. */
#ifndef DCPI_READER_ROUTINE_H
#define DCPI_READER_ROUTINE_H

#include <stdint.h>

struct wire_frame;

struct reader_routine {
	uint64_t addr, len;
	uint32_t first_frame, nr_frames; /* what its runtime told of it, of all frames */
};

/* In one request, and of one routine. */
enum { READER_ROUTINES_MAX = 8192, READER_FRAMES_MAX = 65536, READER_ROUTINE_FRAMES_MAX = 4096 };

#endif
