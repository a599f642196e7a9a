/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of routines of one registry, and the tree of those that live. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "routine.h"

/* LINES_MAX: of a routine, for which hints are made before the first look-up. */
enum { FIRST_BUCKETS = 64, HINTS_PER_BUCKET = 4, HINTS_MAX = 1 << 17, LINES_MAX = 8 };

/* ---- the table ------------------------------------------------------------------------------- */

static uint32_t *bucket_of(const struct dyn_routines *t, uint32_t hash)
{
	return &t->buckets[hash & (t->nr_buckets - 1)];
}

static uint64_t end_of(const struct dyn_routine *r)
{
	return r->addr + r->len;
}

static void hint_add(uint32_t *hints, uint32_t index)
{
	if (hints[0] == index)
		return;
	hints[1] = hints[0];
	hints[0] = index;
}

static void hint_at(const struct dyn_routines *t, uint32_t index)
{
	const struct dyn_routine *r = dyn_routine_get(t, index);
	uint64_t end = r->len < LINES_MAX << DYN_ROUTINE_LINE_SHIFT
			       ? end_of(r)
			       : r->addr + (LINES_MAX << DYN_ROUTINE_LINE_SHIFT);

	for (uint64_t addr = r->addr; t->nr_hints && addr < end;
	     addr = ((addr >> DYN_ROUTINE_LINE_SHIFT) + 1) << DYN_ROUTINE_LINE_SHIFT)
		hint_add(dyn_routine_hints(t, addr), index);
}

/* Few lines of code share one. The old ones are as good where there is no memory. */
static void grow_hints(struct dyn_routines *t)
{
	uint32_t nr = t->nr_buckets < HINTS_MAX / HINTS_PER_BUCKET
			      ? t->nr_buckets * HINTS_PER_BUCKET
			      : HINTS_MAX;
	uint32_t *hints = nr > t->nr_hints ? calloc(nr, sizeof(*hints)) : NULL;

	if (!hints)
		return;
	free(t->hints);
	t->hints = hints;
	t->nr_hints = nr;
	for (uint32_t i = 1; i <= t->last; i++)
		if (dyn_routine_get(t, i)->flags & DYN_LIVE)
			hint_at(t, i);
}

static int grow_buckets(struct dyn_routines *t)
{
	uint32_t nr = t->nr_buckets ? t->nr_buckets * 2 : FIRST_BUCKETS;
	struct dyn_routines old = *t;

	t->buckets = calloc(nr, sizeof(*t->buckets));
	if (!t->buckets) {
		*t = old;
		return -ENOMEM;
	}
	t->nr_buckets = nr;
	for (uint32_t b = 0; b < old.nr_buckets; b++) {
		uint32_t i = old.buckets[b];

		while (i) {
			struct dyn_routine *r = dyn_routine_get(t, i);
			uint32_t *to = bucket_of(t, r->hash), next = r->next;

			r->next = *to;
			*to = i;
			i = next;
		}
	}
	free(old.buckets);
	grow_hints(t);
	return 0;
}

