/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts in dynamic code wait, by process, for the files that tell of it. */
#include <errno.h>
#include <stdlib.h>

#include "counts.h"

/* So many more counts may wait one by one. */
enum { WAITING_MAX = 32768 };

static struct waiting *waiting_of(struct waitings *t, struct process *p)
{
	struct waiting *w;

	if (p->waiting)
		return p->waiting;
	if (base_grow(&t->items, &t->cap, t->nr + 1, sizeof(*t->items)) < 0)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	*w = (struct waiting){ .p = p, .first_ns = UINT64_MAX, .news = dyn_news(p) };
	t->items[t->nr++] = w;
	p->waiting = w;
	return w;
}

static void free_one(struct waiting *w)
{
	w->p->waiting = NULL;
	free(w->counts.items);
	free(w);
}

int waiting_add(struct waitings *t, const struct sample *c)
{
	struct waiting *w = waiting_of(t, c->p);
	struct pendings *d = w ? &w->counts : NULL;

	if (!w || base_grow(&d->items, &d->cap, d->nr + 1, sizeof(*d->items)) < 0)
		return -ENOMEM;
	d->items[d->nr++] = *c;
	w->first_ns = c->first_ns < w->first_ns ? c->first_ns : w->first_ns;
	return 0;
}

/* ---- joining --------------------------------------------------------------------------------- */

/*
 * Mappings that the process wrote over a file's have a time of their own, and a process with a
 * registry waits for a second at most. What the hardware told is of a single sample.
 */
static bool may_join(const struct sample *c)
{
	return c->dynamic && !c->insn && !dyn_has_registry(c->p);
}

/* A program that chooses the addresses must not choose which of them share a place. */
static uint64_t hash_of(const struct sample *c, uint64_t seed)
{
	const uint64_t key[2] = { c->addr, (uint64_t)c->thread << 32 | c->event };

	return base_hash64_seeded(seed, key, sizeof(key));
}

static void join(struct sample *to, const struct sample *c)
{
	to->first_ns = c->first_ns < to->first_ns ? c->first_ns : to->first_ns;
	to->time_ns = c->time_ns > to->time_ns ? c->time_ns : to->time_ns;
	to->count += c->count;
}

static bool is_same_place(const struct sample *a, const struct sample *b)
{
	return a->addr == b->addr && a->event == b->event && a->thread == b->thread;
}

/* Where @c's place stands in @seen, a table of indices + 1 with room, or would. */
static uint32_t *place_of(uint32_t *seen, uint64_t mask, const struct sample *items,
			  const struct sample *c, uint64_t seed)
{
	uint64_t at = hash_of(c, seed) & mask;

	while (seen[at] && !is_same_place(&items[seen[at] - 1], c))
		at = (at + 1) & mask;
	return &seen[at];
}

/* Without memory for it they go on one by one. */
static void join_all(struct pendings *d)
{
	uint64_t space = 64, seed = base_hash_u64((uintptr_t)d ^ base_now_ns());
	uint32_t *seen;
	size_t kept = 0;

	while (space < 2 * d->nr)
		space *= 2;
	seen = d->nr < UINT32_MAX ? calloc(space, sizeof(*seen)) : NULL;
	for (size_t i = 0; seen && i < d->nr; i++) {
		const struct sample *c = &d->items[i];
		uint32_t *at = may_join(c) ? place_of(seen, space - 1, d->items, c, seed) : NULL;

		if (at && *at) {
			join(&d->items[*at - 1], c);
			continue;
		}
		d->items[kept++] = *c;
		if (at)
			*at = (uint32_t)kept;
	}
	d->nr = seen ? kept : d->nr;
	free(seen);
}

/* ---- looking again --------------------------------------------------------------------------- */

static void look(struct waiting *w, waiting_fn *fn, void *ctx)
{
	struct pendings *d = &w->counts;
	size_t kept = 0;

	w->first_ns = UINT64_MAX;
	for (size_t i = 0; i < d->nr; i++) {
		struct sample c = d->items[i];

		if (fn(ctx, &c))
			continue;
		d->items[kept++] = c;
		w->first_ns = c.first_ns < w->first_ns ? c.first_ns : w->first_ns;
	}
	d->nr = kept;
	w->news = dyn_news(w->p);
}

void waiting_look(struct waitings *t, bool all, waiting_fn *fn, void *ctx)
{
	size_t kept = 0, nr = 0;

	for (size_t i = 0; i < t->nr; i++) {
		struct waiting *w = t->items[i];

		if (all || attribute_is_due(w->p, w->news))
			look(w, fn, ctx);
		else
			dyn_wait(w->p, w->first_ns);
		nr += w->counts.nr;
		if (w->counts.nr)
			t->items[kept++] = w;
		else
			free_one(w);
	}
	t->nr = kept;
	t->joined_nr = nr < t->joined_nr ? nr : t->joined_nr;
	if (nr <= t->joined_nr + WAITING_MAX)
		return;
	t->joined_nr = 0;
	for (size_t i = 0; i < t->nr; i++) {
		join_all(&t->items[i]->counts);
		t->joined_nr += t->items[i]->counts.nr;
	}
}

void waiting_release(struct waitings *t)
{
	for (size_t i = 0; i < t->nr; i++)
		free_one(t->items[i]);
	free(t->items);
	*t = (struct waitings){ 0 };
}
