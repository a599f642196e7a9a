/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts of workloads by place and minute are found by their keys here, and sorted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

enum { KEY_WORDS = sizeof(struct profdb_workload_key) / sizeof(uint64_t) };

static bool key_equal(const struct profdb_workload_key *a, const struct profdb_workload_key *b)
{
	return a->minute == b->minute && a->off == b->off && a->image == b->image &&
	       a->workload == b->workload;
}

static int key_compare(const struct profdb_workload_key *a, const struct profdb_workload_key *b)
{
	if (a->minute != b->minute)
		return a->minute < b->minute ? -1 : 1;
	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	if (a->off != b->off)
		return a->off < b->off ? -1 : 1;
	return a->workload < b->workload ? -1 : a->workload > b->workload;
}

void profdb_workload_rows_release(struct profdb_workload_rows *t)
{
	free(t->words);
	free(t->slots);
}

static int grow(struct profdb_workload_rows *t, size_t nr)
{
	size_t words;

	if (!t->stride)
		t->stride = KEY_WORDS + 1;
	if (base_mul_overflow(nr, t->stride, &words))
		return -ENOMEM;
	return base_grow(&t->words, &t->cap_words, words, sizeof(*t->words));
}

int profdb_workload_rows_widen(struct profdb_workload_rows *t, size_t nr_events)
{
	size_t stride = KEY_WORDS + nr_events, old = t->stride;
	int r;

	if (stride <= old)
		return 0;
	t->stride = stride;
	r = grow(t, t->nr);
	if (r < 0) {
		t->stride = old;
		return r;
	}
	/* From the last row down: rows move up, over rows that have moved already. */
	for (size_t i = t->nr; i-- > 0;) {
		memmove(t->words + i * stride, t->words + i * old, old * sizeof(*t->words));
		memset(t->words + i * stride + old, 0, (stride - old) * sizeof(*t->words));
	}
	return 0;
}

/* ---- keys to rows ---------------------------------------------------------------------------- */

static size_t slot_of(const struct profdb_workload_rows *t, const struct profdb_workload_key *key)
{
	size_t mask = t->nr_slots - 1, at = base_hash64_seeded(t->seed, key, sizeof(*key)) & mask;

	while (t->slots[at] && !key_equal(profdb_workload_rows_key(t, t->slots[at] - 1), key))
		at = (at + 1) & mask;
	return at;
}

/* At most half full, so that probes stay short. */
static int make_hash(struct profdb_workload_rows *t, size_t nr)
{
	size_t want = t->nr_slots ? t->nr_slots : 64;
	uint32_t *slots;

	while (want < 2 * nr)
		want *= 2;
	if (want == t->nr_slots)
		return 0;
	slots = calloc(want, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->nr_slots = want;
	/* Keys are chosen by programs: one that knew the hash could have all of them collide. */
	if (!t->seed)
		t->seed = base_hash_seed();
	for (size_t i = 0; i < t->nr; i++)
		t->slots[slot_of(t, profdb_workload_rows_key(t, i))] = (uint32_t)i + 1;
	return 0;
}

int profdb_workload_rows_reserve(struct profdb_workload_rows *t, size_t more)
{
	int r;

	if (more > PROFDB_NR_WORKLOAD_ROWS - t->nr)
		return -DCPI_ELIMIT;
	r = grow(t, t->nr + more);
	return r < 0 ? r : make_hash(t, t->nr + more);
}

static uint64_t *new_row(struct profdb_workload_rows *t, const struct profdb_workload_key *key)
{
	size_t row = t->nr++;
	uint64_t *count = profdb_workload_rows_counts(t, row);

	*profdb_workload_rows_key(t, row) = *key;
	memset(count, 0, (t->stride - KEY_WORDS) * sizeof(*count));
	if (row && key_compare(profdb_workload_rows_key(t, row - 1), key) > 0)
		t->unsorted = true;
	return count;
}

uint64_t *profdb_workload_rows_at(struct profdb_workload_rows *t,
				  const struct profdb_workload_key *key)
{
	size_t slot = slot_of(t, key);

	if (t->slots[slot])
		return profdb_workload_rows_counts(t, t->slots[slot] - 1);
	t->slots[slot] = (uint32_t)t->nr + 1;
	return new_row(t, key);
}

static void drop_hash(struct profdb_workload_rows *t)
{
	free(t->slots);
	t->slots = NULL;
	t->nr_slots = 0;
}

int profdb_workload_rows_append(struct profdb_workload_rows *t,
				const struct profdb_workload_key *key, uint64_t **count)
{
	int r = t->nr >= PROFDB_NR_WORKLOAD_ROWS ? -DCPI_ELIMIT : grow(t, t->nr + 1);

	if (r < 0)
		return r;
	drop_hash(t);
	*count = new_row(t, key);
	return 0;
}

void profdb_workload_rows_clear(struct profdb_workload_rows *t)
{
	drop_hash(t);
	t->nr = 0;
	t->unsorted = false;
}

int profdb_workload_rows_add(struct profdb_workload_rows *t,
			     const struct profdb_workload_rows *from)
{
	int r = from->nr ? profdb_workload_rows_reserve(t, from->nr) : 0;

	for (size_t i = 0; r >= 0 && i < from->nr; i++) {
		const uint64_t *count = profdb_workload_rows_counts(from, i);
		uint64_t *sum = profdb_workload_rows_at(t, profdb_workload_rows_key(from, i));

		for (size_t k = 0; k < from->stride - KEY_WORDS; k++)
			sum[k] += count[k];
	}
	return r;
}

/* ---- order ----------------------------------------------------------------------------------- */

static uint64_t word_of(const struct profdb_workload_key *key, int word)
{
	switch (word) {
	case 0:
		return key->workload;
	case 1:
		return key->off;
	case 2:
		return key->image;
	default:
		return (uint64_t)key->minute;
	}
}

/* False: no memory for that. */
static bool sort_by_digits(struct profdb_workload_rows *t)
{
	struct base_sort_item *order = calloc(2 * t->nr, sizeof(*order)), *sorted = order;
	uint64_t *words = malloc(t->nr * t->stride * sizeof(*words));

	for (size_t i = 0; order && words && i < t->nr; i++)
		order[i].of = profdb_workload_rows_key(t, i);
	for (int word = 0; order && words && word < 4; word++) {
		for (size_t i = 0; i < t->nr; i++)
			sorted[i].key = word_of(sorted[i].of, word);
		sorted = base_sort(sorted, sorted == order ? order + t->nr : order, t->nr);
	}
	for (size_t i = 0; order && words && i < t->nr; i++)
		memcpy(words + i * t->stride, sorted[i].of, t->stride * sizeof(*words));
	free(order);
	if (!order || !words) {
		free(words);
		return false;
	}
	free(t->words);
	t->words = words;
	t->cap_words = t->nr * t->stride;
	return true;
}

static int by_key(const void *a, const void *b)
{
	return key_compare(a, b);
}

void profdb_workload_rows_sort(struct profdb_workload_rows *t)
{
	if (!t->unsorted)
		return;
	drop_hash(t);
	if (!sort_by_digits(t))
		qsort(t->words, t->nr, t->stride * sizeof(*t->words), by_key);
	t->unsorted = false;
}
