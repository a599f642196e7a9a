/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of a process are a sorted table, which events and /proc change. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "track.h"

static void has_changed(struct process *p)
{
	static uint64_t version;

	p->maps_version = ++version;
}

/* Index of the first mapping that ends above @addr. */
static size_t first_above(const struct process *p, uint64_t addr)
{
	return BASE_UPPER_BOUND(p->maps, p->nr_maps, end, addr);
}

const struct map *map_find(const struct process *p, uint64_t addr)
{
	size_t i = first_above(p, addr);

	return i < p->nr_maps && p->maps[i].start <= addr ? &p->maps[i] : NULL;
}

void sample_locate(struct sample *s)
{
	const struct map *m = s->p ? map_find(s->p, s->addr) : NULL;

	s->map = m;
	s->map_start = m ? m->start : 0;
	s->dynamic = m && m->kind == MAP_DYNAMIC;
}

/* Where both are, they show the same. What stands in dynamic memory is not the mapping's to say. */
static bool same(const struct map *a, const struct map *b)
{
	return a->kind == b->kind &&
	       (a->kind == MAP_DYNAMIC ||
		(a->image == b->image && a->file_off - a->start == b->file_off - b->start));
}

/* Room for a mapping at @at, which the caller has seen to; with a reference of its own. */
static void put_at(struct process *p, size_t at, const struct map *m, uint64_t start, uint64_t end)
{
	struct map *to = &p->maps[at];

	memmove(to + 1, to, (p->nr_maps++ - at) * sizeof(*to));
	*to = *m;
	to->file_off += start - m->start;
	to->start = start;
	to->end = end;
	image_get(to->image);
}

static void cut(struct process *p, uint64_t addr)
{
	size_t i = first_above(p, addr);
	struct map whole;

	if (i == p->nr_maps || p->maps[i].start >= addr)
		return;
	whole = p->maps[i];
	p->maps[i].end = addr;
	put_at(p, i + 1, &whole, addr, whole.end);
}

/* @m now stands where @old, which is not larger, stood until @m->since_ns. */
static void cover(struct map *old, const struct map *m)
{
	struct map new = *m;

	if (same(old, m)) {
		old->listed = m->listed;
		return;
	}
	new.start = old->start;
	new.end = old->end;
	new.file_off += old->start - m->start;
	image_get(new.image);
	image_put(old->image);
	*old = new;
}

/*
 * @m stood there at @m->since_ns, and at @known_ns /proc listed @old. What came between, later
 * events may tell: until then it is something else.
 */
static void recall(struct map *old, const struct map *m, uint64_t known_ns)
{
	if (!old->listed)
		cover(old, m);
	else if (!same(old, m))
		old->since_ns = known_ns;
	else if (old->since_ns == known_ns || (!old->since_ns && old->kind == MAP_IMAGE))
		old->since_ns = m->since_ns;
}

static void join(struct process *p, size_t from, size_t to)
{
	size_t last = from;

	for (size_t i = from + 1; i < to; i++) {
		struct map *a = &p->maps[last], *b = &p->maps[i];

		if (a->end == b->start && same(a, b) && a->since_ns == b->since_ns &&
		    a->listed == b->listed) {
			a->end = b->end;
			image_put(b->image);
		} else {
			p->maps[++last] = *b;
		}
	}
	if (from == to)
		return;
	memmove(p->maps + last + 1, p->maps + to, (p->nr_maps - to) * sizeof(*p->maps));
	p->nr_maps -= to - last - 1;
}

static int put(struct process *p, const struct map *m, bool late)
{
	size_t from = first_above(p, m->start), to = from, i;
	uint64_t addr = m->start;
	struct map fresh = *m;
	int r;

	while (to < p->nr_maps && p->maps[to].start < m->end)
		to++;
	/* Two cuts, and a gap before, between and behind. */
	r = base_grow(&p->maps, &p->cap_maps, p->nr_maps + (to - from) + 3, sizeof(*p->maps));
	if (r < 0)
		return r;
	has_changed(p);
	cut(p, m->start);
	cut(p, m->end);
	fresh.since_ns = 0;
	for (i = first_above(p, m->start); addr < m->end; addr = p->maps[i++].end) {
		uint64_t stop =
			i < p->nr_maps && p->maps[i].start < m->end ? p->maps[i].start : m->end;

		if (addr < stop)
			put_at(p, i, &fresh, addr, stop);
		else if (late)
			recall(&p->maps[i], m, p->known_ns);
		else
			cover(&p->maps[i], m);
	}
	join(p, from ? from - 1 : 0, i < p->nr_maps ? i + 1 : i);
	return 0;
}

int map_insert(struct process *p, const struct map *m)
{
	return put(p, m, false);
}

int map_recall(struct process *p, const struct map *m)
{
	return put(p, m, true);
}

int map_copy(struct process *to, const struct process *from)
{
	int r = base_grow(&to->maps, &to->cap_maps, from->nr_maps, sizeof(*to->maps));

	if (r < 0 || !from->nr_maps)
		return r;
	map_clear(to);
	memcpy(to->maps, from->maps, from->nr_maps * sizeof(*to->maps));
	to->nr_maps = from->nr_maps;
	for (size_t i = 0; i < to->nr_maps; i++) {
		to->maps[i].listed = false;
		image_get(to->maps[i].image);
	}
	return 0;
}

void map_clear(struct process *p)
{
	for (size_t i = 0; i < p->nr_maps; i++)
		image_put(p->maps[i].image);
	p->nr_maps = 0;
	has_changed(p);
}

void map_restart(struct process *p, uint64_t time_ns)
{
	size_t nr = 0;

	for (size_t i = 0; i < p->nr_maps; i++) {
		if (!p->maps[i].listed) {
			image_put(p->maps[i].image);
			continue;
		}
		p->maps[nr] = p->maps[i];
		p->maps[nr++].since_ns = time_ns;
	}
	p->nr_maps = nr;
	has_changed(p);
	join(p, 0, nr);
}
