/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts whose image became part of another one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "images.h"

static int move_entry(struct profdb_profile *to, const struct profdb_entry *entry, uint64_t off,
		      const int *event, size_t nr_events)
{
	int r = 0;

	for (size_t e = 0; r >= 0 && e < nr_events; e++)
		if (entry->count[e])
			r = profdb_profile_add(to, off, (size_t)event[e], entry->count[e]);
	return r;
}

/* Where a trace was, and went; the marks beyond all offsets stay what they are. */
static uint64_t moved(const struct wire_replaces *map, uint64_t off)
{
	return off < PROFDB_ANY_START ? wire_moved_off(map, off) : off;
}

static int move_moves(const struct profdb_profile *from, const struct wire_replaces *map,
		      struct profdb_profile *to)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < profdb_profile_nr_edges(from); i++) {
		struct profdb_edge m = *profdb_profile_edge(from, i);

		m.start = moved(map, m.start);
		m.from = moved(map, m.from);
		m.to = moved(map, m.to);
		r = profdb_profile_edge_add(to, &m);
	}
	return r;
}

static int move_insns(const struct profdb_profile *from, const struct wire_replaces *map,
		      const int *event, struct profdb_profile *to)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < profdb_profile_nr_insns(from); i++) {
		struct profdb_insn m = *profdb_profile_insn(from, i);

		m.off = moved(map, m.off);
		m.event = (uint32_t)event[m.event];
		r = profdb_profile_insn_add(to, &m);
	}
	return r;
}

int image_move_counts(const struct profdb_profile *from, const struct wire_replaces *map,
		      struct profdb_profile *to)
{
	size_t nr = profdb_profile_nr_events(from);
	int event[PROFDB_NR_EVENTS], r = 0;

	for (size_t e = 0; e < nr; e++) {
		const struct profdb_event *ev = profdb_profile_event(from, e);

		event[e] = profdb_profile_event_find(to, ev->name);
		if (event[e] >= 0)
			continue;
		event[e] = profdb_profile_event_add(to, ev->name, ev->period);
		if (event[e] < 0)
			return event[e];
		profdb_profile_event_set_enabled(to, (size_t)event[e], ev->enabled);
	}
	for (size_t i = 0; r >= 0 && i < profdb_profile_nr_entries(from); i++) {
		const struct profdb_entry *entry = profdb_profile_entry(from, i);

		r = move_entry(to, entry, wire_moved_off(map, entry->off), event, nr);
	}
	if (r >= 0)
		r = move_moves(from, map, to);
	if (r >= 0)
		r = move_insns(from, map, event, to);
	return r < 0 ? r : 0;
}

/* ---- workloads ------------------------------------------------------------------------------- */

static uint64_t moved_off(void *ctx, uint64_t off)
{
	return ctx ? wire_moved_off(ctx, off) : 0;
}

void image_workloads_move(struct image *from, const struct wire_replaces *map, struct image *to)
{
	if (workload_table_nr(from->workloads))
		workload_table_move(from->workloads, to->workloads, moved_off,
				    (void *)(uintptr_t)map);
}

/* ---- profiles on disk that are to follow ----------------------------------------------------- */

int image_moves_add(struct image_moves *t, struct image *from, struct image *to,
		    const struct wire_replaces *map)
{
	struct wire_replaces *copy;
	int r = base_grow(&t->items, &t->cap, t->nr + 1, sizeof(*t->items));

	if (r < 0)
		return r;
	copy = malloc(map->head.len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, map, map->head.len);
	t->items[t->nr++] =
		(struct image_move){ .from = image_get(from), .to = image_get(to), .map = copy };
	return 0;
}

void image_moves_clear(struct image_moves *t)
{
	for (size_t i = 0; i < t->nr; i++) {
		image_put(t->items[i].from);
		image_put(t->items[i].to);
		free(t->items[i].map);
	}
	free(t->items);
	*t = (struct image_moves){ 0 };
}
