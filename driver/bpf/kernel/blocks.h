/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the program that interprets traces (trace.bpf.c) and the source "bpf". Everything lies
 * in mapped arrays: the daemon stores blocks there without a system call, which would keep its CPU
 * from being sampled. A block belongs to code, not to a process: any process that runs the same
 * bytes runs it. A block is written completely before it can be found, and its place is used again
 * only when no program can be in it; so a program that found a block may run it without a lock.
 */
#ifndef DCPI_BPF_BLOCKS_H
#define DCPI_BPF_BLOCKS_H

#include "place.h"
#include "insn_trace.h"

enum {
	TRACE_NR_BLOCKS = 1 << 17, /* at most; a power of two; number 0 is none */
	TRACE_UOPS_EACH = 12,	   /* so many micro-ops for each block, */
	TRACE_BLOCKS_EACH = 2,	   /* and a bucket for so many */
	TRACE_WAYS = 8,
	TRACE_RING_LEN = 4 << 20, /* at most, likewise */
	TRACE_MISSES = 8,	  /* misses of a CPU after which the translator is woken */
	TRACE_ENTRIES = 20, /* instructions of a block with which it may be entered: the first */
};

struct trace_block {
	struct vtrace_block block;
	uint64_t starts; /* a bit for each of its bytes with which one of these begins */
	uint32_t alive;	 /* 0: nobody begins with it any more */
	/* Where it went on last: behind itself, and elsewhere. Numbers of blocks, by the program;
	 * only a hint. */
	uint32_t link[2];
	uint8_t first[TRACE_ENTRIES]; /* their first micro-ops, as of the block's */
};

_Static_assert(sizeof(struct trace_block) == 128, "window_block");

/* Where blocks are found: half a hash and a number each; 0: free. A line of the cache. */
struct trace_bucket {
	uint64_t way[TRACE_WAYS];
};

#define TRACE_ENTRY(hash, number) (((hash)&0xffffffff00000000ull) | (number))
#define TRACE_ENTRY_NUMBER(entry) ((uint32_t)(entry))

/* @mix: COUNT_MIX's. Bits 32 and up tell blocks of a bucket apart, the lowest are its number. */
static inline __attribute__((always_inline)) uint64_t trace_hash(const struct vtrace_place *p,
								 uint64_t mix0, uint64_t mix1)
{
	uint64_t h = p->where * mix0 ^ p->code[0];

	h = (h ^ h >> 31) * mix1 ^ p->code[1];
	h = (h ^ h >> 29) * mix0;
	return h ^ h >> 32;
}

/* The counters of one CPU, which only grow, and how often a sample gets a trace there. */
struct trace_counts {
	uint32_t busy; /* a trace is running */
	uint32_t turn; /* samples since the last one */
	uint64_t received, lost_ring, lost_busy, skipped;
	uint64_t missed; /* brought code that nobody had translated, or it is lost_ring */
	uint64_t ran_ns; /* the time that traces took */
	/* The daemon's: the misses at its last look, cut off; samples from one trace to the next.
	 */
	uint32_t looked, every;
};

_Static_assert(sizeof(struct trace_counts) == 64, "window_counts");

#endif
