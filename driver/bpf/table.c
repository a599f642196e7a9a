/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "bpf_table.h"

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
	__builtin_prefetch(t);
	__builtin_prefetch(&b->way[0]);
	__builtin_prefetch(&b->way[1].first_ns);
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

/* What was not written to is not touched: most of a table, on a quiet CPU. */
void count_clear(union count_bucket *table, const struct count_shape *s)
{
	uint32_t nr = s->nr_buckets;

	for (uint32_t i = next_used(table, s, 0); i < nr; i = next_used(table, s, i + 1))
		memset(&table[s->tags + i / COUNT_NR_TAGS].tags[i % COUNT_NR_TAGS], 0,
		       sizeof(struct count_tags));
	memset(&table[s->buckets + nr], 0,
	       (log_len(table, s) + COUNT_WAYS - 1) / COUNT_WAYS * sizeof(*table));
	memset(table, 0, s->tags * sizeof(*table));
}

void count_use_all(union count_bucket *table, const struct count_shape *s)
{
	memset(&table[COUNT_USED], 0xff, (s->tags - COUNT_USED) * sizeof(*table));
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
