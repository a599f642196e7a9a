/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lifetimes of the past by their address: each is chained in the one or two blocks that it touches,
 * of a size that is at least its own. Newest first.
 */
#include <errno.h>
#include <stdlib.h>

#include "jit_internal.h"

enum { FIRST_HEADS = 64, SHIFT_MIN = 6 };

/* Neighbouring blocks are in buckets of different parity, which tells what link they go on by. */
static uint32_t *head_of(const struct dyn_lifetimes *t, uint64_t block, unsigned int shift)
{
	uint64_t hash = base_hash_u64((block >> 1) << 6 | shift);

	return &t->past_heads[(hash << 1 | (block & 1)) & (t->nr_past_heads - 1)];
}

static unsigned int shift_of(const struct dyn_past *p)
{
	unsigned int shift = SHIFT_MIN;

	while (p->len > 1ull << shift)
		shift++;
	return shift;
}

static void chain(struct dyn_lifetimes *t, size_t i)
{
	struct dyn_past *p = &t->past[i];
	unsigned int shift = shift_of(p);
	uint64_t last = (p->addr + p->len - 1) >> shift;

	t->past_shifts |= 1ull << shift;
	for (uint64_t block = p->addr >> shift; block <= last; block++) {
		uint32_t *head = head_of(t, block, shift);

		p->older[block & 1] = *head;
		*head = (uint32_t)i + 1;
	}
}

void dyn_past_index(struct dyn_lifetimes *t)
{
	t->past_shifts = 0;
	if (t->past_heads)
		memset(t->past_heads, 0, t->nr_past_heads * sizeof(*t->past_heads));
	for (size_t i = 0; i < t->nr_past; i++)
		chain(t, i);
}

/* As many as there are lifetimes, or fewer, where there is no memory. */
static int grow_heads(struct dyn_lifetimes *t)
{
	size_t nr = t->nr_past_heads ? t->nr_past_heads * 2 : FIRST_HEADS;
	uint32_t *heads = calloc(nr, sizeof(*heads));

	if (!heads)
		return t->nr_past_heads ? 0 : -ENOMEM;
	free(t->past_heads);
	t->past_heads = heads;
	t->nr_past_heads = nr;
	dyn_past_index(t);
	return 0;
}

int dyn_past_add(struct dyn_lifetimes *t, const struct dyn_past *p)
{
	int r = base_grow(&t->past, &t->cap_past, t->nr_past + 1, sizeof(*t->past));

	if (r == 0 && t->nr_past >= t->nr_past_heads)
		r = grow_heads(t);
	if (r < 0)
		return r;
	t->past[t->nr_past] = *p;
	chain(t, t->nr_past++);
	return 0;
}

/* From a link on, the newest that stood there. */
static uint32_t first_there(const struct dyn_lifetimes *t, uint32_t i, uint64_t addr,
			    uint64_t block, size_t from)
{
	for (; i > from; i = t->past[i - 1].older[block & 1]) {
		const struct dyn_past *p = &t->past[i - 1];

		if (addr >= p->addr && addr - p->addr < p->len)
			return i;
	}
	return 0;
}

bool dyn_past_next(const struct dyn_lifetimes *t, struct dyn_past_walk *w)
{
	uint64_t block = w->addr >> w->shift;

	/* Buckets are shared: each is found in the blocks of its own size alone. */
	if (w->i)
		w->i = first_there(t, t->past[w->i - 1].older[block & 1], w->addr, block, w->from);
	for (; !w->i && t->past_shifts >> w->next_shift; w->next_shift++) {
		if (!(t->past_shifts >> w->next_shift & 1))
			continue;
		w->shift = w->next_shift;
		block = w->addr >> w->shift;
		w->i = first_there(t, *head_of(t, block, w->shift), w->addr, block, w->from);
	}
	w->p = w->i ? &t->past[w->i - 1] : NULL;
	return w->p != NULL;
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
	uint32_t i = *head_of(t, block, shift);

	while (i && !is_there(t, &t->past[i - 1], addr, len))
		i = t->past[i - 1].older[block & 1];
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
