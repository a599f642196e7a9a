/* SPDX-License-Identifier: BSD-2-Clause */
/* Records on their way from a ring of the kernel to who drains, in order of time. No kernel is
 * needed. */
#ifndef DCPI_BPF_QUEUE_H
#define DCPI_BPF_QUEUE_H

#include "base.h"

struct bpf_queue_item {
	uint64_t time_ns;
	size_t at; /* its record */
};

struct bpf_queue {
	struct bpf_queue_item *items; /* [first, nr) wait, in order of time */
	size_t first, nr, cap;
	uint64_t *records; /* as they lie in the ring, one behind the other */
	size_t nr_words, cap_words;
	uint64_t whole_ns; /* all that began before it are, or were, in the queue */
};

/* A copy of it waits. @len: a multiple of 8. 0 or -ENOMEM. */
int bpf_queue_add(struct bpf_queue *q, uint64_t time_ns, const void *record, size_t len);

/* How far the ring was read and written, in bytes, and how it is read into the queue. */
struct bpf_ring {
	const unsigned long *consumed, *reserved;
	void (*read)(void *ctx);
	void *ctx;
};

/*
 * Records lie in the order in which their room was reserved, and one that is still being written
 * hides those behind it. To be called when all programs that began before @now_ns have ended: reads
 * until what is reserved now was read, some milliseconds at most. Up to when records may be handed
 * on: @now_ns, or, as some began before it may be hidden, what it was the last time.
 */
uint64_t bpf_queue_whole(struct bpf_queue *q, const struct bpf_ring *ring, uint64_t now_ns);
/* All of before @until_ns to @fn, in order of time. 0, or what it said below 0. */
int bpf_queue_hand(struct bpf_queue *q, uint64_t until_ns,
		   int (*fn)(void *ctx, const uint64_t *record), void *ctx);
/* The time of the first that waits; UINT64_MAX: none. */
uint64_t bpf_queue_next(const struct bpf_queue *q);
/* After a drain: what was handed on gives its room back. */
void bpf_queue_tidy(struct bpf_queue *q);
static inline size_t bpf_queue_nr(const struct bpf_queue *q)
{
	return q->nr - q->first;
}
void bpf_queue_release(struct bpf_queue *q);

#endif
