/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the code of registered processes comes and goes, for a driver that counts: there each
 * sample has to come with its time. Nobody tells of memory that is unmapped, so what was told once
 * stays; of more than the driver takes, those nearest to each other are taken together.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon_core.h"

struct ranges {
	size_t nr;
	struct driver_range items[DRIVER_NR_RANGES];
};

/* Disjoint, in no order until they are joined. */
struct pile {
	struct driver_range *items;
	size_t nr, cap;
	bool failed;
};

static void pile_add(void *ctx, uint64_t start, uint64_t end)
{
	struct pile *p = ctx;

	/* The vsyscall page is the kernel's. */
	if (end > INT64_MAX)
		return;
	if (base_grow(&p->items, &p->cap, p->nr + 1, sizeof(*p->items)) < 0)
		p->failed = true;
	else
		p->items[p->nr++] = (struct driver_range){ .start = start, .end = end };
}

static int by_start(const void *a, const void *b)
{
	const struct driver_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Join those whose distance is at most @gap; the least distance that is left. */
static uint64_t join(struct pile *p, uint64_t gap)
{
	uint64_t least = UINT64_MAX;
	size_t last = 0;

	for (size_t i = 1; i < p->nr; i++) {
		struct driver_range *a = &p->items[last], *b = &p->items[i];
		uint64_t distance = b->start > a->end ? b->start - a->end : 0;

		if (distance <= gap) {
			a->end = b->end > a->end ? b->end : a->end;
			continue;
		}
		least = distance < least ? distance : least;
		p->items[++last] = *b;
	}
	p->nr = p->nr ? last + 1 : 0;
	return least;
}

static void reduce(struct pile *p)
{
	uint64_t gap = 0;

	if (p->nr)
		qsort(p->items, p->nr, sizeof(*p->items), by_start);
	do {
		gap = join(p, gap);
	} while (p->nr > DRIVER_NR_RANGES);
}

static void collect(struct attrib *a, const struct process *p, struct pile *pile)
{
	for (size_t i = 0; p->told && i < p->told->nr; i++)
		pile_add(pile, p->told->items[i].start, p->told->items[i].end);
	for (size_t i = 0; i < p->nr_maps; i++)
		if (p->maps[i].kind == MAP_DYNAMIC)
			pile_add(pile, p->maps[i].start, p->maps[i].end);
	/* The events of a process that has just come may not have. */
	if (!p->told && a->live)
		scan_dynamic(p, pile_add, pile);
	dyn_ranges(p, pile_add, pile);
	reduce(pile);
}

static void tell(struct attrib *a, struct process *p)
{
	struct pile pile = { 0 };
	size_t len;
	int r;

	collect(a, p, &pile);
	len = pile.nr * sizeof(*pile.items);
	if (pile.failed || (p->told && p->told->nr == pile.nr &&
			    (!len || !memcmp(p->told->items, pile.items, len))))
		goto out;
	if (!p->told)
		p->told = calloc(1, sizeof(*p->told));
	if (!p->told)
		goto out;
	p->told->nr = pile.nr;
	memcpy(p->told->items, pile.items, len);
	r = a->ranges_set(a->driver, p->pid, p->told->items, p->told->nr);
	/* Its samples are counted like any other's: less is known of addresses that are reused. */
	if (r < 0)
		base_log(BASE_LOG_DEBUG, "process %d: its dynamic code is counted only: %s", p->pid,
			 base_strerror(r));
out:
	free(pile.items);
}

void ranges_tell(struct attrib *a)
{
	struct process *p;

	if (!a->ranges_changed)
		return;
	a->ranges_changed = false;
	for (size_t pos = 0; a->ranges_set && processes_next(a->processes, &pos, &p);) {
		/* It is the last one that runs. */
		while (p->later)
			p = p->later;
		if (p->dyn && dyn_reuses(p))
			tell(a, p);
	}
}

void ranges_end(struct attrib *a, struct process *p)
{
	const struct process *now = processes_find(a->processes, p->pid);

	/* That pid's next life may have ranges of its own. */
	if (p->told && p->told->nr && a->ranges_set && !(now && now->told))
		a->ranges_set(a->driver, p->pid, NULL, 0);
}
