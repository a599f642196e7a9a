/* SPDX-License-Identifier: BSD-2-Clause */
/* The counts of one image by life, thread and minute: a hash table, cleared by each flush. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workload_internal.h"

/* SPARSE: a table of which so small a part was used gets smaller. */
enum { PLACES_MIN = 16, SPARSE = 8 };

static uint64_t hash_of(const struct workloads *w, const struct workload_count *c)
{
	const uint64_t key[3] = { c->off, (uint64_t)c->life << 32 | c->thread,
				  (uint64_t)c->minute << 32 | c->event };

	return base_hash64_seeded(w->seed, key, sizeof(key));
}

static bool is_same(const struct workload_count *a, const struct workload_count *b)
{
	return a->off == b->off && a->life == b->life && a->thread == b->thread &&
	       a->minute == b->minute && a->event == b->event;
}

static struct workload_count *find(const struct workload_table *t, const struct workload_count *c)
{
	size_t i = hash_of(t->of, c) & (t->cap - 1);

	while (t->places[i].n && !is_same(&t->places[i], c))
		i = (i + 1) & (t->cap - 1);
	return &t->places[i];
}

/* ---- room ------------------------------------------------------------------------------------ */

static int grow(struct workload_table *t, size_t cap)
{
	struct workload_table bigger = { .of = t->of, .cap = cap };

	bigger.places = calloc(cap, sizeof(*bigger.places));
	if (!bigger.places)
		return -ENOMEM;
	for (size_t i = 0; i < t->cap; i++)
		if (t->places[i].n)
			*find(&bigger, &t->places[i]) = t->places[i];
	free(t->places);
	t->places = bigger.places;
	t->cap = cap;
	return 0;
}

static struct workload_table *table_new(struct workloads *w)
{
	struct workload_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->of = w;
	t->next = w->tables;
	t->link = &w->tables;
	if (t->next)
		t->next->link = &t->next;
	w->tables = t;
	return t;
}

int workload_table_reserve(struct workloads *w, struct workload_table **t, size_t nr)
{
	size_t need, cap = PLACES_MIN;

	if (!*t)
		*t = table_new(w);
	if (!*t)
		return -ENOMEM;
	/* A third of the places stays free. */
	need = (*t)->nr + nr;
	if (need <= (*t)->cap / 3 * 2)
		return 0;
	while (need > cap / 3 * 2)
		cap *= 2;
	return grow(*t, cap);
}

int workload_table_reserve_from(const struct workload_table *from, struct workload_table **to,
				size_t nr)
{
	return from ? workload_table_reserve(from->of, to, nr) : 0;
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* The first minute that comes stands for all: else there would be more counts as long as flushes
 * fail. */
static uint32_t full_minute(struct workloads *w, uint32_t minute)
{
	if (!w->full_minute)
		w->full_minute = minute;
	return w->full_minute;
}

/* Where there are too many, less of them is told apart. */
static struct workload_count coarse(struct workloads *w, const struct workload_count *c)
{
	struct workload_count k = *c;

	if (w->nr_counts < WORKLOAD_NR_COUNTS)
		return k;
	k.thread = 0;
	if (w->nr_counts < 2 * WORKLOAD_NR_COUNTS) {
		k.life = workload_group_of(w, w->lives[k.life].names);
		return k;
	}
	k.life = WORKLOAD_NOBODY;
	k.minute = full_minute(w, k.minute);
	return k;
}

static void add(struct workload_table *t, const struct workload_count *c)
{
	struct workload_count k = coarse(t->of, c), *to = find(t, &k);

	if (!to->n) {
		*to = k;
		t->nr++;
		t->of->nr_counts++;
		return;
	}
	to->n += k.n;
}

static struct workload_count count_of(const struct workloads *w, const struct workload_where *where,
				      uint64_t off, uint32_t event)
{
	uint32_t life = where->life;

	return (struct workload_count){ .off = off,
					.life = life && life < w->nr_lives ? life : WORKLOAD_NOBODY,
					.thread = where->thread,
					.minute = where->minute,
					.event = event };
}

static bool is_timed(const struct workloads *w, uint32_t event)
{
	return w->first_timed && event >= w->first_timed;
}

void workload_table_add(struct workload_table *t, const struct workload_where *where, uint64_t off,
			uint32_t event, uint64_t n)
{
	struct workload_count c = count_of(t->of, where, off, event);

	c.n = n;
	if (is_timed(t->of, event)) {
		t->of->lives[c.life].ns += n;
		t->of->ns += n;
	} else {
		t->of->lives[c.life].samples += n;
		if (c.life != WORKLOAD_IDLE)
			t->of->samples += n;
	}
	if (n)
		add(t, &c);
}

void workload_table_expect(const struct workload_table *t, const struct workload_where *where,
			   uint64_t off, uint32_t event)
{
	struct workload_count c;

	if (!t || !t->cap)
		return;
	c = count_of(t->of, where, off, event);
	__builtin_prefetch(&t->places[hash_of(t->of, &c) & (t->cap - 1)], 1);
}

void workload_table_move(struct workload_table *from, struct workload_table *to,
			 uint64_t (*moved)(void *ctx, uint64_t off), void *ctx)
{
	for (size_t i = 0; from && i < from->cap; i++) {
		struct workload_count c = from->places[i];

		if (!c.n)
			continue;
		c.off = moved(ctx, c.off);
		add(to, &c);
	}
	workload_table_clear(from);
}

size_t workload_table_nr(const struct workload_table *t)
{
	return t ? t->nr : 0;
}

uint64_t workload_table_sum(const struct workload_table *t, uint32_t event)
{
	uint64_t sum = 0;

	for (size_t i = 0; t && i < t->cap; i++)
		sum += t->places[i].event == event ? t->places[i].n : 0;
	return sum;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void forget_counts(struct workload_table *t)
{
	t->of->nr_counts -= t->nr;
	t->nr = 0;
}

/* The next minute needs about as many places, whose pages are there. */
void workload_table_clear(struct workload_table *t)
{
	bool is_large = t && t->nr < t->cap / SPARSE;

	if (!t)
		return;
	forget_counts(t);
	if (!is_large) {
		if (t->cap)
			memset(t->places, 0, t->cap * sizeof(*t->places));
		return;
	}
	free(t->places);
	t->places = NULL;
	t->cap = 0;
}

void workload_table_free(struct workload_table *t)
{
	if (!t)
		return;
	forget_counts(t);
	free(t->places);
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	free(t);
}
