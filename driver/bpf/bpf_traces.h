/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces on their way from the kernel's ring to who drains. No kernel is needed. */
#ifndef DCPI_BPF_TRACES_H
#define DCPI_BPF_TRACES_H

#include "driver.h"

/* Places whose code is missing that are kept until somebody asks; more are met again. */
enum { BPF_NR_MISSING = 256 };
/* The number of lives whose first trace is reported once; a power of two. */
enum { BPF_NR_LIVES = 1024 };

struct bpf_trace {
	uint64_t time_ns;
	size_t at; /* its record */
};

struct bpf_traces {
	struct bpf_trace *items; /* [first, nr) wait */
	size_t first, nr, cap;
	bool sorted;
	/* Records as they lie in the ring: a head, without its end where it has no values, and
	 * words. One behind the other. */
	uint64_t *records;
	size_t nr_words, cap_words;
	uint64_t whole_ns; /* all that began before it are, or were, in the queue */
	struct insn_trace *missing;
	size_t nr_missing;
	uint64_t lives[BPF_NR_LIVES]; /* that were told: 0, or a hash */
	uint64_t handed, lost_read;
	uint64_t by_end[VTRACE_NR_ENDS];
};

/* A copy of it waits; or, false, it is lost_read. */
bool bpf_traces_add(struct bpf_traces *q, const void *record, size_t len);
/* How far the ring was read and written, in bytes, and how it is read into the queue. */
struct bpf_trace_ring {
	const unsigned long *consumed, *reserved;
	void (*read)(void *ctx);
	void *ctx;
};

/*
 * Records lie in the order in which their room was reserved, and one that is still being written
 * hides those behind it. To be called when all programs that began before @now_ns have ended: reads
 * until what is reserved now was read, some milliseconds at most. Up to when traces may be handed
 * on: @now_ns, or, as some began before it may be hidden, what it was the last time.
 */
uint64_t bpf_traces_whole(struct bpf_traces *q, const struct bpf_trace_ring *ring, uint64_t now_ns);
/* As driver_traces_missing, of those that were added. */
int bpf_traces_missing(struct bpf_traces *q, int (*fn)(void *ctx, const struct insn_trace *w),
		       void *ctx);
/* All that began before @until_ns, in order of time. 0, or what the sink said. */
int bpf_traces_hand(struct bpf_traces *q, uint64_t until_ns, const struct driver_sink *sink);
/* After a drain: what was handed on gives its room back. */
void bpf_traces_tidy(struct bpf_traces *q);
static inline size_t bpf_traces_nr(const struct bpf_traces *q)
{
	return q->nr - q->first;
}
void bpf_traces_release(struct bpf_traces *q);

#endif
