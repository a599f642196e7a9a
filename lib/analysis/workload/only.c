/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples of chosen workloads, and of chosen minutes, divided so that sums stay exact; profiles
 * restricted to them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

/* ---- dividing -------------------------------------------------------------------------------- */

typedef unsigned __int128 wide;

static uint64_t sum_of(const uint64_t *count, size_t nr)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++)
		sum += count[i];
	return sum;
}

/* The largest remainder that was not served yet; the first of equal ones. */
static size_t next(const uint64_t *rest, size_t nr)
{
	size_t best = 0;

	for (size_t i = 1; i < nr; i++)
		if (rest[i] > rest[best])
			best = i;
	return best;
}

void workload_divide(const uint64_t *count, size_t nr, uint64_t total, uint64_t *share,
		     uint64_t *rest)
{
	uint64_t sum = sum_of(count, nr), left = total;

	for (size_t i = 0; i < nr; i++) {
		share[i] = sum ? (uint64_t)((wide)count[i] * total / sum) : 0;
		rest[i] = sum ? (uint64_t)((wide)count[i] * total % sum) : 0;
		left -= share[i];
	}
	/* Remainders add up to the sum so many times: each is above 0 that is served. */
	for (; sum && left; left--) {
		size_t i = next(rest, nr);

		share[i]++;
		rest[i] = 0;
	}
}

/* ---- the chosen ones ------------------------------------------------------------------------- */

struct each {
	const struct profdb_workloads *w;
	const struct workload_filter *f;
	bool *chosen; /* indexed by workload */
	workload_each_fn *fn;
	void *ctx;
};

static int put(const struct each *x, const struct profdb_workload_count *c, size_t e, uint64_t n)
{
	return n ? x->fn(x->ctx, c, e, n) : 0;
}

static int put_all(const struct each *x)
{
	size_t nr_events = profdb_workloads_nr_events(x->w);
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr_counts(x->w) && r >= 0; i++) {
		struct profdb_workload_count c = profdb_workloads_count(x->w, i);

		if (x->chosen[c.workload])
			for (size_t e = 0; e < nr_events && r >= 0; e++)
				r = put(x, &c, e, c.count[e]);
	}
	return r;
}

/* ---- windows of time ------------------------------------------------------------------------- */

struct block_key {
	uint64_t block;
	uint32_t image, workload;
};

/* The samples of a workload in a block within the chosen minutes, by event. */
struct block {
	uint64_t count[PROFDB_NR_EVENTS];
};

static int add_minute(const struct each *x, const struct profdb_workload_minute *m,
		      struct base_map *blocks)
{
	struct block_key key = { m->block, m->image, m->workload };
	struct block *b = base_map_get(blocks, &key, sizeof(key));
	int r = 0;

	if (!b) {
		b = calloc(1, sizeof(*b));
		r = b ? base_map_set(blocks, &key, sizeof(key), b) : -ENOMEM;
		if (r < 0)
			free(b);
	}
	for (size_t e = 0; e < profdb_workloads_nr_events(x->w) && r >= 0; e++)
		b->count[e] += m->count[e];
	return r;
}

static int add_minutes(const struct each *x, struct base_map *blocks)
{
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr_minutes(x->w) && r >= 0; i++) {
		struct profdb_workload_minute m = profdb_workloads_minute(x->w, i);

		if (x->chosen[m.workload] && workload_filter_minute(x->f, m.minute))
			r = add_minute(x, &m, blocks);
	}
	return r;
}

struct item {
	uint32_t workload;
	size_t at; /* number of the count */
};

struct run {
	struct item *at; /* items of a block, then sorted by workload */
	size_t nr, cap;
	uint64_t *count, *share, *rest;
	size_t cap_count, cap_share, cap_rest;
};

static int by_workload(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->workload != y->workload)
		return x->workload < y->workload ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static int room(struct run *run)
{
	int r = base_grow(&run->count, &run->cap_count, run->nr, sizeof(*run->count));

	if (r >= 0)
		r = base_grow(&run->share, &run->cap_share, run->nr, sizeof(*run->share));
	return r < 0 ? r : base_grow(&run->rest, &run->cap_rest, run->nr, sizeof(*run->rest));
}

/* The first @nr at @at are of one workload. */
static int put_run(const struct each *x, struct run *run, const struct item *at, size_t nr,
		   const struct block *b)
{
	int r = 0;

	for (size_t e = 0; e < profdb_workloads_nr_events(x->w) && r >= 0; e++) {
		for (size_t i = 0; i < nr; i++)
			run->count[i] = profdb_workloads_count(x->w, at[i].at).count[e];
		workload_divide(run->count, nr, b->count[e], run->share, run->rest);
		for (size_t i = 0; i < nr && r >= 0; i++) {
			struct profdb_workload_count c = profdb_workloads_count(x->w, at[i].at);

			r = put(x, &c, e, run->share[i]);
		}
	}
	return r;
}

static const struct block *block_of(const struct each *x, const struct base_map *blocks, size_t at)
{
	struct profdb_workload_count c = profdb_workloads_count(x->w, at);
	struct block_key key = { c.off / PROFDB_MINUTE_BLOCK, c.image, c.workload };

	return base_map_get(blocks, &key, sizeof(key));
}

