/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "bpf_table.h"

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

/* A way behind a free one is free too. */
static void walk(const union count_bucket *b, void (*fn)(void *ctx, const struct count_entry *e),
		 void *ctx)
{
	for (int w = 0; w < COUNT_WAYS && b->way[w].count; w++)
		fn(ctx, &b->way[w]);
}

static void clear(union count_bucket *b)
{
	for (int w = 0; w < COUNT_WAYS && b->way[w].count; w++)
		b->way[w].count = 0;
}

static uint32_t log_elements(const union count_bucket *table, const struct count_shape *s)
{
	uint32_t nr = table->head.nr_log < s->nr_log ? table->head.nr_log : s->nr_log;

	return (nr + COUNT_WAYS - 1) / COUNT_WAYS;
}

void count_walk(const union count_bucket *table, const struct count_shape *s,
		void (*fn)(void *ctx, const struct count_entry *e), void *ctx)
{
	const union count_bucket *b = table + s->buckets, *log = b + s->nr_buckets;
	uint32_t nr = s->nr_buckets, nr_log = log_elements(table, s);

	for (uint32_t i = next_used(table, s, 0); i < nr; i = next_used(table, s, i + 1))
		walk(&b[i], fn, ctx);
	for (uint32_t i = 0; i < nr_log; i++)
		walk(&log[i], fn, ctx);
}

/* What was not written to is not touched: most of a table, on a quiet CPU. */
void count_clear(union count_bucket *table, const struct count_shape *s)
{
	union count_bucket *b = table + s->buckets, *log = b + s->nr_buckets;
	uint32_t nr = s->nr_buckets, nr_log = log_elements(table, s);

	for (uint32_t i = next_used(table, s, 0); i < nr; i = next_used(table, s, i + 1))
		clear(&b[i]);
	for (uint32_t i = 0; i < nr_log; i++)
		clear(&log[i]);
	memset(table, 0, s->buckets * sizeof(*table));
}

void count_use_all(union count_bucket *table, const struct count_shape *s)
{
	memset(&table[COUNT_USED], 0xff, (s->buckets - COUNT_USED) * sizeof(*table));
}

bool count_sample(union count_bucket *table, const struct count_shape *s, const struct count_key *k,
		  bool single, uint64_t now_ns)
{
	struct count_head *h = &table->head;
	enum count_made made = COUNT_KNOWN;

	h->received[COUNT_WHAT_EVENT(k->what) % COUNT_NR_EVENTS]++;
	if (!count_enter(h))
		return false;
	if (single)
		count_add_single(table, s, h, k, now_ns);
	else
		made = count_add(table, s, h, k, now_ns);
	count_leave(h);
	return made != COUNT_KNOWN;
}
