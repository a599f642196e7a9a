/* SPDX-License-Identifier: BSD-2-Clause */
/* The map from offsets in merged pseudo-images to those in the one that replaces them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "merge_internal.h"

static int by_from(const void *a, const void *b)
{
	const struct wire_moved *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* Neighbours that went together are one; what stayed needs no entry. */
static int append(struct merge_list *list, uint64_t from, uint64_t to, uint64_t len)
{
	struct wire_moved *last = list->nr ? &list->v[list->nr - 1] : NULL;

	if (!len || from == to)
		return 0;
	if (last && last->from + last->len == from && last->to + last->len == to) {
		last->len += len;
		return 0;
	}
	last = PSEUDOIMG_PUSH(list);
	if (!last)
		return -ENOMEM;
	*last = (struct wire_moved){ from, to, len };
	return 0;
}

static int append_gap(struct merge *f, struct merge_list *list, uint64_t from, uint64_t to)
{
	if (from >= to)
		return 0;
	f->needs_gap = true;
	return append(list, from, PSEUDOIMG_GAP_OFF + from, to - from);
}

/* Runs and places ascend. What is in no routine must not fall into one of another process. */
int merge_map_make(struct merge *f, const struct pseudoimg_model *m)
{
	size_t next = 0;
	int r = 0;

	if (f->moved.nr)
		qsort(f->moved.v, f->moved.nr, sizeof(*f->moved.v), by_from);
	for (size_t k = 0; r >= 0 && k < m->runs_by_off.nr; k++) {
		const struct pseudoimg_span *run = &m->runs.v[m->runs_by_off.v[k]];
		uint64_t at = run->img_off, end = at + run->len;

		/* Its offsets stay: the image has been folded before. */
		if (run->start == PSEUDOIMG_GAP) {
			f->needs_gap = true;
			continue;
		}
		if (end > PSEUDOIMG_GAP_LEN)
			return -DCPI_ELIMIT;
		for (; r >= 0 && next < f->moved.nr && f->moved.v[next].from < end; next++) {
			const struct wire_moved *v = &f->moved.v[next];

			r = append_gap(f, &f->map, at, v->from);
			if (r >= 0)
				r = append(&f->map, v->from, v->to, v->len);
			at = v->from + v->len;
		}
		if (r >= 0)
			r = append_gap(f, &f->map, at, end);
	}
	return r;
}

/* The entry that ends behind @off first, or nr. */
static size_t entry_at(const struct merge_list *map, uint64_t off)
{
	return BASE_BOUND(i, map->nr, map->v[i].from + map->v[i].len <= off);
}

/* Follow [@from, @from + @len), known as @as, through the map piece by piece. */
static int through(const struct merge_list *map, uint64_t as, uint64_t from, uint64_t len,
		   struct merge_list *out)
{
	uint64_t done = 0;
	int r = 0;

	for (size_t i = entry_at(map, from); r >= 0 && done < len; i++) {
		uint64_t at = from + done, n = len - done;
		const struct wire_moved *e = i < map->nr ? &map->v[i] : NULL;

		if (e && e->from > at && e->from - at < n)
			n = e->from - at;
		if (!e || e->from > at) {
			r = append(out, as + done, at, n);
			done += n;
			i--;
			continue;
		}
		if (e->from + e->len - at < n)
			n = e->from + e->len - at;
		r = append(out, as + done, e->to + (at - e->from), n);
		done += n;
	}
	return r;
}

/* First the old image's own map, then ours; between its entries ours alone. */
static int compose(const struct merge *f, const struct wire_replaces *rec, struct merge_list *out)
{
	const struct merge_list *map = &f->map;
	const struct wire_moved *own = (const void *)(rec + 1);
	uint64_t at = 0;
	size_t i = 0;
	int r = 0;

	for (uint32_t k = 0; r >= 0 && k <= rec->nr_moved; k++) {
		uint64_t end = k < rec->nr_moved ? own[k].from : UINT64_MAX;

		for (i = entry_at(map, at); r >= 0 && i < map->nr && map->v[i].from < end; i++) {
			uint64_t from = map->v[i].from > at ? map->v[i].from : at;
			uint64_t to = map->v[i].from + map->v[i].len;

			to = to < end ? to : end;
			if (from < to)
				r = append(out, from, map->v[i].to + (from - map->v[i].from),
					   to - from);
		}
		if (r < 0 || k == rec->nr_moved)
			break;
		r = through(map, own[k].from, own[k].to, own[k].len, out);
		at = own[k].from + own[k].len;
	}
	return r;
}

static int put_replaces(struct base_buf *b, const uint8_t id[20], const struct merge_list *map)
{
	struct wire_replaces rec = { .head = { .type = WIRE_REPLACES } };
	uint64_t len = sizeof(rec) + map->nr * sizeof(*map->v);
	int r;

	if (len > WIRE_RECORD_MAX)
		return -DCPI_ELIMIT;
	rec.head.len = (uint32_t)len;
	rec.nr_moved = (uint32_t)map->nr;
	memcpy(rec.id, id, sizeof(rec.id));
	r = base_buf_append(b, &rec, sizeof(rec));
	return r < 0 ? r : base_buf_append(b, map->v, map->nr * sizeof(*map->v));
}

int merge_map_replaces(struct merge *f, const struct wire_replaces *rec)
{
	struct merge_list list = { 0 };
	int r = compose(f, rec, &list);

	if (r >= 0)
		r = put_replaces(&f->out.b, rec->id, &list);
	if (r >= 0)
		r = pseudoimg_sink_drain(&f->out);
	free(list.v);
	return r;
}

/* Its address in the file is another now. Without an entry in the map it stays where it is. */
int merge_map_place(struct merge *f, const struct pseudoimg_model *m, const struct wire_place *rec)
{
	const struct pseudoimg_span *run = pseudoimg_runs_find(m, rec->elf);
	struct wire_place place = *rec;
	const struct wire_moved *e;
	uint64_t off, end;
	size_t i;
	int r;

	if (!run || rec->len > pseudoimg_span_end(run) - rec->elf)
		return 0;
	off = run->img_off + (rec->elf - run->start);
	i = entry_at(&f->map, off);
	e = i < f->map.nr ? &f->map.v[i] : NULL;
	end = !e ? UINT64_MAX : e->from <= off ? e->from + e->len : e->from;
	/* It went to several places. */
	if (rec->len > end - off)
		return 0;
	if (e && e->from <= off)
		off = e->to + (off - e->from);
	/* Where it was found in what was there before, that has its own note. */
	if (off < f->img_off || off >= PSEUDOIMG_GAP_LEN)
		return 0;
	place.head.len = sizeof(place);
	place.elf = f->vaddr + (off - f->img_off);
	r = base_buf_append(&f->out.b, &place, sizeof(place));
	return r < 0 ? r : pseudoimg_sink_drain(&f->out);
}

int merge_map_answer(struct merge *f)
{
	static const uint8_t none[20];

	return put_replaces(f->maps, none, &f->map);
}
