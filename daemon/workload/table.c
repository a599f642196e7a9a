/* SPDX-License-Identifier: BSD-2-Clause */
/* The counts of one image by life, thread and minute: a hash table, which each flush puts to disk
 * with the profile of its image and clears. The flush decides which pids and threads are kept. */
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

static struct workload_count count_of(const struct workload_add *v)
{
	uint32_t life = v->where.life;
	bool known = life && life < v->to->of->nr_lives;

	return (struct workload_count){ .off = v->off,
					.n = v->n,
					.life = known ? life : WORKLOAD_NOBODY,
					.thread = v->where.thread,
					.minute = v->where.minute,
					.event = v->event };
}

static bool is_timed(const struct workloads *w, uint32_t event)
{
	return w->first_timed && event >= w->first_timed;
}

static void add_one(const struct workload_add *v)
{
	struct workloads *w = v->to->of;
	struct workload_count c = count_of(v);

	if (is_timed(w, v->event)) {
		w->lives[c.life].ns += v->n;
		w->ns += v->n;
	} else {
		w->lives[c.life].samples += v->n;
		if (c.life != WORKLOAD_IDLE)
			w->samples += v->n;
	}
	if (v->n)
		add(v->to, &c);
}

static void expect(const struct workload_add *v)
{
	const struct workload_table *t = v->to;
	struct workload_count c = count_of(v);

	base_prefetch(&t->places[hash_of(t->of, &c) & (t->cap - 1)]);
}

void workload_tables_add(const struct workload_add *v, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (v[i].to)
			expect(&v[i]);
	for (size_t i = 0; i < nr; i++)
		if (v[i].to)
			add_one(&v[i]);
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

/* ---- what goes out --------------------------------------------------------------------------- */

/* Tables go to disk with the profiles of their images. Which pids and threads are kept is decided
 * here. */

/* A process is worth its pid when it has so many samples, and one in so many of all. */
enum { APART_MIN = 50, APART_SHARE = 200 };
/* Or when its threads were there for so long, and one in so much of what all were. */
enum { APART_MIN_NS = 50000000, APART_SHARE_NS = 2000 };

/* ---- who is kept apart ----------------------------------------------------------------------- */

static bool is_worth(const struct workloads *w, const struct workload_one *one)
{
	return one->samples >= APART_MIN && one->samples >= w->samples / APART_SHARE;
}

static bool is_worth_for_time(const struct workloads *w, const struct workload_one *one)
{
	return one->ns >= APART_MIN_NS && one->ns >= w->ns / APART_SHARE_NS;
}

static void decide(struct workloads *w)
{
	for (size_t i = WORKLOAD_IDLE + 1; i < w->nr_lives; i++) {
		struct workload_one *one = &w->lives[i];

		if (!one->pid || one->apart)
			continue;
		if (is_worth(w, one) && w->nr_apart < WORKLOAD_NR_APART) {
			one->apart = true;
			w->nr_apart++;
		} else if (is_worth_for_time(w, one) && w->nr_apart_ns < WORKLOAD_NR_APART_NS) {
			one->apart = true;
			w->nr_apart_ns++;
		}
	}
}

/* ---- building -------------------------------------------------------------------------------- */

struct putting {
	struct workloads *w;
	struct profdb_workloads *to;
	struct base_map numbers; /* in @to by life and thread: number + 1 */
	unsigned int level;
	uint64_t nr; /* samples in the tables */
};

/* A thread of a process that is not kept apart has its name if that is the process's too. */
static const char *thread_of(const struct putting *p, const struct workload_one *one,
			     uint32_t thread)
{
	const char *name = workload_thread_name(p->w, thread);

	if (p->level >= WORKLOAD_NO_THREADS)
		return "";
	return one->apart || strcmp(name, workload_text(&p->w->names[one->names], 0)) == 0 ? name
											   : "";
}

static struct profdb_workload describe(const struct putting *p, const struct workload_one *one,
				       uint32_t thread)
{
	const struct workload_names *n = &p->w->names[one->names];

	if (p->level >= WORKLOAD_NO_NAMES)
		n = &p->w->names[p->w->lives[WORKLOAD_NOBODY].names];
	return (struct profdb_workload){
		.comm = workload_text(n, 0),
		.exe = workload_text(n, 1),
		.cgroup = p->level >= WORKLOAD_NO_CGROUPS ? "" : workload_text(n, 2),
		.label = workload_text(n, 3),
		.thread = thread_of(p, one, thread),
		.uid = n->uid,
		.pid = one->apart && p->level < WORKLOAD_NO_PIDS ? one->pid : 0,
	};
}

struct profdb_workload workload_owner(struct workloads *w, uint32_t number)
{
	const struct putting p = { .w = w, .level = w->level };

	return describe(&p, &w->lives[number < w->nr_lives ? number : WORKLOAD_NOBODY], 0);
}

/* A process counts once in an epoch, with the first of its threads that is met. */
static int number_of(struct putting *p, const struct workload_count *c)
{
	const uint32_t key[2] = { c->life, c->thread };
	uintptr_t number = (uintptr_t)base_map_get(&p->numbers, key, sizeof(key));
	struct workload_one *one = &p->w->lives[c->life];
	struct profdb_workload k;
	int r;

	if (number)
		return (int)number - 1;
	k = describe(p, one, c->thread);
	k.processes = one->processes - one->telling;
	r = profdb_workloads_workload_add(p->to, &k);
	if (r < 0)
		return r;
	one->telling = one->processes;
	if (base_map_set(&p->numbers, key, sizeof(key), (void *)((uintptr_t)r + 1)) < 0)
		return -ENOMEM;
	return r;
}

static int put_table(struct putting *p, const struct workload_image *image)
{
	const struct workload_table *t = image->table;
	int number = workload_table_nr(t) ? profdb_workloads_image_add(p->to, &image->ref) : 0;
	int r = number < 0 ? number : 0;

	for (size_t i = 0; r >= 0 && t && i < t->cap; i++) {
		const struct workload_count *c = &t->places[i];

		if (!c->n)
			continue;
		r = number_of(p, c);
		if (r >= 0)
			r = profdb_workloads_add(p->to, (uint32_t)r, (uint32_t)number, c->off,
						 c->event, c->minute, c->n);
	}
	return r;
}

static uint64_t samples_of(const struct workload_image *images, size_t nr, size_t nr_events)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++)
		for (size_t e = 0; e < nr_events; e++)
			sum += workload_table_sum(images[i].table, (uint32_t)e);
	return sum;
}

