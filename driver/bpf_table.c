/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "bpf_table.h"

/* Buckets and log as one array of entries; a way behind a free one is free too. */
static void walk(const union count_bucket *b, uint32_t nr,
		 void (*fn)(void *ctx, const struct count_entry *e), void *ctx)
{
	for (uint32_t i = 0; i < nr; i++) {
		for (int w = 0; w < COUNT_WAYS && b[i].way[w].count; w++)
			fn(ctx, &b[i].way[w]);
	}
}

static uint32_t log_elements(const union count_bucket *table, const struct count_shape *s)
{
	uint32_t nr = table->head.nr_log < s->nr_log ? table->head.nr_log : s->nr_log;

	return (nr + COUNT_WAYS - 1) / COUNT_WAYS;
}

void count_walk(const union count_bucket *table, const struct count_shape *s,
		void (*fn)(void *ctx, const struct count_entry *e), void *ctx)
{
	walk(table + COUNT_BUCKETS, s->nr_buckets + log_elements(table, s), fn, ctx);
}

/* Pages that were not written to stay as they are: most of a table, on a quiet CPU. */
void count_clear(union count_bucket *table, const struct count_shape *s)
{
	union count_bucket *b = table + COUNT_BUCKETS;
	uint32_t nr = s->nr_buckets + log_elements(table, s);

	for (uint32_t i = 0; i < nr; i++) {
		for (int w = 0; w < COUNT_WAYS && b[i].way[w].count; w++)
			b[i].way[w].count = 0;
	}
	memset(table, 0, COUNT_BUCKETS * sizeof(*table));
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
