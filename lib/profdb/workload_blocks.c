/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts of workloads are summed by the blocks of code that minutes are kept by. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

void profdb_workload_blocks_release(struct profdb_workload_blocks *b)
{
	free(b->items);
	free(b->rows);
	free(b->sums);
}

/* Rows from @from on that are in its block. */
static size_t rows_of_block(const struct profdb_workload_rows *t, size_t from)
{
	const struct profdb_workload_key *first = profdb_workload_rows_key(t, from);
	size_t end = from + 1;

	for (; end < t->nr; end++) {
		const struct profdb_workload_key *key = profdb_workload_rows_key(t, end);

		if (key->image != first->image ||
		    key->off / PROFDB_MINUTE_BLOCK != first->off / PROFDB_MINUTE_BLOCK)
			break;
	}
	return end - from;
}

static int make_room(struct profdb_workload_blocks *b, size_t nr)
{
	int r = base_grow(&b->items, &b->cap_items, 2 * nr, sizeof(*b->items));

	if (r >= 0)
		r = base_grow(&b->rows, &b->cap_rows, nr, sizeof(*b->rows));
	return r < 0 ? r : base_grow(&b->sums, &b->cap_sums, nr * b->nr_events, sizeof(*b->sums));
}

static void add_up(struct profdb_workload_blocks *b, const struct base_sort_item *sorted, size_t nr)
{
	b->nr = 0;
	for (size_t i = 0; i < nr; i++) {
		const struct profdb_workload_key *key = sorted[i].of;
		const uint64_t *count = (const uint64_t *)(key + 1);
		uint64_t *sum = b->sums + b->nr * b->nr_events;

		if (b->nr && b->rows[b->nr - 1].workload == key->workload) {
			sum -= b->nr_events;
		} else {
			memset(sum, 0, b->nr_events * sizeof(*sum));
			b->rows[b->nr] = *key;
			b->rows[b->nr++].off /= PROFDB_MINUTE_BLOCK;
		}
		for (size_t k = 0; k < b->nr_events; k++)
			sum[k] += count[k];
	}
}

int profdb_workload_blocks_next(struct profdb_workload_blocks *b,
				const struct profdb_workload_rows *counts)
{
	size_t nr;
	int r;

	if (b->at == counts->nr)
		return 0;
	nr = rows_of_block(counts, b->at);
	r = make_room(b, nr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < nr; i++) {
		const struct profdb_workload_key *key = profdb_workload_rows_key(counts, b->at + i);

		b->items[i] = (struct base_sort_item){ key->workload, key };
	}
	add_up(b, base_sort(b->items, b->items + nr, nr), nr);
	b->at += nr;
	return 1;
}