static void forget_telling(struct workloads *w)
{
	for (size_t i = 0; i < w->nr_lives; i++)
		w->lives[i].telling = 0;
	w->losing = 0;
}

static int build(struct putting *p, const struct profdb_event *events, size_t nr_events,
		 const struct workload_image *images, size_t nr)
{
	int r = 0;

	forget_telling(p->w);
	p->to = profdb_workloads_new();
	if (!p->to)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < nr_events; i++)
		r = profdb_workloads_event_add(p->to, events[i].name, events[i].period);
	for (size_t i = 0; r >= 0 && i < nr; i++)
		r = put_table(p, &images[i]);
	for (size_t i = 0; r >= 0 && i < p->w->nr_notes; i++)
		r = profdb_workloads_note(p->to, &p->w->notes[i]);
	return r < 0 ? r : 0;
}

/* ---- putting --------------------------------------------------------------------------------- */

static int put_once(struct putting *p, struct profdb *db, const struct profdb_event *events,
		    size_t nr_events, const struct workload_image *images, size_t nr,
		    struct base_err *err)
{
	int r = build(p, events, nr_events, images, nr);

	p->w->nr_noted = p->nr ? p->w->nr_notes : 0;
	if (r >= 0 && p->nr)
		r = profdb_flush_put_workloads(db, p->to, err);
	if (r > 0)
		base_log(BASE_LOG_WARN, "%s", err->text);
	if (r >= 0)
		*err = (struct base_err){ 0 };
	profdb_workloads_free(p->to);
	base_map_release(&p->numbers);
	p->to = NULL;
	return r;
}

/* They are lost: the profiles beside them are not to wait for that. */
static void lose(struct workloads *w, uint64_t nr, const struct base_err *err)
{
	base_log(BASE_LOG_ERROR, "the workloads of %llu samples are lost: %s",
		 (unsigned long long)nr, err->text);
	w->losing = nr;
}

static int put_as_fits(struct putting *p, struct profdb *db, const struct profdb_event *events,
		       size_t nr_events, const struct workload_image *images, size_t nr,
		       struct base_err *err)
{
	static const char *const without[] = { "", "names of threads", "pids", "cgroups", "names" };
	int r;

	for (;;) {
		*err = (struct base_err){ 0 };
		r = put_once(p, db, events, nr_events, images, nr, err);
		if (r != -DCPI_ELIMIT || p->level == WORKLOAD_NO_NAMES)
			return r;
		p->level++;
		base_log(BASE_LOG_WARN,
			 "this epoch has too many workloads: from now on they have no %s",
			 without[p->level]);
	}
}

int workload_put(struct workloads *w, struct profdb *db, const struct profdb_event *events,
		 size_t nr_events, const struct workload_image *images, size_t nr,
		 struct base_err *err)
{
	struct putting p = { .w = w, .level = w->level };
	struct base_err own = { 0 };
	int r;

	decide(w);
	p.nr = samples_of(images, nr, nr_events);
	r = put_as_fits(&p, db, events, nr_events, images, nr, &own);
	w->level = p.level;
	if (r >= 0)
		return 0;
	if (!own.code)
		base_fail_errno(&own, r, "cannot write workloads");
	if (r == -DCPI_EOVERFLOW || r == -DCPI_ELIMIT) {
		lose(w, p.nr, &own);
		return 0;
	}
	*err = own;
	return r;
}

void workload_note(struct workloads *w, const struct profdb_note *n)
{
	if (w->nr_notes < WORKLOAD_NR_NOTES &&
	    base_grow(&w->notes, &w->cap_notes, w->nr_notes + 1, sizeof(*w->notes)) >= 0)
		w->notes[w->nr_notes++] = *n;
}

static void notes_written(struct workloads *w)
{
	w->nr_notes -= w->nr_noted;
	if (w->nr_noted && w->nr_notes)
		memmove(w->notes, w->notes + w->nr_noted, w->nr_notes * sizeof(*w->notes));
	w->nr_noted = 0;
}

void workload_written(struct workloads *w)
{
	for (size_t i = 1; i < w->nr_lives; i++) {
		struct workload_one *one = &w->lives[i];

		if (!one->apart)
			w->joined += one->telling;
		one->processes -= one->telling;
		one->telling = 0;
	}
	w->lost += w->losing;
	w->losing = 0;
	notes_written(w);
}

void workload_stats_get(const struct workloads *w, struct workload_stats *out)
{
	*out = (struct workload_stats){ .lives = w->nr_lives - 1 - w->nr_free_lives,
					.apart = w->nr_apart + w->nr_apart_ns,
					.joined = w->joined,
					.counts = w->nr_counts,
					.lost = w->lost,
					.level = w->level };
}
