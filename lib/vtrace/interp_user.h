/* SPDX-License-Identifier: BSD-2-Clause */
/* The interpreter for user space: its memory is a struct vtrace_memory (vtrace.h). */
#ifndef DCPI_VTRACE_INTERP_USER_H
#define DCPI_VTRACE_INTERP_USER_H

#include <stddef.h>
#include <stdint.h>

#define VTRACE_INLINE static inline __attribute__((unused))

struct vtrace_memory;
int vtrace_memory_read(void *memory, void *to, size_t len, uint64_t addr);
uint64_t vtrace_memory_now(void);
#define VTRACE_READ(ctx, to, len, addr) vtrace_memory_read(ctx, to, len, addr)
#define VTRACE_NOW()			vtrace_memory_now()

#include "interp.h"

#endif
