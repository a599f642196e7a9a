/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of processes. The driver is told where their code comes and goes; registries that are
 * handed over get the life of the process that made them; lives that are over are let go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "follow_internal.h"

/* ---- where code changes, for the driver ------------------------------------------------------ */

/*
 * A registry has generation words, by which counts come apart. Without them each sample has to come
 * with its time, once an address had two routines. No event tells of memory that is unmapped: what
 * was told once stays; of more than the driver takes, those nearest to each other are taken
 * together.
 */

struct ranges {
	struct driver_client client; /* the client as the driver knows it; its ranges are items */
	struct driver_range items[DRIVER_NR_RANGES];
	uint64_t refused; /* in which round (f->ranges_round + 1) the driver did not take it; 0 */
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

/* Join what touches or overlaps. */
static void join(struct pile *p)
{
	size_t last = 0;

	for (size_t i = 1; i < p->nr; i++) {
		struct driver_range *a = &p->items[last], *b = &p->items[i];

		if (b->start > a->end)
			p->items[++last] = *b;
		else if (b->end > a->end)
			a->end = b->end;
	}
	p->nr = p->nr ? last + 1 : 0;
}

static uint64_t gap_before(const struct pile *p, size_t i)
{
	return p->items[i].start - p->items[i - 1].end;
}

/* The ranges behind the widest gaps, the widest gap first. */
struct gaps {
	size_t behind[DRIVER_NR_RANGES - 1], nr;
};

static void find_gaps(const struct pile *p, struct gaps *g)
{
	const size_t max = sizeof(g->behind) / sizeof(*g->behind);

	for (size_t i = 1; i < p->nr; i++) {
		size_t at = g->nr;

		while (at && gap_before(p, g->behind[at - 1]) < gap_before(p, i))
			at--;
		if (at == max)
			continue;
		g->nr += g->nr < max;
		memmove(g->behind + at + 1, g->behind + at, (g->nr - 1 - at) * sizeof(*g->behind));
		g->behind[at] = i;
	}
}

static bool is_behind(const struct gaps *g, size_t i)
{
	for (size_t k = 0; k < g->nr; k++)
		if (g->behind[k] == i)
			return true;
	return false;
}

/* There may be as many as an application likes. */
static void reduce(struct pile *p)
{
	struct gaps gaps = { 0 };
	size_t last = 0;

	if (p->nr)
		qsort(p->items, p->nr, sizeof(*p->items), by_start);
	join(p);
	if (p->nr <= DRIVER_NR_RANGES)
		return;
	find_gaps(p, &gaps);
	for (size_t i = 1; i < p->nr; i++) {
		if (is_behind(&gaps, i))
			p->items[++last] = p->items[i];
		else
			p->items[last].end = p->items[i].end;
	}
	p->nr = last + 1;
}

static void collect(struct follow *f, const struct process *p, struct pile *pile)
{
	for (size_t i = 0; p->announced && i < p->announced->client.nr_ranges; i++)
		pile_add(pile, p->announced->items[i].start, p->announced->items[i].end);
	for (size_t i = 0; i < p->nr_maps; i++)
		if (p->maps[i].kind == MAP_DYNAMIC)
			pile_add(pile, p->maps[i].start, p->maps[i].end);
	/* The events of a process that has just come may not have. */
	if (!p->announced && f->live)
		proc_dynamic(f->reader, p, pile_add, pile);
	dyn_ranges(p, pile_add, pile);
	reduce(pile);
}

static bool is_announced(const struct ranges *announced, const struct driver_client *c)
{
	if (!announced || announced->refused || announced->client.nr_ranges != c->nr_ranges ||
	    announced->client.words != c->words || announced->client.nr_words != c->nr_words ||
	    announced->client.cursor != c->cursor || announced->client.words_ino != c->words_ino ||
	    announced->client.words_off != c->words_off)
		return false;
	for (size_t i = 0; i < c->nr_ranges; i++) {
		if (announced->items[i].start != c->ranges[i].start ||
		    announced->items[i].end != c->ranges[i].end ||
		    announced->items[i].kind != c->ranges[i].kind)
			return false;
	}
	return true;
}

static int remember(struct process *p, const struct driver_client *client)
{
	if (!p->announced)
		p->announced = calloc(1, sizeof(*p->announced));
	if (!p->announced)
		return -ENOMEM;
	if (client->nr_ranges)
		memcpy(p->announced->items, client->ranges,
		       client->nr_ranges * sizeof(*client->ranges));
	p->announced->client = *client;
	p->announced->client.ranges = p->announced->items;
	return 0;
}

static bool stands(void *ctx)
{
	return dyn_words_stand(ctx);
}

/* @words: it has generation words. -ESTALE: it has none. */
static int tell(struct follow *f, struct process *p, struct driver_client *client, bool words)
{
	struct pile pile = { 0 };
	int r = 0;

	collect(f, p, &pile);
	for (size_t i = 0; i < pile.nr; i++)
		pile.items[i].kind = words ? DRIVER_RANGE_WORDS : DRIVER_RANGE_SINGLE;
	client->ranges = pile.items;
	client->nr_ranges = pile.nr;
	client->stands = stands;
	client->ctx = p;
	if (pile.failed || (!p->announced && !pile.nr) || is_announced(p->announced, client) ||
	    remember(p, client) < 0)
		goto out;
	if (p->announced->refused == f->ranges_round + 1)
		goto out;
	r = f->client_set(f->driver, p->pid, &p->announced->client);
	p->announced->refused = r < 0 ? f->ranges_round + 1 : 0;
	f->ranges_refused |= r < 0;
	/* Its samples are counted like any other's: less is known of addresses that are reused. */
	if (r < 0)
		base_log(BASE_LOG_DEBUG, "process %d: its dynamic code is counted only: %s", p->pid,
			 base_strerror(r));
out:
	free(pile.items);
	return r;
}

/*
 * A child without a registry of its own has what it inherited, which does not change. Words that
 * the driver was told of, and that are to be read no more, make way for something else.
 */
static void tell_one(struct follow *f, struct process *p)
{
	struct driver_client client = { 0 };
	bool words = dyn_words(p, &client);

	if (words && tell(f, p, &client, true) == -ESTALE) {
		p->announced->refused = 0;
		client = (struct driver_client){ 0 };
		words = false;
	}
	if (!words && (p->announced || dyn_reuses(p)))
		tell(f, p, &client, false);
}

void ranges_tell(struct follow *f)
{
	struct process *p;

	if (!f->ranges_changed)
		return;
	f->ranges_changed = false;
	for (size_t pos = 0; f->client_set && processes_next(f->processes, &pos, &p);) {
		/* It is the last one that runs. */
		while (p->later)
			p = p->later;
		if (p->dyn)
			tell_one(f, p);
	}
}

void ranges_retry(struct follow *f)
{
	f->ranges_round++;
	f->ranges_changed |= f->ranges_refused;
	f->ranges_refused = false;
}

/* @p is over: the driver may forget its ranges. */
static void ranges_end(struct follow *f, struct process *p)
{
	const struct process *now = processes_find(f->processes, p->pid);

	/* That pid's next life may have ranges of its own. */
	if (p->announced && f->client_set && !(now && now->announced))
		f->client_set(f->driver, p->pid, NULL);
}

/* ---- lives ----------------------------------------------------------------------------------- */

/* Programs that one process runs one after the other before the event of the first is seen. */
enum { LATER_MAX = 4 };

static void let_go(void *ctx, struct process *p)
{
	struct follow *f = ctx;

	ranges_end(f, p);
	for (; p; p = p->later)
		if (f->dyn && p->dyn)
			dyn_end(f->dyn, p);
}

/* A process without samples so far has the mappings of its fork, which /proc does not tell. */
static bool is_known_by_fork(const struct process *p)
{
	return !p->asked && (p->label || p->next_label);
}

void follow_end_placeholder(struct follow *f)
{
	struct process *p;

	for (size_t pos = 0; f->placeholder_made && processes_next(f->processes, &pos, &p);) {
		if (!p->placeholder || is_known_by_fork(p))
			continue;
		p->asked = false;
		if (p->dyn || p->attached_ns)
			continue;
		follow_end_lost(f, p->pid);
		follow_end(f, p);
		pos--;
	}
	f->placeholder_made = false;
}

/* The driver has what it was told of @later as that of @p. */
static void take_announced(struct follow *f, struct process *p, struct process *later)
{
	if (!later->announced)
		return;
	free(p->announced);
	p->announced = later->announced;
	later->announced = NULL;
	f->ranges_changed = true;
}

/* No exec came before the hand-over: it was the same life, and that can have but one registry. */
static void end_later(struct follow *f)
{
	bool made = f->later_made;
	struct process *p;

	f->later_made = false;
	for (size_t pos = 0; made && processes_next(f->processes, &pos, &p);) {
		struct process *later = p->later;

		if (!later)
			continue;
		if (later->attached_ns > f->now_ns) {
			f->later_made = true;
			continue;
		}
		base_log(BASE_LOG_DEBUG, "process %d has a second registry: it is left alone",
			 p->pid);
		p->later = later->later;
		f->later_made |= p->later != NULL;
		if (f->dyn && later->dyn)
			dyn_end(f->dyn, later);
		take_announced(f, p, later);
		free(later);
	}
}

/*
 * A process that hands over a second registry runs another program since: that life waits for the
 * exec that began it.
 */
static struct process *later_life(struct process *p)
{
	for (int i = 0; p && dyn_has_registry(p); i++) {
		if (!p->later && i < LATER_MAX && (p->later = calloc(1, sizeof(*p))))
			*p->later = (struct process){ .pid = p->pid, .placeholder = true };
		p = p->later;
	}
	return p;
}

struct process *follow_attach(void *ctx, int32_t pid, uint64_t time_ns)
{
	struct follow *f = ctx;
	struct process *p = processes_find(f->processes, pid), *life;

