/* SPDX-License-Identifier: BSD-2-Clause */
/* A set of intervals that do not overlap is kept in order here. */
#include <stdlib.h>

#include "base.h"
#include "interval.h"

/*
 * A treap: a search tree by address that is also a heap by random priority, so that whoever chooses
 * the addresses does not choose its depth.
 */

struct interval_node *interval_find(const struct interval_tree *t, uint64_t addr)
{
	struct interval_node *n = t->root;

	while (n && (addr < n->start || addr >= n->end))
		n = n->kid[addr >= n->end];
	return n;
}

struct interval_node *interval_overlap(const struct interval_tree *t, uint64_t start, uint64_t end)
{
	struct interval_node *n = t->root, *best = NULL;

	while (n) {
		if (n->end <= start) {
			n = n->kid[1];
		} else {
			if (n->start < end)
				best = n;
			n = n->kid[0];
		}
	}
	return best;
}

/* Cut a tree in two: below @at and from @at on. */
static void split(struct interval_node *n, uint64_t at, struct interval_node **below,
		  struct interval_node **above)
{
	while (n) {
		if (n->start < at) {
			*below = n;
			below = &n->kid[1];
			n = n->kid[1];
		} else {
			*above = n;
			above = &n->kid[0];
			n = n->kid[0];
		}
	}
	*below = *above = NULL;
}

static uint32_t next_prio(struct interval_tree *t)
{
	if (!t->seed)
		t->seed = base_hash_u64((uintptr_t)t ^ base_now_ns()) | 1;
	t->seed ^= t->seed << 13;
	t->seed ^= t->seed >> 7;
	t->seed ^= t->seed << 17;
	return (uint32_t)(t->seed >> 32);
}

void interval_insert(struct interval_tree *t, struct interval_node *n)
{
	struct interval_node **at = &t->root;

	n->prio = next_prio(t);
	while (*at && (*at)->prio >= n->prio)
		at = &(*at)->kid[(*at)->start < n->start];
	split(*at, n->start, &n->kid[0], &n->kid[1]);
	*at = n;
	t->nr++;
}

void interval_remove(struct interval_tree *t, struct interval_node *n)
{
	struct interval_node **at = &t->root, *low = n->kid[0], *high = n->kid[1];

	while (*at != n)
		at = &(*at)->kid[(*at)->start < n->start];
	/* Both halves are heaps: the greater root each time. */
	while (low && high) {
		if (low->prio >= high->prio) {
			*at = low;
			at = &low->kid[1];
			low = low->kid[1];
		} else {
			*at = high;
			at = &high->kid[0];
			high = high->kid[0];
		}
	}
	*at = low ? low : high;
	t->nr--;
}

/* Rotate left children up until there is none: no stack is needed. */
void interval_release(struct interval_tree *t)
{
	struct interval_node *n = t->root;

	while (n) {
		struct interval_node *left = n->kid[0];

		if (left) {
			n->kid[0] = left->kid[1];
			left->kid[1] = n;
			n = left;
		} else {
			struct interval_node *right = n->kid[1];

			free(n);
			n = right;
		}
	}
	t->root = NULL;
	t->nr = 0;
}