static int put_block(const struct each *x, struct run *run, const struct base_map *blocks)
{
	int r = room(run);

	if (r < 0)
		return r;
	qsort(run->at, run->nr, sizeof(*run->at), by_workload);
	for (size_t from = 0, to; from < run->nr && r >= 0; from = to) {
		const struct block *b = block_of(x, blocks, run->at[from].at);

		for (to = from + 1; to < run->nr && run->at[to].workload == run->at[from].workload;)
			to++;
		if (b)
			r = put_run(x, run, run->at + from, to - from, b);
	}
	return r;
}

/* The counts from @from of one block, which stand together: those of chosen workloads into @run.
 * Returns the number of the first count behind them, or negative. */
static ssize_t take_block(const struct each *x, struct run *run, size_t from)
{
	struct profdb_workload_count first = profdb_workloads_count(x->w, from);
	uint64_t block = first.off / PROFDB_MINUTE_BLOCK;
	size_t i = from;

	for (run->nr = 0; i < profdb_workloads_nr_counts(x->w); i++) {
		struct profdb_workload_count c = profdb_workloads_count(x->w, i);
		int r;

		if (c.image != first.image || c.off / PROFDB_MINUTE_BLOCK != block)
			break;
		if (!x->chosen[c.workload])
			continue;
		r = base_grow(&run->at, &run->cap, run->nr + 1, sizeof(*run->at));
		if (r < 0)
			return r;
		run->at[run->nr++] = (struct item){ c.workload, i };
	}
	return (ssize_t)i;
}

static int put_blocks(const struct each *x, struct run *run, const struct base_map *blocks)
{
	ssize_t i = 0;
	int r = 0;

	while (i >= 0 && (size_t)i < profdb_workloads_nr_counts(x->w) && r >= 0) {
		i = take_block(x, run, (size_t)i);
		if (i >= 0 && run->nr)
			r = put_block(x, run, blocks);
	}
	return i < 0 ? (int)i : r;
}

static int put_window(const struct each *x)
{
	struct base_map blocks = { 0 };
	struct run run = { 0 };
	size_t pos = 0;
	void *b;
	int r = add_minutes(x, &blocks);

	if (r >= 0)
		r = put_blocks(x, &run, &blocks);
	while (base_map_next(&blocks, &pos, &b))
		free(b);
	base_map_release(&blocks);
	free(run.at);
	free(run.count);
	free(run.share);
	free(run.rest);
	return r;
}

int workload_each(const struct analysis *a, const struct profdb_workloads *w,
		  const struct workload_filter *f, workload_each_fn *fn, void *ctx)
{
	struct each x = { w, f, calloc(profdb_workloads_nr(w) + 1, sizeof(bool)), fn, ctx };
	int r = x.chosen ? workload_mark(a, w, f, WORKLOAD_NR_KEYS, x.chosen) : -ENOMEM;

	if (r >= 0)
		r = workload_filter_has_time(f) ? put_window(&x) : put_all(&x);
	free(x.chosen);
	return r;
}

/* ---- profiles restricted --------------------------------------------------------------------- */

struct only {
	struct analysis *a;
	struct analysis_image **images; /* indexed by image of the workloads */
	size_t event[PROFDB_NR_EVENTS]; /* indexed by event of the workloads */
};

static int add(void *ctx, const struct profdb_workload_count *c, size_t e, uint64_t n)
{
	const struct only *x = ctx;
	struct profdb_profile *p = x->images[c->image]->profile;
	const struct analysis_event *ev;
	int r;

	if (x->event[e] == SIZE_MAX)
		return 0;
	ev = &x->a->events[x->event[e]];
	r = profdb_profile_event_add(p, ev->name, ev->period);
	return r < 0 ? r : profdb_profile_add(p, c->off, (size_t)r, n);
}

static int restrict_all(struct only *x, const struct profdb_workloads *w,
			const struct workload_filter *f)
{
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr_images(w) && r >= 0; i++)
		r = workload_image(x->a, w, i, &x->images[i]);
	if (r < 0)
		return r;
	workload_events(x->a, w, x->event);
	for (size_t i = 0; i < x->a->nr_images; i++) {
		struct profdb_profile *p = x->a->images[i]->profile;

		x->a->moves_dropped = x->a->moves_dropped || profdb_profile_nr_edges(p);
		profdb_profile_clear(p);
	}
	r = workload_each(x->a, w, f, add, x);
	return r < 0 ? r : analysis_sum(x->a);
}

/* Call paths are restricted to the same workloads; times are not kept of them. */
static int choose_owners(struct analysis *a, const struct profdb_workloads *w,
			 const struct workload_filter *f)
{
	bool *chosen = calloc(profdb_workloads_nr(w) + 1, sizeof(*chosen));
	int r = chosen ? workload_mark(a, w, f, WORKLOAD_NR_KEYS, chosen) : -ENOMEM;

	a->by_owner = true;
	for (size_t i = 0; r >= 0 && i < profdb_workloads_nr(w); i++)
		if (chosen[i])
			r = analysis_owner_choose(a, profdb_workloads_workload(w, i));
	free(chosen);
	return r;
}

int workload_only(struct analysis *a, const struct profdb_workloads *w,
		  const struct workload_filter *f, struct base_err *err)
{
	struct only x = { .a = a };
	int r = -ENOMEM;

	x.images = calloc(profdb_workloads_nr_images(w) + 1, sizeof(*x.images));
	if (x.images)
		r = restrict_all(&x, w, f);
	if (r >= 0 && workload_filter_has_keys(f))
		r = choose_owners(a, w, f);
	free(x.images);
	return r < 0 ? base_fail_errno(err, r, "cannot choose samples by their workload") : 0;
}
