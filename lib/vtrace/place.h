/* SPDX-License-Identifier: BSD-2-Clause */
/* The key of a block: how its code begins, not whose code it is. Shared by BPF and user space. */
#ifndef DCPI_VTRACE_PLACE_H
#define DCPI_VTRACE_PLACE_H

#ifndef __bpf__
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

enum {
	VTRACE_PAGE = 4096, /* the smallest that there is: code up to its end can be read */
	VTRACE_PLACE_BYTES = 16,
};

/* The first bytes, none of the next page; 0 behind them. Without padding. */
struct vtrace_place {
	uint64_t where;
	uint64_t code[VTRACE_PLACE_BYTES / 8];
};

/*
 * All that the meaning of code depends on of its address: where in its page it stands (aarch64's
 * adrp), whether that is the kernel's, and whether it stands low or high (aarch64: how long the
 * code of a signed pointer is). Other micro-ops are relative to the block's pc.
 */
static inline __attribute__((always_inline)) uint64_t vtrace_where(uint64_t pc)
{
	uint64_t kernel = pc >> 55 & 1, middle = pc >> 39 & 0x1ff;

	return pc % VTRACE_PAGE | kernel << 12 | (uint64_t)(middle == (kernel ? 0x1ff : 0)) << 13;
}

static inline __attribute__((always_inline)) uint32_t vtrace_place_len(uint64_t pc)
{
	uint32_t left = VTRACE_PAGE - pc % VTRACE_PAGE;

	return left < VTRACE_PLACE_BYTES ? left : VTRACE_PLACE_BYTES;
}

#ifndef __bpf__
/* The key of the @len bytes of code at @pc. False: not all bytes that count are there. */
bool vtrace_place_of(uint64_t pc, const uint8_t *code, size_t len, struct vtrace_place *out);
#endif

#endif
