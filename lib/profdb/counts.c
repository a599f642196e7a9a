/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

void profdb_counts_init(struct profdb_counts *c)
{
	*c = (struct profdb_counts){ .stride = 2, .sorted = true };
}

static void drop_hash(struct profdb_counts *c)
{
	free(c->slots);
	c->slots = NULL;
	c->nr_slots = 0;
}

void profdb_counts_release(struct profdb_counts *c)
{
	drop_hash(c);
	free(c->words);
	profdb_counts_init(c);
}

void profdb_counts_clear(struct profdb_counts *c)
{
	drop_hash(c);
	c->nr = 0;
	c->sorted = true;
}

int profdb_counts_widen(struct profdb_counts *c, size_t nr_events)
{
	size_t stride = c->stride, old = c->stride;
	int r;

	while (stride < nr_events + 1)
		stride = 1 + 2 * (stride - 1);
	if (stride == old)
		return 0;
	r = base_grow(&c->words, &c->cap_words, c->nr * stride, sizeof(*c->words));
	if (r < 0)
		return r;
	/* From the last row down: rows move up, over rows that have moved already. */
	for (size_t i = c->nr; i-- > 0;) {
		memmove(c->words + i * stride, c->words + i * old, old * sizeof(*c->words));
		memset(c->words + i * stride + old, 0, (stride - old) * sizeof(*c->words));
	}
	c->stride = stride;
	return 0;
}

static size_t home_of(const struct profdb_counts *c, uint64_t off)
{
	return base_hash_u64(off) & (c->nr_slots - 1);
}

static size_t slot_of(const struct profdb_counts *c, uint64_t off)
{
	size_t mask = c->nr_slots - 1, at = home_of(c, off);

	while (c->slots[at] && profdb_counts_at(c, c->slots[at] - 1)->off != off)
		at = (at + 1) & mask;
	return at;
}

/* At most half full, so that probes stay short. */
static int make_hash(struct profdb_counts *c, size_t rows)
{
	size_t want = 64;

	if (rows > UINT32_MAX / 4)
		return -ENOMEM;
	while (want < 2 * rows)
		want *= 2;
	if (c->slots && want <= c->nr_slots)
		return 0;
	drop_hash(c);
	c->slots = calloc(want, sizeof(*c->slots));
	if (!c->slots)
		return -ENOMEM;
	c->nr_slots = want;
	for (size_t i = 0; i < c->nr; i++)
		c->slots[slot_of(c, profdb_counts_at(c, i)->off)] = (uint32_t)i + 1;
	return 0;
}

static int reserve_rows(struct profdb_counts *c, size_t more)
{
	size_t rows, words;

	if (base_add_overflow(c->nr, more, &rows) || base_mul_overflow(rows, c->stride, &words))
		return -ENOMEM;
	return base_grow(&c->words, &c->cap_words, words, sizeof(*c->words));
}

int profdb_counts_reserve(struct profdb_counts *c, size_t more)
{
	int r = reserve_rows(c, more);

	return r < 0 ? r : make_hash(c, c->nr + more);
}

static struct profdb_entry *append(struct profdb_counts *c, uint64_t off)
{
	struct profdb_entry *e;

	if (reserve_rows(c, 1) < 0)
		return NULL;
	e = profdb_counts_at(c, c->nr);
	memset(e, 0, c->stride * sizeof(*c->words));
	e->off = off;
	c->nr++;
	return e;
}

struct profdb_entry *profdb_counts_row(struct profdb_counts *c, uint64_t off)
{
	uint64_t last = c->nr ? profdb_counts_at(c, c->nr - 1)->off : 0;
	struct profdb_entry *e;
	size_t at;

	/* Files come in order: no hash needed to append, or to hit the last row again. */
	if (c->nr && last == off)
		return profdb_counts_at(c, c->nr - 1);
	if (!c->slots && c->sorted && (!c->nr || last < off))
		return append(c, off);
	if (make_hash(c, c->nr + 1) < 0)
		return NULL;
	at = slot_of(c, off);
	if (c->slots[at])
		return profdb_counts_at(c, c->slots[at] - 1);
	e = append(c, off);
	if (!e)
		return NULL;
	c->slots[at] = (uint32_t)c->nr;
	c->sorted = c->sorted && (c->nr == 1 || last < off);
	return e;
}

/* The row of another offset may stand first: that one's is not asked for then. */
void profdb_counts_expect(const struct profdb_counts *c, uint64_t off, unsigned int step)
{
	const uint32_t *slot = c->slots ? &c->slots[home_of(c, off)] : NULL;

	if (!slot)
		return;
	if (!step)
		__builtin_prefetch(slot, 1);
	else if (*slot)
		__builtin_prefetch(profdb_counts_at(c, *slot - 1), 1);
}

static int by_offset(const void *a, const void *b)
{
	const struct profdb_entry *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

/* Their offsets are sorted, and then each row is moved once. False: no memory for that. */
static bool sort_offsets(struct profdb_counts *c)
{
	struct base_sort_item *order = calloc(2 * c->nr, sizeof(*order)), *sorted;
	uint64_t *words = calloc(c->nr * c->stride, sizeof(*words));

	if (!order || !words) {
		free(order);
		free(words);
		return false;
	}
	for (size_t i = 0; i < c->nr; i++)
		order[i] = (struct base_sort_item){ profdb_counts_at(c, i)->off,
						    profdb_counts_at(c, i) };
	sorted = base_sort(order, order + c->nr, c->nr);
	for (size_t i = 0; i < c->nr; i++)
		memcpy(words + i * c->stride, sorted[i].of, c->stride * sizeof(*words));
	free(order);
	free(c->words);
	c->words = words;
	c->cap_words = c->nr * c->stride;
	return true;
}

void profdb_counts_sort(struct profdb_counts *c)
{
	if (c->sorted)
		return;
	if (!sort_offsets(c))
		qsort(c->words, c->nr, c->stride * sizeof(*c->words), by_offset);
	c->sorted = true;
	drop_hash(c);
}
