/* SPDX-License-Identifier: BSD-2-Clause */
/* Routines of a process's memory, as dcpid tells its helpers of them. */
#ifndef DCPI_READER_ROUTINE_H
#define DCPI_READER_ROUTINE_H

#include <stdint.h>

struct reader_routine {
	uint64_t addr, len;
};

enum { READER_ROUTINES_MAX = 8192 }; /* in one request */

#endif
