/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows on their way from the ring to the daemon, in order of time. No kernel is needed. */
#include "bpf_windows.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Room for records that stays when there are none. */
enum { KEPT_WORDS = 1 << 18 };

static const size_t short_head = VTRACE_WINDOW_LEN(0);

/* ---- what is missing ------------------------------------------------------------------------- */

/* What a block would be found by (place.h) is the same. */
static bool is_same_place(const struct vtrace_window *a, const struct vtrace_window *b)
{
	return a->code_len && b->code_len && vtrace_where(a->end_pc) == vtrace_where(b->end_pc) &&
	       memcmp(a->code, b->code, vtrace_place_len(a->end_pc)) == 0;
}

static bool is_missing(const struct bpf_windows *q, const struct vtrace_window *w)
{
	for (size_t i = q->nr_missing; i-- > 0;)
		if (is_same_place(&q->missing[i], w))
			return true;
	return false;
}

/* Whose values they will be can be asked while it lives. */
static bool is_new_life(struct bpf_windows *q, const struct vtrace_window *w)
{
	const uint64_t key[2] = { w->instance, w->tgid };
	uint64_t life = base_hash64(key, sizeof(key)) | 1;
	uint64_t *told = &q->lives[life / 2 % BPF_NR_LIVES];

	if (!(w->has & VTRACE_WINDOW_VALUES) || w->has & VTRACE_WINDOW_KERNEL || *told == life)
		return false;
	*told = life;
	return true;
}

static void miss(struct bpf_windows *q, const struct vtrace_window *w)
{
	if (!q->missing)
		q->missing = calloc(BPF_NR_MISSING, sizeof(*q->missing));
	if (!q->missing || q->nr_missing == BPF_NR_MISSING)
		return;
	memcpy(&q->missing[q->nr_missing], w, short_head);
	q->missing[q->nr_missing++].has &= VTRACE_WINDOW_KERNEL;
}

int bpf_windows_missing(struct bpf_windows *q, int (*fn)(void *ctx, const struct vtrace_window *w),
			void *ctx)
{
	int r = 0;

	for (size_t i = 0; i < q->nr_missing && r >= 0; i++)
		r = fn(ctx, &q->missing[i]);
	q->nr_missing = 0;
	return r < 0 ? r : 0;
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* The record's head in full or in short; 0: it is none. */
static size_t head_of(const struct vtrace_window *w, size_t len)
{
	size_t head;

	if (len < short_head)
		return 0;
	head = VTRACE_WINDOW_LEN(w->has);
	if (len != head + w->nr_words * sizeof(uint64_t) || w->end >= VTRACE_NR_ENDS ||
	    w->code_len > sizeof(w->code))
		return 0;
	return head;
}

_Static_assert(VTRACE_WINDOW_LEN(0) % 8 == 0 && sizeof(struct vtrace_window) % 8 == 0, "words");

static int enqueue(struct bpf_windows *q, const struct vtrace_window *w, size_t len)
{
	size_t nr_words = len / sizeof(*q->records);
	int r = base_grow(&q->items, &q->cap, q->nr + 1, sizeof(*q->items));

	if (r >= 0)
		r = base_grow(&q->records, &q->cap_words, q->nr_words + nr_words,
			      sizeof(*q->records));
	if (r < 0)
		return r;
	memcpy(q->records + q->nr_words, w, len);
	q->sorted = q->first == q->nr || (q->sorted && q->items[q->nr - 1].time_ns <= w->time_ns);
	q->items[q->nr++] = (struct bpf_window){ .time_ns = w->time_ns, .at = q->nr_words };
	q->nr_words += nr_words;
	return 0;
}

bool bpf_windows_add(struct bpf_windows *q, const void *record, size_t len)
{
	const struct vtrace_window *w = record;

	if (!head_of(w, len) || enqueue(q, w, len) < 0) {
		q->lost_read++;
		return false;
	}
	q->by_end[w->end]++;
	if (is_new_life(q, w) || (w->code_len && !is_missing(q, w)))
		miss(q, w);
	return true;
}

/* ---- handing on ------------------------------------------------------------------------------ */

/* What is written in an interrupt takes microseconds, unless its CPU is taken away meanwhile. */
enum { HIDDEN_US = 100, HIDDEN_TRIES = 100 };

static bool read_up_to(const struct bpf_window_ring *ring, unsigned long reserved)
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

uint64_t bpf_windows_whole(struct bpf_windows *q, const struct bpf_window_ring *ring,
			   uint64_t now_ns)
{
	if (read_up_to(ring, __atomic_load_n(ring->reserved, __ATOMIC_ACQUIRE)))
		q->whole_ns = now_ns;
	return q->whole_ns;
}

static int by_time(const void *a, const void *b)
{
	const struct bpf_window *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int hand(struct bpf_windows *q, const struct bpf_window *item,
		const struct driver_sink *sink)
{
	const uint64_t *record = q->records + item->at;
	const struct vtrace_window *w = (const void *)record;

	q->handed++;
	return sink->window ? sink->window(sink->ctx, w,
					   record + VTRACE_WINDOW_LEN(w->has) / sizeof(*record))
			    : 0;
}

int bpf_windows_hand(struct bpf_windows *q, uint64_t until_ns, const struct driver_sink *sink)
{
	int r = 0;

	if (!q->sorted && bpf_windows_nr(q))
		qsort(q->items + q->first, bpf_windows_nr(q), sizeof(*q->items), by_time);
	q->sorted = true;
	while (r >= 0 && q->first < q->nr && q->items[q->first].time_ns < until_ns)
		r = hand(q, &q->items[q->first++], sink);
	return r < 0 ? r : 0;
}

void bpf_windows_tidy(struct bpf_windows *q)
{
	size_t nr = bpf_windows_nr(q), from = q->nr_words;

	/* Of the youngest, so that these are few. */
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

void bpf_windows_release(struct bpf_windows *q)
{
	free(q->records);
	free(q->items);
	free(q->missing);
	*q = (struct bpf_windows){ 0 };
}
