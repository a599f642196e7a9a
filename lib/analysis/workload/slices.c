/* SPDX-License-Identifier: BSD-2-Clause */
/* Divides samples among rows, and slices of time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "slices.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

/* ---- which slices ---------------------------------------------------------------------------- */

bool slices_extent(const struct profdb_workloads *w, const struct workload_filter *f,
		   int64_t *first, int64_t *end)
{
	bool any = false;

	for (size_t i = 0; i < profdb_workloads_nr_minutes(w); i++) {
		int64_t minute = profdb_workloads_minute(w, i).minute;

		if (!workload_filter_minute(f, minute))
			continue;
		if (!any)
			*first = minute * MINUTE;
		*end = (minute + 1) * MINUTE;
		any = true;
	}
	return any;
}

int64_t slices_begin(int64_t since, int64_t span)
{
	time_t t = (time_t)since;
	struct tm tm;
	int64_t offset = localtime_r(&t, &tm) ? tm.tm_gmtoff : 0, rest;

	/* Some zones are off by seconds, minutes are not. */
	offset -= offset % MINUTE;
	rest = (since + offset) % span;
	return since - (rest < 0 ? rest + span : rest);
}

int64_t slices_span(int64_t since, int64_t until, size_t max)
{
	static const int64_t spans[] = { MINUTE,	   2 * MINUTE,	    5 * MINUTE, 10 * MINUTE,
					 15 * MINUTE,	   30 * MINUTE,	    HOUR,	2 * HOUR,
					 3 * HOUR,	   6 * HOUR,	    12 * HOUR,	DAY,
					 (int64_t)2 * DAY, (int64_t)7 * DAY };
	int64_t span = 0;

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		span = spans[i];
		if ((until - slices_begin(since, span) + span - 1) / span <= (int64_t)max)
			return span;
	}
	while ((until - slices_begin(since, span) + span - 1) / span > (int64_t)max)
		span *= 2;
	return span;
}

/* ---- blocks of code -------------------------------------------------------------------------- */

struct key {
	uint64_t block;
	uint32_t image, workload;
};

/* A row's part of the counts of a block. */
struct part {
	size_t row;
	uint64_t weight;
	uint64_t given; /* so far */
};

struct block {
	struct part *parts;
	size_t nr, cap;
	uint64_t weight; /* sum of the parts' */
	uint64_t given;
};

struct make {
	const struct profdb_workloads *w;
	const struct workload_filter *f;
	size_t event; /* of @w */
	int (*row_of)(void *ctx, uint32_t workload, uint32_t image, uint64_t off, size_t *row);
	void *ctx;
	bool *chosen; /* indexed by workload */
	struct base_map blocks;
	struct slices *s;
};

static int block_of(struct make *m, const struct key *key, struct block **out)
{
	struct block *b = base_map_get(&m->blocks, key, sizeof(*key));
	int r = 0;

	if (!b) {
		b = calloc(1, sizeof(*b));
		r = b ? base_map_set(&m->blocks, key, sizeof(*key), b) : -ENOMEM;
		if (r < 0)
			free(b);
	}
	*out = b;
	return r;
}

static int add_part(struct make *m, struct block *b, const struct key *key, uint64_t off,
		    uint64_t weight)
{
	size_t row, i = b->nr;
	int r = m->row_of(m->ctx, key->workload, key->image, off, &row);

	if (r < 0)
		return r;
	/* Offsets ascend, and so do procedures: mostly it is the last one. */
	while (i > 0 && b->parts[i - 1].row != row)
		i--;
	if (!i) {
		r = base_grow(&b->parts, &b->cap, b->nr + 1, sizeof(*b->parts));
		if (r < 0)
			return r;
		b->parts[b->nr++] = (struct part){ .row = row };
		i = b->nr;
	}
	b->parts[i - 1].weight += weight;
	b->weight += weight;
	return 0;
}

static int add_counts(struct make *m)
{
	struct block *b;
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr_counts(m->w) && r >= 0; i++) {
		struct profdb_workload_count c = profdb_workloads_count(m->w, i);
		struct key key = { c.off / PROFDB_MINUTE_BLOCK, c.image, c.workload };

		if (!m->chosen[c.workload] || !c.count[m->event])
			continue;
		r = block_of(m, &key, &b);
		if (r >= 0)
			r = add_part(m, b, &key, c.off, c.count[m->event]);
	}
	return r;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static int add_rows(struct slices *s, size_t row)
{
	int r = base_grow(&s->rows, &s->cap_rows, row + 1, sizeof(*s->rows));

	for (; r >= 0 && s->nr_rows <= row; s->nr_rows++) {
		s->rows[s->nr_rows].sum = 0;
		s->rows[s->nr_rows].count = calloc(s->nr, sizeof(uint64_t));
		if (!s->rows[s->nr_rows].count)
			return -ENOMEM;
	}
	return r;
}