static int add_chunk(struct dyn_routines *t)
{
	struct dyn_routine *chunk;
	int r = base_grow(&t->chunks, &t->cap_chunks, t->nr_chunks + 1, sizeof(*t->chunks));

	if (r < 0)
		return r;
	chunk = malloc(DYN_ROUTINE_CHUNK * sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	t->chunks[t->nr_chunks++] = chunk;
	return 0;
}

int dyn_routine_new(struct dyn_routines *t, uint32_t hash, uint32_t *index)
{
	struct dyn_routine *r;
	uint32_t *bucket;

	if (t->nr_used >= t->nr_buckets && grow_buckets(t) < 0)
		return -ENOMEM;
	if (!t->free) {
		if (t->last == UINT32_MAX - 1 ||
		    (t->last == t->nr_chunks * DYN_ROUTINE_CHUNK && add_chunk(t) < 0))
			return -ENOMEM;
		*index = ++t->last;
	} else {
		*index = t->free;
		t->free = dyn_routine_get(t, *index)->next;
	}
	bucket = bucket_of(t, hash);
	r = dyn_routine_get(t, *index);
	*r = (struct dyn_routine){ .hash = hash, .next = *bucket };
	*bucket = *index;
	t->nr_used++;
	return 0;
}

void dyn_routine_drop(struct dyn_routines *t, uint32_t index)
{
	struct dyn_routine *r = dyn_routine_get(t, index);
	uint32_t *at = bucket_of(t, r->hash);

	while (*at != index)
		at = &dyn_routine_get(t, *at)->next;
	*at = r->next;
	*r = (struct dyn_routine){ .next = t->free };
	t->free = index;
	t->nr_used--;
}

static uint64_t seed_of(struct dyn_routines *t)
{
	if (!t->seed)
		t->seed = base_hash_u64((uintptr_t)t ^ base_now_ns()) | 1;
	return t->seed;
}

uint32_t dyn_routine_hash(struct dyn_routines *t, uint64_t addr, uint64_t len, const void *rest,
			  size_t rest_len)
{
	uint64_t seed = seed_of(t), key[3] = { addr, len, 0 };

	key[2] = base_hash64_seeded(seed, rest, rest_len);
	return (uint32_t)base_hash64_seeded(seed, key, sizeof(key));
}

void dyn_routine_release(struct dyn_routines *t)
{
	for (size_t i = 0; i < t->nr_chunks; i++)
		free(t->chunks[i]);
	free(t->chunks);
	free(t->buckets);
	free(t->hints);
	*t = (struct dyn_routines){ 0 };
}

/* ---- trees ----------------------------------------------------------------------------------- */

/*
 * Treaps: search trees by address that are also heaps by a priority which is random to whoever
 * chooses the addresses, so that he does not choose their depth.
 */
static uint64_t priority(const struct dyn_routines *t, uint32_t index)
{
	return base_hash_u64(t->seed ^ index);
}

uint32_t dyn_routine_find(const struct dyn_routines *t, uint32_t root, uint64_t addr)
{
	while (root) {
		const struct dyn_routine *r = dyn_routine_get(t, root);

		if (addr >= r->addr && addr < end_of(r))
			return root;
		root = r->kid[addr >= end_of(r)];
	}
	return 0;
}

static bool lives_at(const struct dyn_routine *r, uint64_t addr)
{
	return r->flags & DYN_LIVE && addr >= r->addr && addr < end_of(r);
}

/* A hint may be of any age: only the routine itself tells whether it lives there. */
uint32_t dyn_routine_living(const struct dyn_routines *t, uint64_t addr)
{
	uint32_t *hints = t->nr_hints ? dyn_routine_hints(t, addr) : NULL, index;

	for (size_t i = 0; hints && i < DYN_ROUTINE_HINTS && hints[i]; i++)
		if (lives_at(dyn_routine_get(t, hints[i]), addr))
			return hints[i];
	index = dyn_routine_find(t, t->live, addr);
	if (hints && index)
		hint_add(hints, index);
	return index;
}

uint32_t dyn_routine_overlap(const struct dyn_routines *t, uint32_t root, uint64_t start,
			     uint64_t end)
{
	uint32_t best = 0;

	while (root) {
		const struct dyn_routine *r = dyn_routine_get(t, root);

		if (end_of(r) <= start) {
			root = r->kid[1];
		} else {
			if (r->addr < end)
				best = root;
			root = r->kid[0];
		}
	}
	return best;
}

/* Cut a tree in two: below @at and from @at on. */
static void split(const struct dyn_routines *t, uint32_t root, uint64_t at, uint32_t *below,
		  uint32_t *above)
{
	while (root) {
		struct dyn_routine *r = dyn_routine_get(t, root);

		if (r->addr < at) {
			*below = root;
			below = &r->kid[1];
			root = r->kid[1];
		} else {
			*above = root;
			above = &r->kid[0];
			root = r->kid[0];
		}
	}
	*below = *above = 0;
}

void dyn_routine_insert(const struct dyn_routines *t, uint32_t *root, uint32_t index)
{
	struct dyn_routine *n = dyn_routine_get(t, index);
	uint64_t prio = priority(t, index);

	if (root == &t->live)
		hint_at(t, index);
	while (*root && priority(t, *root) >= prio) {
		struct dyn_routine *r = dyn_routine_get(t, *root);

		root = &r->kid[r->addr < n->addr];
	}
	split(t, *root, n->addr, &n->kid[0], &n->kid[1]);
	*root = index;
}

void dyn_routine_remove(const struct dyn_routines *t, uint32_t *root, uint32_t index)
{
	struct dyn_routine *n = dyn_routine_get(t, index);
	uint32_t low = n->kid[0], high = n->kid[1];

	while (*root != index) {
		struct dyn_routine *r = dyn_routine_get(t, *root);

		root = &r->kid[r->addr < n->addr];
	}
	/* Both halves are heaps: the greater root each time. */
	while (low && high) {
		if (priority(t, low) >= priority(t, high)) {
			*root = low;
			root = &dyn_routine_get(t, low)->kid[1];
			low = *root;
		} else {
			*root = high;
			root = &dyn_routine_get(t, high)->kid[0];
			high = *root;
		}
	}
	*root = low ? low : high;
	n->kid[0] = n->kid[1] = 0;
}