	if (!p) {
		p = processes_find_over(f->processes, pid);
		p = p && dyn_has_registry(p) ? NULL : p;
	}
	/* The events of its mappings are still to come. */
	if (!p) {
		p = follow_begin(f, pid);
		if (!p)
			return NULL;
		p->placeholder = f->placeholder_made = true;
	}
	life = later_life(p);
	if (!life)
		return NULL;
	f->later_made |= life != p;
	p = life;
	p->attached_ns = time_ns;
	f->attached_ns = base_now_ns();
	f->ranges_changed = true;
	/* The uid and start time of a forked child are its parent's until asked for. */
	if (f->live && !p->exited)
		proc_describe(p);
	return p;
}

void follow_reap(struct follow *f)
{
	end_later(f);
	processes_reap(f->processes, let_go, f);
}

void follow_release(struct follow *f)
{
	struct process *p;

	for (size_t pos = 0; processes_next(f->processes, &pos, &p);)
		dyn_leaving(p);
	processes_free(f->processes, let_go, f);
	f->processes = NULL;
	labels_release(&f->labels);
	for (size_t i = 0; i < f->queue.nr; i++)
		free(f->queue.items[i].path);
	free(f->queue.items);
	free(f->ends.items);
	f->queue = (struct follow_queue){ 0 };
	f->ends = (struct follow_ends){ 0 };
}
