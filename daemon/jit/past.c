/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lifetimes of the past by their address: each is entered in the one or two blocks that it touches,
 * of a size that is at least its own. A bucket has numbers of past lifetimes in ascending order: a
 * JIT puts thousands one after another at one address, and samples ask for one in their midst.
 */
#include <errno.h>
#include <stdlib.h>

#include "bound.h"
#include "jit_internal.h"

enum { FIRST_BUCKETS = 64, BUCKET_LOAD = 2, SHIFT_MIN = 6 };

struct dyn_past_bucket {
	uint32_t *v;
	uint32_t nr, cap;
};

static struct dyn_past_bucket *bucket_of(const struct dyn_lifetimes *t, uint64_t block,
					 unsigned int shift)
{
	return &t->past_buckets[base_hash_u64(block << 6 | shift) & (t->nr_past_buckets - 1)];
}

static unsigned int shift_of(const struct dyn_past *p)
{
	unsigned int shift = SHIFT_MIN;

	while (p->len > 1ull << shift)
		shift++;
	return shift;
}

/* Most buckets have one or two. */
static int bucket_add(struct dyn_past_bucket *b, uint32_t i)
{
	uint32_t cap = b->cap ? b->cap * 2 : 2, *v;

	if (b->nr && b->v[b->nr - 1] == i)
		return 0;
	if (b->nr == b->cap) {
		v = realloc(b->v, cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		b->v = v;
		b->cap = cap;
	}
	b->v[b->nr++] = i;
	return 0;
}

/* In one of its blocks alone, where there is no memory for the other. */
static int enter(struct dyn_lifetimes *t, size_t i)
{
	const struct dyn_past *p = &t->past[i];
	unsigned int shift = shift_of(p);
	uint64_t last = (p->addr + p->len - 1) >> shift;
	int r = 0;

	t->past_shifts |= 1ull << shift;
	for (uint64_t block = p->addr >> shift; r == 0 && block <= last; block++)
		r = bucket_add(bucket_of(t, block, shift), (uint32_t)i);
	return r;
}

/* Memory that a bucket had for more. */
static void shrink(struct dyn_past_bucket *b)
{
	uint32_t cap = 2, *v;

	if (!b->nr) {
		free(b->v);
		*b = (struct dyn_past_bucket){ 0 };
		return;
	}
	while (cap < b->nr)
		cap *= 2;
	v = cap < b->cap ? realloc(b->v, cap * sizeof(*v)) : NULL;
	if (v)
		*b = (struct dyn_past_bucket){ v, b->nr, cap };
}

void dyn_past_index(struct dyn_lifetimes *t)
{
	t->past_shifts = 0;
	for (size_t i = 0; i < t->nr_past_buckets; i++)
		t->past_buckets[i].nr = 0;
	/* Each bucket had room for more than now. */
	for (size_t i = 0; i < t->nr_past; i++)
		(void)enter(t, i);
	for (size_t i = 0; i < t->nr_past_buckets; i++)
		shrink(&t->past_buckets[i]);
}

static void free_buckets(struct dyn_past_bucket *v, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		free(v[i].v);
	free(v);
}

/* As before, where there is no memory. */
static int grow(struct dyn_lifetimes *t)
{
	size_t nr = t->nr_past_buckets ? t->nr_past_buckets * 2 : FIRST_BUCKETS;
	size_t old_nr = t->nr_past_buckets;
	struct dyn_past_bucket *old = t->past_buckets;
	int r = 0;

	t->past_buckets = calloc(nr, sizeof(*t->past_buckets));
	t->nr_past_buckets = nr;
	if (!t->past_buckets)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < t->nr_past; i++)
		r = enter(t, i);
	if (r == 0) {
		free_buckets(old, old_nr);
		return 0;
	}
	free_buckets(t->past_buckets, t->past_buckets ? nr : 0);
	t->past_buckets = old;
	t->nr_past_buckets = old_nr;
	return old ? 0 : r;
}

int dyn_past_add(struct dyn_lifetimes *t, const struct dyn_past *p)
{
	int r = base_grow(&t->past, &t->cap_past, t->nr_past + 1, sizeof(*t->past));

	if (r == 0 && t->nr_past >= t->nr_past_buckets * BUCKET_LOAD)
		r = grow(t);
	if (r < 0)
		return r;
	t->past[t->nr_past] = *p;
	r = enter(t, t->nr_past++);
	if (r < 0) {
		t->nr_past--;
		dyn_past_index(t);
	}
	return r;
}

void dyn_past_release(struct dyn_lifetimes *t)
{
	free_buckets(t->past_buckets, t->nr_past_buckets);
	free(t->past);
}

static bool stood_there(const struct dyn_past *p, uint64_t addr)
{
	return addr >= p->addr && addr - p->addr < p->len;
}

/* The next bucket that may have some, at the first that is asked for. */
static const struct dyn_past_bucket *next_bucket(const struct dyn_lifetimes *t,
						 struct dyn_past_walk *w)
{
	while (t->past_shifts >> w->next_shift) {
		unsigned int shift = w->next_shift++;
		const struct dyn_past_bucket *b;

		if (!(t->past_shifts >> shift & 1))
			continue;
		w->shift = shift;
		b = bucket_of(t, w->addr >> shift, shift);
		w->i = BASE_BOUND(i, b->nr, b->v[i] < w->from);
		return b;
	}
	return NULL;
}

bool dyn_past_next(const struct dyn_lifetimes *t, struct dyn_past_walk *w)
{
	const struct dyn_past_bucket *b =
		w->next_shift ? bucket_of(t, w->addr >> w->shift, w->shift) : next_bucket(t, w);

	for (; b; b = next_bucket(t, w)) {
		while (w->i < b->nr) {
			w->p = &t->past[b->v[w->i++]];
			if (stood_there(w->p, w->addr))
				return true;
		}
	}
	return false;
}

static bool overlaps(const struct dyn_past *p, uint64_t addr, uint64_t len)
{
	return p->addr < addr + len && addr < p->addr + p->len;
}

/* A step is wasted: those of one answer are bounded, and beyond somebody may have stood there. */
static bool is_there(struct dyn_lifetimes *t, const struct dyn_past *p, uint64_t addr, uint64_t len)
{
	return overlaps(p, addr, len) || ++t->nr_misses > DYN_MISSES_MAX;
}

static bool overlaps_in(struct dyn_lifetimes *t, uint64_t block, unsigned int shift, uint64_t addr,
			uint64_t len)
{
	const struct dyn_past_bucket *b = bucket_of(t, block, shift);
	uint32_t i = b->nr;

	while (i && !is_there(t, &t->past[b->v[i - 1]], addr, len))
		i--;
	return i || ++t->nr_misses > DYN_MISSES_MAX;
}

/* Where the blocks are more than all there are, it is shorter to look at all there are. */
bool dyn_past_overlaps(struct dyn_lifetimes *t, uint64_t addr, uint64_t len)
{
	bool found = false;

	for (unsigned int shift = SHIFT_MIN; !found && t->past_shifts >> shift; shift++) {
		uint64_t block = addr >> shift, last = (addr + len - 1) >> shift;

		if (!(t->past_shifts >> shift & 1))
			continue;
		if (last - block >= t->nr_past) {
			for (size_t i = 0; !found && i < t->nr_past; i++)
				found = is_there(t, &t->past[i], addr, len);
			return found;
		}
		for (; !found && block <= last; block++)
			found = overlaps_in(t, block, shift, addr, len);
	}
	return found;
}
