/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of a registry that were not read: their numbers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "jit_internal.h"

int dyn_gap_add(struct dyn_gaps *g, uint64_t from, uint64_t to)
{
	struct dyn_gap *last = g->nr ? &g->items[g->nr - 1] : NULL;

	if (last && from <= last->to + 1) {
		last->to = to > last->to ? to : last->to;
		return 0;
	}
	/* Two of long ago become one: less is known then. */
	if (g->nr == DYN_GAPS_MAX) {
		g->items[1].from = g->items[0].from;
		memmove(g->items, g->items + 1, --g->nr * sizeof(*g->items));
	}
	if (base_grow(&g->items, &g->cap, g->nr + 1, sizeof(*g->items)) < 0) {
		if (!last)
			return -ENOMEM;
		last->to = to;
		return 0;
	}
	g->items[g->nr++] = (struct dyn_gap){ from, to };
	return 0;
}

/* The first that ends at @seq or above. */
static size_t first_from(const struct dyn_gaps *g, uint64_t seq)
{
	return BASE_LOWER_BOUND(g->items, g->nr, to, seq);
}

uint64_t dyn_gap_first(const struct dyn_gaps *g, uint64_t from, uint64_t to)
{
	size_t i = first_from(g, from);
	uint64_t seq;

	if (from > to || i == g->nr || g->items[i].from > to)
		return 0;
	seq = g->items[i].from;
	return seq > from ? seq : from;
}

uint64_t dyn_gap_last(const struct dyn_gaps *g, uint64_t from, uint64_t to)
{
	size_t i = first_from(g, to);

	if (i < g->nr && g->items[i].from <= to)
		return from <= to ? to : 0;
	if (!i || g->items[i - 1].to < from)
		return 0;
	return g->items[i - 1].to;
}

void dyn_gap_release(struct dyn_gaps *g)
{
	free(g->items);
	*g = (struct dyn_gaps){ 0 };
}
