/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "bpf_internal.h"

/* ---- taking ---------------------------------------------------------------------------------- */

struct taking {
	struct bpf_counts *to;
	uint64_t counts; /* samples in all entries */
	uint64_t unkept;
};

static void take_entry(void *ctx, const struct count_entry *e)
{
	struct taking *t = ctx;
	struct bpf_counts *c = t->to;

	t->counts += e->count;
	if (base_grow(&c->entries, &c->cap, c->nr + 1, sizeof(*c->entries)) < 0)
		t->unkept += e->count;
	else
		c->entries[c->nr++] = *e;
}

/* What the head says and what is there must agree; where they do not, the law still holds. */
static void balance(const struct taking *t, uint64_t received, uint64_t lost,
		    struct driver_stats *stats)
{
	uint64_t have = t->counts + lost;

	stats->lost_read += t->unkept;
	if (have < received)
		stats->lost_read += received - have;
	else
		stats->received[0] += have - received;
}

void bpf_counts_take(struct bpf_counts *c, union count_bucket *table, const struct count_shape *s,
		     struct driver_stats *stats)
{
	const struct count_head *h = &table->head;
	struct taking t = { .to = c };
	uint64_t received = 0;

	count_walk(table, s, take_entry, &t);
	for (size_t i = 0; i < DRIVER_NR_EVENTS; i++) {
		stats->received[i] += h->received[i];
		received += h->received[i];
	}
	stats->lost_table += h->lost_table;
	stats->lost_late += h->lost_late;
	stats->lost_nested += h->lost_nested;
	stats->lost_bad += h->lost_bad;
	balance(&t, received, count_lost(h), stats);
	count_clear(table, s);
}

/* ---- handing on ------------------------------------------------------------------------------ */

#define ORDER(a, b)                                                                                \
	if ((a) != (b))                                                                            \
	return (a) < (b) ? -1 : 1

static int by_last(const void *va, const void *vb)
{
	const struct count_entry *a = va, *b = vb;

	ORDER(a->last_ns, b->last_ns);
	ORDER(a->first_ns, b->first_ns);
	ORDER(a->instance, b->instance);
	ORDER(a->addr, b->addr);
	ORDER(a->what, b->what);
	ORDER(a->generation, b->generation);
	ORDER(a->tgid, b->tgid);
	ORDER(a->count, b->count);
	return 0;
}

/*
 * Comparing whole entries reads each of them a dozen times. What is sorted instead is their times,
 * digit by digit from the lowest: those of one drain differ in few.
 */
enum { DIGIT_BITS = 11, NR_DIGITS = 1 << DIGIT_BITS };

struct bpf_count_at {
	uint64_t since_ns; /* from the first of all on */
	const struct count_entry *entry;
};

static int by_entry(const void *a, const void *b)
{
	const struct bpf_count_at *x = a, *y = b;

	return by_last(x->entry, y->entry);
}

/* Those of one digit stay in their order. */
static void sort_digit(const struct bpf_count_at *from, struct bpf_count_at *to, size_t nr,
		       unsigned int shift)
{
	size_t ends[NR_DIGITS] = { 0 }, end = nr;

	for (size_t i = 0; i < nr; i++)
		ends[from[i].since_ns >> shift & (NR_DIGITS - 1)]++;
	for (size_t d = NR_DIGITS; d-- > 0;) {
		size_t here = ends[d];

		ends[d] = end;
		end -= here;
	}
	for (size_t i = nr; i-- > 0;)
		to[--ends[from[i].since_ns >> shift & (NR_DIGITS - 1)]] = from[i];
}

static void sort_ties(struct bpf_count_at *order, size_t nr)
{
	for (size_t i = 0, end; i < nr; i = end) {
		for (end = i + 1; end < nr && order[end].since_ns == order[i].since_ns; end++)
			;
		if (end - i > 1)
			qsort(order + i, end - i, sizeof(*order), by_entry);
	}
}

/* The latest, counted from the first. */
static uint64_t fill_order(const struct bpf_counts *c)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < c->nr; i++) {
		uint64_t ns = c->entries[i].last_ns;

		first = ns < first ? ns : first;
		last = ns > last ? ns : last;
	}
	for (size_t i = 0; i < c->nr; i++)
		c->order[i] =
			(struct bpf_count_at){ c->entries[i].last_ns - first, &c->entries[i] };
	return c->nr ? last - first : 0;
}

/* NULL: there is no memory to do it so, and the entries themselves are sorted. */
static const struct bpf_count_at *sort(struct bpf_counts *c)
{
	struct bpf_count_at *from, *to, *swap;
	uint64_t last;

	if (base_grow(&c->order, &c->cap_order, 2 * c->nr, sizeof(*c->order)) < 0) {
		qsort(c->entries, c->nr, sizeof(*c->entries), by_last);
		return NULL;
	}
	last = fill_order(c);
	from = c->order;
	to = c->order + c->nr;
	for (unsigned int shift = 0; shift < 64 && last >> shift; shift += DIGIT_BITS) {
		sort_digit(from, to, c->nr, shift);
		swap = from;
		from = to;
		to = swap;
	}
	sort_ties(from, c->nr);
	return from;
}

static enum driver_mode mode_of(uint32_t what)
{
	uint32_t mode = COUNT_WHAT_MODE(what);

	return mode <= DRIVER_OTHER ? (enum driver_mode)mode : DRIVER_OTHER;
}

static struct driver_count count_of(const struct count_entry *e)
{
	return (struct driver_count){
		.first_ns = e->first_ns,
		.time_ns = e->last_ns,
		.pid = (int32_t)e->tgid,
		.tid = (int32_t)e->tgid,
		.event = COUNT_WHAT_EVENT(e->what),
		.mode = mode_of(e->what),
		.generation = e->generation,
		.generation_read = e->what & COUNT_WHAT_READ,
		.generation_unread = e->what & COUNT_WHAT_UNREAD,
		.addr = e->addr,
		.count = e->count,
	};
}

void bpf_counts_hand(struct bpf_counts *c, int (*add)(void *ctx, const struct driver_count *count),
		     void *ctx, struct driver_stats *stats)
{
	const struct bpf_count_at *order = c->nr ? sort(c) : NULL;

	for (size_t i = 0; i < c->nr; i++) {
		const struct driver_count count = count_of(order ? order[i].entry : &c->entries[i]);

		if (add(ctx, &count) < 0)
			stats->lost_read += count.count;
	}
	c->nr = 0;
}

void bpf_counts_release(struct bpf_counts *c)
{
	free(c->entries);
	free(c->order);
	*c = (struct bpf_counts){ 0 };
}
