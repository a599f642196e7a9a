/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue of records from a ring of the kernel: in order of time, and its room used again. */
#include "bpf_queue.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Room for records that stays when there are none. */
enum { KEPT_WORDS = 1 << 18 };

/* CPUs write at once, so a record is at most some places away from its own. */
static void put_in_order(struct bpf_queue *q, struct bpf_queue_item item)
{
	size_t i = q->nr++;

	for (; i > q->first && q->items[i - 1].time_ns > item.time_ns; i--)
		q->items[i] = q->items[i - 1];
	q->items[i] = item;
}

int bpf_queue_add(struct bpf_queue *q, uint64_t time_ns, const void *record, size_t len)
{
	size_t nr_words = len / sizeof(*q->records);
	int r = base_grow(&q->items, &q->cap, q->nr + 1, sizeof(*q->items));

	if (r >= 0)
		r = base_grow(&q->records, &q->cap_words, q->nr_words + nr_words,
			      sizeof(*q->records));
	if (r < 0)
		return r;
	memcpy(q->records + q->nr_words, record, len);
	put_in_order(q, (struct bpf_queue_item){ .time_ns = time_ns, .at = q->nr_words });
	q->nr_words += nr_words;
	return 0;
}

/* Writing in an interrupt takes microseconds, unless the CPU is taken away meanwhile. */
enum { HIDDEN_US = 100, HIDDEN_TRIES = 100 };

static bool read_up_to(const struct bpf_ring *ring, unsigned long reserved)
{
	for (int i = 0; i < HIDDEN_TRIES; i++) {
		ring->read(ring->ctx);
		/* Positions wrap. */
		if ((long)(reserved - __atomic_load_n(ring->consumed, __ATOMIC_ACQUIRE)) <= 0)
			return true;
		usleep(HIDDEN_US);
	}
	return false;
}

uint64_t bpf_queue_whole(struct bpf_queue *q, const struct bpf_ring *ring, uint64_t now_ns)
{
	if (read_up_to(ring, __atomic_load_n(ring->reserved, __ATOMIC_ACQUIRE)))
		q->whole_ns = now_ns;
	return q->whole_ns;
}

uint64_t bpf_queue_next(const struct bpf_queue *q)
{
	return q->first < q->nr ? q->items[q->first].time_ns : UINT64_MAX;
}

int bpf_queue_hand(struct bpf_queue *q, uint64_t until_ns,
		   int (*fn)(void *ctx, const uint64_t *record), void *ctx)
{
	int r = 0;

	while (r >= 0 && q->first < q->nr && q->items[q->first].time_ns < until_ns)
		r = fn(ctx, q->records + q->items[q->first++].at);
	return r < 0 ? r : 0;
}

void bpf_queue_tidy(struct bpf_queue *q)
{
	size_t nr = bpf_queue_nr(q), from = q->nr_words;

	for (size_t i = q->first; i < q->nr; i++)
		from = q->items[i].at < from ? q->items[i].at : from;
	for (size_t i = 0; i < nr; i++) {
		q->items[i] = q->items[q->first + i];
		q->items[i].at -= from;
	}
	q->first = 0;
	q->nr = nr;
	q->nr_words -= from;
	if (q->nr_words)
		memmove(q->records, q->records + from, q->nr_words * sizeof(*q->records));
	if (q->nr_words || q->cap_words <= KEPT_WORDS)
		return;
	free(q->records);
	q->records = NULL;
	q->cap_words = 0;
}

void bpf_queue_release(struct bpf_queue *q)
{
	free(q->records);
	free(q->items);
	*q = (struct bpf_queue){ 0 };
}
