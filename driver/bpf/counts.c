/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "bpf_internal.h"

/* An entry is asked for while the one so many before it is read. */
enum { AHEAD = 8 };

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

static int by_entry(const void *a, const void *b)
{
	const struct base_sort_item *x = a, *y = b;

	return by_last(x->of, y->of);
}

static void sort_ties(struct base_sort_item *order, size_t nr)
{
	for (size_t i = 0, end; i < nr; i = end) {
		for (end = i + 1; end < nr && order[end].key == order[i].key; end++)
			;
		if (end - i > 1)
			qsort(order + i, end - i, sizeof(*order), by_entry);
	}
}

/* Times counted from the first one: those of one drain differ in few bits. */
static void fill_order(const struct bpf_counts *c)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < c->nr; i++)
		first = c->entries[i].last_ns < first ? c->entries[i].last_ns : first;
	for (size_t i = 0; i < c->nr; i++)
		c->order[i] =
			(struct base_sort_item){ c->entries[i].last_ns - first, &c->entries[i] };
}

/*
 * Comparing whole entries reads each of them a dozen times; their times are sorted instead. NULL:
 * there is no memory to do it so, and the entries themselves are sorted.
 */
static const struct base_sort_item *sort(struct bpf_counts *c)
{
	struct base_sort_item *order;

	if (base_grow(&c->order, &c->cap_order, 2 * c->nr, sizeof(*c->order)) < 0) {
		qsort(c->entries, c->nr, sizeof(*c->entries), by_last);
		return NULL;
	}
	fill_order(c);
	order = base_sort(c->order, c->order + c->nr, c->nr);
	sort_ties(order, c->nr);
	return order;
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
		.instance = e->instance,
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
	const struct base_sort_item *order = c->nr ? sort(c) : NULL;

	for (size_t i = 0; i < c->nr; i++) {
		const struct driver_count count = count_of(order ? order[i].of : &c->entries[i]);

		if (order && i + AHEAD < c->nr)
			__builtin_prefetch(order[i + AHEAD].of);
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
