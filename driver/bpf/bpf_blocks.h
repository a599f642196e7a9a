/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of blocks that traces run through (kernel/blocks.h), from the side that fills it. No
 * kernel is needed: the arrays may stand anywhere.
 *
 * A block that had to go is found no more, but traces may still name it, and a program may still
 * be in it: it is buried, and its place given to another one only when all traces were handed on
 * that had begun before.
 */
#ifndef DCPI_BPF_BLOCKS_H_INTERNAL
#define DCPI_BPF_BLOCKS_H_INTERNAL

#include "kernel/blocks.h"
#include "driver.h"

enum {
	BPF_NR_SIZES = 16, /* lengths of runs of micro-ops: 8, 16, … 128 */
	/* One in so many blocks, or micro-ops, is kept free: what goes is room only when it is
	 * reused. */
	BPF_SPARE_PART = 8,
	BPF_BLOCKS_LEAST = 2048,
};

/* Numbers of blocks, or places of micro-ops, to be used again. */
struct bpf_spare {
	uint32_t *items;
	size_t nr, cap;
};

/* The daemon's facts about a block, by its number. */
struct bpf_block {
	struct vtrace_code
		*code;	  /* a copy, without the micro-ops that it does not have; NULL: free */
	uint64_t used_ns; /* when the last trace that entered it began, or it was put */
	bool entered;
};

struct bpf_grave {
	uint64_t dead_ns;
	uint32_t number;
};

struct bpf_blocks {
	/* The arrays of kernel/blocks.h, and what hashes begin with: set by who makes it. */
	struct trace_block *blocks;
	struct trace_bucket *buckets;
	struct vtrace_uop *uops;
	uint64_t mix[2];
	uint32_t
		max; /* blocks, the one of number 0 too: a power of two, from BPF_BLOCKS_LEAST on */

	struct bpf_block *own; /* max */
	uint32_t nr_numbers;   /* the first so many were used; 0 is none */
	uint32_t nr_uops;      /* likewise */
	uint32_t nr;	       /* that can be found */
	uint32_t nr_live_uops; /* live micro-ops in them */
	uint64_t no_room;
	struct bpf_spare numbers, runs[BPF_NR_SIZES];
	struct bpf_grave *graves; /* ascending by time */
	size_t nr_graves, cap_graves;
};

/* @b has its arrays. 0 or -ENOMEM. */
int bpf_blocks_init(struct bpf_blocks *b);
void bpf_blocks_release(struct bpf_blocks *b);

/*
 * As driver_block_put; @now_ns: CLOCK_MONOTONIC. Where little is free an eighth of the blocks goes:
 * those that were longest without a trace, where one that no trace ever entered counts as four
 * times as old; their room is free when it is reused.
 */
int bpf_blocks_put(struct bpf_blocks *b, const struct vtrace_code *code, uint64_t now_ns);
/* NULL: none. */
const struct vtrace_code *bpf_blocks_get(const struct bpf_blocks *b, uint32_t number);
/* A trace that began at @time_ns entered it. Any @number, also one that is no block's. */
void bpf_blocks_used(struct bpf_blocks *b, uint32_t number, uint64_t time_ns);
/* All traces were handed on that had begun by @until_ns, and no program runs that had. */
void bpf_blocks_reuse(struct bpf_blocks *b, uint64_t until_ns);
/* The number of the block that is of this code, 0: none. As the program looks for it. */
uint32_t bpf_blocks_find(const struct bpf_blocks *b, const struct vtrace_code *code);

#endif
