/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the program that interprets windows (window.bpf.c) and the source "bpf" share. All of it
 * lies in arrays that are mapped: the daemon puts blocks there without a system call, which would
 * keep its CPU from being sampled.
 *
 * A block is of code, not of a process: whoever runs the same bytes runs it.
 *
 * A block is written whole before it can be found, and its place gets another one only when no
 * program can be in it any more; so who found it may run it without a lock.
 */
#ifndef DCPI_BPF_BLOCKS_H
#define DCPI_BPF_BLOCKS_H

#include "place.h"
#include "window.h"

enum {
	WINDOW_NR_BLOCKS = 1 << 17, /* a power of two; number 0 is none */
	WINDOW_NR_UOPS = 12 * WINDOW_NR_BLOCKS,
	WINDOW_NR_BUCKETS = WINDOW_NR_BLOCKS / 2, /* a power of two */
	WINDOW_WAYS = 8,
	WINDOW_RING_LEN = 4 << 20,
	WINDOW_MISSES = 8,   /* of a CPU, for which who translates is woken */
	WINDOW_ENTRIES = 20, /* instructions of a block with which it may be entered: the first */
};

struct window_block {
	struct vtrace_block block;
	uint64_t starts; /* a bit for each of its bytes with which one of these begins */
	uint32_t alive;	 /* 0: nobody begins with it any more */
	/* Where it went on last: behind itself, and elsewhere. Numbers of blocks, by the program;
	 * only a hint. */
	uint32_t link[2];
	uint8_t first[WINDOW_ENTRIES]; /* their first micro-ops, as of the block's */
};

_Static_assert(sizeof(struct window_block) == 128, "window_block");

/* Where blocks are found: half a hash and a number each; 0: free. A line of the cache. */
struct window_bucket {
	uint64_t way[WINDOW_WAYS];
};

#define WINDOW_ENTRY(hash, number) (((hash)&0xffffffff00000000ull) | (number))
#define WINDOW_ENTRY_NUMBER(entry) ((uint32_t)(entry))

/* @mix: COUNT_MIX's. Bits 32 and up tell blocks of a bucket apart, the lowest are its number. */
static inline __attribute__((always_inline)) uint64_t window_hash(const struct vtrace_place *p,
								  uint64_t mix0, uint64_t mix1)
{
	uint64_t h = p->where * mix0 ^ p->code[0];

	h = (h ^ h >> 31) * mix1 ^ p->code[1];
	h = (h ^ h >> 29) * mix0;
	return h ^ h >> 32;
}

/* What a CPU has of its own; the numbers only grow. */
struct window_counts {
	uint32_t busy; /* a window is running */
	uint32_t turn; /* samples since the last one */
	uint64_t received, lost_ring, lost_busy, skipped;
	uint64_t missed; /* brought code that nobody had translated, or it is lost_ring */
	uint64_t looked; /* what missed was at the daemon's last look: it says so */
	uint64_t pad;
};

_Static_assert(sizeof(struct window_counts) == 64, "window_counts");

#endif
