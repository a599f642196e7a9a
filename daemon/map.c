/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon_core.h"

/* Index of the first mapping that ends above @addr. */
static size_t first_above(const struct process *p, uint64_t addr)
{
	size_t low = 0, high = p->nr_maps;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->maps[mid].end > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

const struct map *map_find(const struct process *p, uint64_t addr)
{
	size_t i = first_above(p, addr);

	return i < p->nr_maps && p->maps[i].start <= addr ? &p->maps[i] : NULL;
}

/* The part of @m within [start, end), with a reference of its own. */
static struct map part(const struct map *m, uint64_t start, uint64_t end)
{
	struct map piece = *m;

	piece.file_off += start - m->start;
	piece.start = start;
	piece.end = end;
	image_get(piece.image);
	return piece;
}

int map_insert(struct process *p, const struct map *m)
{
	size_t from = first_above(p, m->start), to = from, nr = 0;
	struct map pieces[3];
	int r;

	while (to < p->nr_maps && p->maps[to].start < m->end)
		to++;
	r = base_grow(&p->maps, &p->cap_maps, p->nr_maps + 2, sizeof(*p->maps));
	if (r < 0)
		return r;
	if (from < to && p->maps[from].start < m->start)
		pieces[nr++] = part(&p->maps[from], p->maps[from].start, m->start);
	pieces[nr++] = part(m, m->start, m->end);
	if (from < to && p->maps[to - 1].end > m->end)
		pieces[nr++] = part(&p->maps[to - 1], m->end, p->maps[to - 1].end);
	for (size_t i = from; i < to; i++)
		image_put(p->maps[i].image);
	memmove(p->maps + from + nr, p->maps + to, (p->nr_maps - to) * sizeof(*p->maps));
	memcpy(p->maps + from, pieces, nr * sizeof(*pieces));
	p->nr_maps = p->nr_maps - (to - from) + nr;
	return 0;
}

int map_fill(struct process *p, const struct map *m)
{
	uint64_t addr = m->start;

	while (addr < m->end) {
		size_t i = first_above(p, addr);
		uint64_t next = i < p->nr_maps ? p->maps[i].start : m->end;
		uint64_t taken = i < p->nr_maps ? p->maps[i].end : m->end;
		struct map piece = *m;
		int r;

		piece.file_off += addr - m->start;
		piece.start = addr;
		piece.end = next < m->end ? next : m->end;
		if (next > addr) {
			r = map_insert(p, &piece);
			if (r < 0)
				return r;
		}
		addr = taken;
	}
	return 0;
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
}

void map_drop_unlisted(struct process *p)
{
	size_t nr = 0;

	for (size_t i = 0; i < p->nr_maps; i++) {
		if (p->maps[i].listed)
			p->maps[nr++] = p->maps[i];
		else
			image_put(p->maps[i].image);
	}
	p->nr_maps = nr;
}
