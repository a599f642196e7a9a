/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What clients tell of processes has its place among the driver's load events: what happened before
 * it may still lie in a ring, and what happens after it must find it done.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attrib.h"

enum { TOLD_MAX = 4096 };

int told_add(struct tolds *t, const struct driver_load *l)
{
	struct told *to;

	if (t->nr >= TOLD_MAX)
		return -DCPI_ELIMIT;
	if (base_grow(&t->items, &t->cap, t->nr + 1, sizeof(*t->items)) < 0)
		return -ENOMEM;
	to = &t->items[t->nr];
	*to = (struct told){ .load = *l, .path = strdup(l->path) };
	if (!to->path)
		return -ENOMEM;
	to->load.path = to->path;
	t->nr++;
	return 0;
}

void told_handle(struct attrib *a, uint64_t time_ns)
{
	struct tolds *t = &a->told;
	size_t nr = 0;

	for (; nr < t->nr && t->items[nr].load.time_ns <= time_ns; nr++) {
		a->now_ns = t->items[nr].load.time_ns;
		track_load(a, &t->items[nr].load);
		free(t->items[nr].path);
	}
	t->nr -= nr;
	memmove(t->items, t->items + nr, t->nr * sizeof(*t->items));
}

void told_release(struct tolds *t)
{
	for (size_t i = 0; i < t->nr; i++)
		free(t->items[i].path);
	free(t->items);
	*t = (struct tolds){ 0 };
}
