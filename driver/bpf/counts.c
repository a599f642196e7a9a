/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts out of the tables: read and cleared, in order of time. No kernel is needed. */
#include <stdlib.h>
#include <string.h>

#include "bpf_internal.h"
#include "bpf_table.h"

/* ---- the table ------------------------------------------------------------------------------- */

/* A bucket or an entry is asked for while the one so many before it is read. */
enum { AHEAD = 8 };

/* The next bucket from @at on that holds anything; nr_buckets: there is none. */
static uint32_t next_used(const union count_bucket *table, const struct count_shape *s, uint32_t at)
{
	while (at < s->nr_buckets) {
		const union count_bucket *u = &table[COUNT_USED + at / COUNT_BITS];
		uint32_t bits = u->used[at / 32 % COUNT_NR_WORDS] >> at % 32;

		if (bits)
			return at + (uint32_t)__builtin_ctz(bits);
		at = (at / 32 + 1) * 32;
	}
	return s->nr_buckets;
}

static const struct count_tags *tags_of(const union count_bucket *table,
					const struct count_shape *s, uint32_t bucket)
{
	return &table[s->tags + bucket / COUNT_NR_TAGS].tags[bucket % COUNT_NR_TAGS];
}

/* A way behind a free one is free too. */
static void walk(const union count_bucket *b, const struct count_tags *t,
		 void (*fn)(void *ctx, const struct count_entry *e), void *ctx)
{
	struct count_entry e;

	for (int w = 0; w < COUNT_WAYS && t->count[w]; w++) {
		e = b->way[w];
		e.count = t->count[w];
		fn(ctx, &e);
	}
}

/* The @i-th entry of the log. */
static const struct count_entry *log_entry(const union count_bucket *table,
					   const struct count_shape *s, uint32_t i)
{
	return &table[s->buckets + s->nr_buckets + i / COUNT_WAYS].way[i % COUNT_WAYS];
}

static uint32_t log_len(const union count_bucket *table, const struct count_shape *s)
{
	return table->head.nr_log < s->nr_log ? table->head.nr_log : s->nr_log;
}

/* Another CPU wrote it: that takes its time. */
static void expect(const union count_bucket *b, const struct count_tags *t)
{
	base_prefetch(t);
	base_prefetch(&b->way[0]);
	base_prefetch(&b->way[1].first_ns);
}

void count_walk(const union count_bucket *table, const struct count_shape *s,
		void (*fn)(void *ctx, const struct count_entry *e), void *ctx)
{
	const union count_bucket *b = table + s->buckets;
	uint32_t nr = s->nr_buckets, nr_log = log_len(table, s);
	uint32_t ahead[AHEAD], at = next_used(table, s, 0), n;

	while (at < nr) {
		for (n = 0; n < AHEAD && at < nr; at = next_used(table, s, at + 1)) {
			expect(&b[at], tags_of(table, s, at));
			ahead[n++] = at;
		}
		for (uint32_t i = 0; i < n; i++)
			walk(&b[ahead[i]], tags_of(table, s, ahead[i]), fn, ctx);
	}
	for (uint32_t i = 0; i < nr_log; i++) {
		if (log_entry(table, s, i)->count)
			fn(ctx, log_entry(table, s, i));
	}
}

/*
 * Only what was written to: on a quiet CPU most of a table is clean. Counts too, as a program that
 * was not waited for may bring back bits.
 */
void count_clear(union count_bucket *table, const struct count_shape *s)
{
	uint32_t nr = s->nr_buckets;

	for (uint32_t i = next_used(table, s, 0); i < nr; i = next_used(table, s, i + 1))
		memset(table[s->tags + i / COUNT_NR_TAGS].tags[i % COUNT_NR_TAGS].count, 0,
		       sizeof(table->tags->count));
	memset(&table[s->buckets + nr], 0,
	       (log_len(table, s) + COUNT_WAYS - 1) / COUNT_WAYS * sizeof(*table));
	memset(table, 0, s->tags * sizeof(*table));
}

bool count_sample(union count_bucket *table, const struct count_shape *s, const struct count_key *k,
		  bool single, uint64_t now_ns)
{
	const struct count_place p = count_place_of(s, k);
	struct count_head *h = &table->head;
	enum count_made made = COUNT_KNOWN;

	h->received[COUNT_WHAT_EVENT(k->what) % COUNT_NR_EVENTS]++;
	if (!count_enter(h))
		return false;
	if (single)
		count_add_single(table, s, h, k, now_ns);
	else
		made = count_add(table, s, h, k, &p, now_ns);
	count_leave(h);
	return made != COUNT_KNOWN;
}

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

/* The head and the contents must agree; if they do not, received = stored + lost still holds. */
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
		.thread = COUNT_WHAT_THREAD(e->what),
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
			base_prefetch(order[i + AHEAD].of);
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