static int put(struct slices *s, size_t row, size_t slice, uint64_t n)
{
	int r = 0;

	if (!n || row == SLICES_NO_ROW)
		return 0;
	if (row >= s->nr_rows)
		r = add_rows(s, row);
	if (r < 0)
		return r;
	s->rows[row].count[slice] += n;
	s->rows[row].sum += n;
	s->total[slice] += n;
	s->sum += n;
	return 0;
}

/* How much the part lacks of its share of all that the block has given, in units of 1 / weight. */
static __int128 lack(const struct block *b, const struct part *p)
{
	return (__int128)b->given * p->weight - (__int128)p->given * b->weight;
}

static struct part *neediest(const struct block *b)
{
	struct part *best = b->parts;

	for (size_t i = 1; i < b->nr; i++)
		if (lack(b, &b->parts[i]) > lack(b, best))
			best = &b->parts[i];
	return best;
}

/* Whole shares first; the rest, fewer than there are parts, go one by one to who lacks most. */
static int give(struct slices *s, struct block *b, size_t slice, uint64_t n)
{
	uint64_t rest = n;
	int r = 0;

	b->given += n;
	for (size_t i = 0; i < b->nr && r >= 0; i++) {
		struct part *p = &b->parts[i];
		uint64_t whole = (uint64_t)((unsigned __int128)n * p->weight / b->weight);

		p->given += whole;
		rest -= whole;
		r = put(s, p->row, slice, whole);
	}
	for (; rest && r >= 0; rest--) {
		struct part *p = neediest(b);

		p->given++;
		r = put(s, p->row, slice, 1);
	}
	return r;
}

static int give_minute(struct make *m, const struct profdb_workload_minute *minute, size_t slice)
{
	struct key key = { minute->block, minute->image, minute->workload };
	struct block *b;
	int r = block_of(m, &key, &b);

	/* Minutes without counts are in no database that dcpid wrote. */
	if (r >= 0 && !b->nr)
		r = add_part(m, b, &key, minute->block * PROFDB_MINUTE_BLOCK, 1);
	return r < 0 ? r : give(m->s, b, slice, minute->count[m->event]);
}

static int add_minutes(struct make *m)
{
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr_minutes(m->w) && r >= 0; i++) {
		struct profdb_workload_minute minute = profdb_workloads_minute(m->w, i);
		int64_t at;
		size_t slice;

		if (!workload_filter_minute(m->f, minute.minute))
			continue;
		at = minute.minute * MINUTE - m->s->begin;
		slice = (size_t)(at / m->s->span);
		if (at < 0 || slice >= m->s->nr)
			continue;
		m->s->recorded[slice] = true;
		if (m->event != SIZE_MAX && m->chosen[minute.workload] && minute.count[m->event])
			r = give_minute(m, &minute, slice);
	}
	return r;
}

static void release_blocks(struct base_map *blocks)
{
	size_t pos = 0;
	void *value;

	while (base_map_next(blocks, &pos, &value)) {
		struct block *b = value;

		free(b->parts);
		free(b);
	}
	base_map_release(blocks);
}

/* The number of the event in @w, or SIZE_MAX. */
static size_t find_event(const struct analysis *a, const struct profdb_workloads *w, size_t event)
{
	size_t of[PROFDB_NR_EVENTS], i = 0;

	workload_events(a, w, of);
	while (i < profdb_workloads_nr_events(w) && of[i] != event)
		i++;
	return i < profdb_workloads_nr_events(w) ? i : SIZE_MAX;
}

int slices_make(struct analysis *a, const struct profdb_workloads *w,
		const struct workload_filter *f, size_t event,
		int (*row_of)(void *ctx, uint32_t workload, uint32_t image, uint64_t off,
			      size_t *row),
		void *ctx, struct slices *s)
{
	struct make m = { .w = w, .f = f, .row_of = row_of, .ctx = ctx, .s = s };
	int r = -ENOMEM;

	m.event = find_event(a, w, event);
	s->total = calloc(s->nr, sizeof(*s->total));
	s->recorded = calloc(s->nr, sizeof(*s->recorded));
	m.chosen = calloc(profdb_workloads_nr(w) + 1, sizeof(*m.chosen));
	if (s->total && s->recorded && m.chosen)
		r = workload_mark(a, w, f, WORKLOAD_NR_KEYS, m.chosen);
	if (r >= 0 && m.event != SIZE_MAX)
		r = add_counts(&m);
	if (r >= 0)
		r = add_minutes(&m);
	release_blocks(&m.blocks);
	free(m.chosen);
	return r;
}

void slices_release(struct slices *s)
{
	for (size_t i = 0; i < s->nr_rows; i++)
		free(s->rows[i].count);
	free(s->rows);
	free(s->total);
	free(s->recorded);
}
