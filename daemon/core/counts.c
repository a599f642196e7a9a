/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attrib.h"
#include "exclude.h"
#include "scan.h"
#include "windows.h"

/* Programs that one process runs one after the other before the event of the first is seen. */
enum { LATER_MAX = 4 };
/* Counts that wait for a loss to be mended; what is more is charged as if nothing had been lost. */
enum { DOUBTFUL_MAX = 1 << 17 };

/* All profiles have all events, in the driver's order: an event's index is the same everywhere. */
static int add_events(const struct attrib *a, struct profdb_profile *p)
{
	for (size_t i = profdb_profile_nr_events(p); i < a->nr_events; i++) {
		int r = profdb_profile_event_add(p, a->events[i].name, a->events[i].period);

		if (r < 0)
			return r;
	}
	return 0;
}

static int add(struct attrib *a, struct image *img, uint64_t off, uint32_t event, uint64_t n)
{
	int r;

	if (img && img->excluded) {
		a->account.lost[ACCOUNT_LOST_EXCLUDED] += n;
		return 0;
	}
	if (!img)
		r = -ENOMEM;
	else if (event >= a->nr_events)
		r = -EINVAL;
	else
		r = add_events(a, img->counts);
	if (r >= 0)
		r = profdb_profile_add(img->counts, off, event, n);
	if (r >= 0) {
		img->dirty = true;
		a->account.stored += n;
	} else if (r == -DCPI_EOVERFLOW) {
		a->account.lost[ACCOUNT_LOST_OVERFLOW] += n;
	} else if (r == -EINVAL) {
		a->account.lost[ACCOUNT_LOST_BAD] += n;
	} else {
		a->account.lost[ACCOUNT_LOST_MEMORY] += n;
	}
	return r;
}

void attrib_store(struct attrib *a, struct image *img, uint64_t off, uint32_t event, uint64_t n)
{
	add(a, img, off, event, n);
}

static void store_first(struct attrib *a)
{
	struct attrib_stores *s = &a->stores;
	const struct attrib_place *p = &s->items[s->first++ % ATTRIB_AHEAD];

	a->account.pending -= p->count;
	add(a, p->image, p->off, p->event, p->count);
}

static void expect(const struct attrib_place *p, unsigned int step)
{
	profdb_profile_expect(p->image->counts, p->off, step);
}

/* As attrib_store, before the drain ends. */
static void store_soon(struct attrib *a, struct image *img, uint64_t off, uint32_t event,
		       uint64_t n)
{
	struct attrib_stores *s = &a->stores;
	struct attrib_place *p;

	if (!img || img->excluded) {
		add(a, img, off, event, n);
		return;
	}
	if (s->end - s->first == ATTRIB_AHEAD)
		store_first(a);
	p = &s->items[s->end++ % ATTRIB_AHEAD];
	*p = (struct attrib_place){ img, off, n, event };
	a->account.pending += n;
	expect(p, 0);
	if (s->end - s->first > ATTRIB_AHEAD / 2)
		expect(&s->items[(s->end - 1 - ATTRIB_AHEAD / 2) % ATTRIB_AHEAD], 1);
}

void attrib_store_all(struct attrib *a)
{
	while (a->stores.first != a->stores.end)
		store_first(a);
}

static void store_bucket(struct attrib *a, enum account_bucket bucket, const struct process *p,
			 uint32_t event, uint64_t n)
{
	struct image *img = images_bucket(a->images, bucket);

	if (img)
		img = images_of_process(a->images, img, p);
	if (add(a, img, 0, event, n) >= 0)
		a->account.bucket[bucket] += n;
}

static enum account_bucket bucket_of(const struct pending *c)
{
	if (c->dynamic)
		return ACCOUNT_BUCKET_DYNAMIC_UNKNOWN;
	return !c->p || c->p->hollow ? ACCOUNT_BUCKET_UNKNOWN_PROCESS : ACCOUNT_BUCKET_UNKNOWN;
}

/* A user address in no image: stored under its bucket's name and, with -unknown, told one by one.
 */
static void store_unknown(struct attrib *a, enum account_bucket bucket, const struct pending *c)
{
	store_bucket(a, bucket, c->p, c->event, c->count);
	if (a->log_unknown)
		base_log(BASE_LOG_INFO, "%s: %llu samples of pid %d (%s) at 0x%llx",
			 account_bucket_name(bucket), (unsigned long long)c->count, c->pid,
			 c->p ? c->p->comm : "", (unsigned long long)c->addr);
}

static void pend(struct attrib *a, struct pendings *to, const struct pending *c)
{
	if (base_grow(&to->items, &to->cap, to->nr + 1, sizeof(*to->items)) < 0) {
		a->account.lost[ACCOUNT_LOST_MEMORY] += c->count;
		return;
	}
	to->items[to->nr++] = *c;
	a->account.pending += c->count;
}

static void count_kernel(struct attrib *a, const struct driver_count *c)
{
	uint64_t off = 0;
	bool idle = false;
	struct image *img = a->kernel ? kernel_lookup(a->kernel, c, &off, &idle) : NULL;

	if (idle)
		store_bucket(a, ACCOUNT_BUCKET_IDLE, NULL, c->event, c->count);
	else if (img)
		store_soon(a, img, off, c->event, c->count);
	else
		store_bucket(a, ACCOUNT_BUCKET_KERNEL_UNKNOWN, NULL, c->event, c->count);
}

/* Somebody has told of code there: a private mapping of a file may be written to like any other. */
static void pend_image(struct attrib *a, struct pending *c, const struct map *m)
{
	c->image = image_get(images_of_process(a->images, m->image, c->p));
	c->off = m->file_off + (c->addr - m->start);
	c->mapped_ns = m->since_ns;
	pend(a, &a->dynamic, c);
}

/*
 * With every event up to the count's last sample seen. Its image is the mapping's, if that stood
 * there since the first one, or nothing else did before.
 */
static void settle(struct attrib *a, struct pending *c)
{
	const struct map *m = c->p ? map_find(c->p, c->addr) : NULL;

	c->dynamic = m && m->kind == MAP_DYNAMIC;
	c->map_start = m ? m->start : 0;
	/* A child of a fork makes no memory of its own. */
	if (c->dynamic)
		track_watch(a, c->p);
	if (m && m->since_ns > c->first_ns)
		store_unknown(a, ACCOUNT_BUCKET_AMBIGUOUS, c);
	else if (m && m->kind == MAP_IMAGE && a->dyn && dyn_claims(c->p, c->addr))
		pend_image(a, c, m);
	else if (m && m->kind == MAP_IMAGE)
		store_soon(a, images_of_process(a->images, m->image, c->p),
			   m->file_off + (c->addr - m->start), c->event, c->count);
	else if (m || (c->p && c->p->dyn))
		pend(a, &a->dynamic, c);
	else
		store_unknown(a, bucket_of(c), c);
}

/*
 * Events still to come may tell that the mapping found in /proc is younger than the count. Those
 * that were lost tell nothing, but what /proc lists next may.
 */
static bool is_unsettled(const struct attrib *a, const struct pending *c)
{
	const struct map *m = c->p && c->time_ns < c->p->known_ns ? map_find(c->p, c->addr) : NULL;

	if (a->doubt && c->p && a->unsettled.nr < DOUBTFUL_MAX)
		return true;
	return m && m->listed && !m->since_ns;
}

static void count_user(struct attrib *a, const struct driver_count *c, struct process *p)
{
	struct pending rest = { .p = p,
				.pid = c->pid,
				.first_ns = c->first_ns,
				.time_ns = c->time_ns,
				.addr = c->addr,
				.count = c->count,
				.event = c->event,
				.generation = c->generation,
				.generation_read = c->generation_read,
				.generation_unread = c->generation_unread };

	if (!is_unsettled(a, &rest)) {
		settle(a, &rest);
		return;
	}
	rest.p->unsettled = true;
	if (!a->unsettled.nr || rest.p->known_ns < a->unsettled_ns)
		a->unsettled_ns = rest.p->known_ns;
	pend(a, &a->unsettled, &rest);
}

/* Those whose process was listed up to @time_ns; all counts of one are settled together. */
static void settle_listed(struct attrib *a, uint64_t time_ns)
{
	struct pendings *u = &a->unsettled;
	size_t kept = 0;

	a->unsettled_ns = UINT64_MAX;
	for (size_t i = 0; i < u->nr; i++) {
		struct pending *c = &u->items[i];

		if (c->p->known_ns > time_ns) {
			if (c->p->known_ns < a->unsettled_ns)
				a->unsettled_ns = c->p->known_ns;
			u->items[kept++] = *c;
			continue;
		}
		a->account.pending -= c->count;
		c->p->unsettled = false;
		settle(a, c);
	}
	u->nr = kept;
}

/* What comes now happened at @time_ns. */
static void go_on(struct attrib *a, uint64_t time_ns)
{
	if (a->told.nr)
		told_handle(a, time_ns);
	a->now_ns = time_ns;
	if (a->unsettled.nr && time_ns >= a->unsettled_ns && !a->doubt)
		settle_listed(a, time_ns);
	if (a->windows)
		windows_pass(a->windows, a, time_ns);
}

static void recorded(struct attrib *a, int r)
{
	if (r < 0 && !a->record_error)
		a->record_error = r;
}

int attrib_count(void *ctx, const struct driver_count *c)
{
	struct attrib *a = ctx;
	struct process *p = NULL;
	bool excluded;

	go_on(a, c->time_ns);
	excluded = a->exclude && c->pid > 0 && exclude_has_pid(a->exclude, c->pid);
	if (c->mode == DRIVER_USER && c->pid > 0 && !excluded)
		p = track_find(a, c->pid, c->time_ns, c->instance);
	/* Behind what that has read in /proc, so that a replay knows the process as well. */
	if (a->record)
		recorded(a, driver_record_count(a->record, c));
	if (excluded)
		a->account.lost[ACCOUNT_LOST_EXCLUDED] += c->count;
	else if (c->mode == DRIVER_USER)
		count_user(a, c, p);
	else if (c->mode == DRIVER_KERNEL)
		count_kernel(a, c);
	else
		store_bucket(a, ACCOUNT_BUCKET_OTHER, NULL, c->event, c->count);
	return 0;
}

int attrib_load(void *ctx, const struct driver_load *l)
{
	struct attrib *a = ctx;

	if (l->kind == DRIVER_LOAD_LOST) {
		a->doubt = a->live && l->len != a->lost_mended;
		windows_doubted(a->windows, a->now_ns);
		return 0;
	}
	go_on(a, l->time_ns);
	track_load(a, l);
	return 0;
}

int attrib_window(void *ctx, const struct vtrace_window *w, const uint64_t *words)
{
	struct attrib *a = ctx;

	go_on(a, w->time_ns);
	if (a->windows)
		windows_take(a->windows, a, w, words);
	return 0;
}

void attrib_mended(struct attrib *a)
{
	a->doubt = false;
	windows_doubted(a->windows, a->now_ns);
}

void attrib_record_load(struct attrib *a, const struct driver_load *l)
{
	if (a->record)
		recorded(a, driver_record_load(a->record, l));
}

static void label_dynamic(struct image *img, const struct process *p)
{
	if (p && p->label && !img->label && image_set_label(img, p->label) < 0)
		base_log(BASE_LOG_ERROR, "no memory for the label of '%s'", img->stem);
}

int attrib_moves(struct attrib *a, const struct process *p, struct image *img,
		 const struct profdb_move *m, size_t nr, size_t *nr_stored)
{
	int r;

	*nr_stored = 0;
	if (img->excluded)
		return 0;
	if (img->kind == PROFDB_DYNAMIC)
		label_dynamic(img, p);
	r = add_events(a, img->counts);
	if (r < 0)
		return r;
	profdb_profile_moves_fetch(img->counts, m, nr);
	for (size_t i = 0; i < nr; i++) {
		int s = profdb_profile_move_add(img->counts, &m[i]);

		r = r < 0 ? r : s;
		*nr_stored += s >= 0;
	}
	img->dirty |= *nr_stored > 0;
	return r < 0 ? r : 0;
}

static void store_dynamic(struct attrib *a, struct image *img, uint64_t off,
			  const struct pending *c)
{
	label_dynamic(img, c->p);
	store_soon(a, img, off, c->event, c->count);
}

/* False: it waits for the next reading of its registry. */
static bool resolve(struct attrib *a, struct pending *c, bool last)
{
	struct dyn_query q = { .addr = c->addr,
			       .first_ns = c->first_ns,
			       .time_ns = c->time_ns,
			       .count = c->count,
			       .generation = c->generation,
			       .generation_read = c->generation_read,
			       .generation_unread = c->generation_unread,
			       .last = last || !waiting_may(a, c->p, &c->until_ns),
			       .dynamic = c->dynamic && a->live,
			       .map_start = c->map_start,
			       .mapped_ns = c->mapped_ns };
	enum dyn_where where = DYN_NONE;
	struct image *img = NULL;
	uint64_t off = 0;

	if (a->dyn)
		where = dyn_lookup(a->dyn, c->p, &q, &img, &off);
	if (where == DYN_LATER)
		return false;
	a->account.pending -= c->count;
	image_put(c->image);
	if (where == DYN_FOUND)
		store_dynamic(a, img, off, c);
	else if (where == DYN_REUSED)
		store_unknown(a, ACCOUNT_BUCKET_REUSED, c);
	else if (where == DYN_NO_ROOM)
		store_bucket(a, ACCOUNT_BUCKET_QUOTA, c->p, c->event, c->count);
	else if (where == DYN_GENERATION)
		store_unknown(a, ACCOUNT_BUCKET_GENERATION, c);
	else if (c->image)
		store_soon(a, c->image, c->off, c->event, c->count);
	else
		store_unknown(a, bucket_of(c), c);
	return true;
}

/* What the look-ups that come next will read of memory is asked for now. */
static void expect_lookup(const struct pendings *d, size_t i)
{
	static const size_t ahead[] = { 16, 8 };

	for (unsigned int step = 0; step < 2; step++)
		if (i + ahead[step] < d->nr)
			dyn_expect(d->items[i + ahead[step]].p, d->items[i + ahead[step]].addr,
				   step);
}

static bool resolve_waiting(void *ctx, struct pending *c)
{
	return resolve(ctx, c, false);
}

static bool resolve_last(void *ctx, struct pending *c)
{
	return resolve(ctx, c, true);
}

/* Who has a registry is read all the time; others write files when they like. */
static void resolve_all(struct attrib *a, bool last)
{
	struct pendings *d = &a->dynamic;
	size_t kept = 0;

	a->resolved_ns = base_now_ns();
	if (d->nr)
		a->dynamic_ns = a->resolved_ns;
	for (size_t i = 0; i < d->nr; i++) {
		struct pending c = d->items[i];

		expect_lookup(d, i);
		if (!resolve(a, &c, last) &&
		    (dyn_has_registry(c.p) || waiting_add(&a->waiting, &c) < 0))
			d->items[kept++] = c;
	}
	d->nr = kept;
	waiting_look(&a->waiting, last || a->flushing, last ? resolve_last : resolve_waiting, a);
}

static void let_go(void *ctx, struct process *p)
{
	struct attrib *a = ctx;

	ranges_end(a, p);
	for (; p; p = p->later)
		if (a->dyn && p->dyn)
			dyn_end(a->dyn, p);
}

/* Whom no sample asked for yet has what its fork gave it, which /proc does not tell. */
static bool is_known_by_fork(const struct process *p)
{
	return !p->asked && (p->label || p->next_label);
}

/* A pid of which /proc told nothing may mean somebody else at the next drain. */
static void end_hollow(struct attrib *a)
{
	struct process *p;

	for (size_t pos = 0; a->hollow_made && processes_next(a->processes, &pos, &p);) {
		if (!p->hollow || is_known_by_fork(p))
			continue;
		p->asked = false;
		if (p->dyn || p->attached_ns)
			continue;
		windows_end_lost(a->windows, p->pid);
		processes_end(a->processes, p);
		pos--;
	}
	a->hollow_made = false;
}

/* The driver has what it was told of @later as that of @p. */
static void take_told(struct attrib *a, struct process *p, struct process *later)
{
	if (!later->told)
		return;
	free(p->told);
	p->told = later->told;
	later->told = NULL;
	a->ranges_changed = true;
}

/* No exec came before the hand-over: it was the same life, and that can have but one registry. */
static void end_later(struct attrib *a)
{
	bool made = a->later_made;
	struct process *p;

	a->later_made = false;
	for (size_t pos = 0; made && processes_next(a->processes, &pos, &p);) {
		struct process *later = p->later;

		if (!later)
			continue;
		if (later->attached_ns > a->now_ns) {
			a->later_made = true;
			continue;
		}
		base_log(BASE_LOG_DEBUG, "process %d has a second registry: it is left alone",
			 p->pid);
		p->later = later->later;
		a->later_made |= p->later != NULL;
		if (a->dyn && later->dyn)
			dyn_end(a->dyn, later);
		take_told(a, p, later);
		free(later);
	}
}

void attrib_resolve(struct attrib *a, uint64_t until_ns)
{
	a->doubt &= until_ns != UINT64_MAX;
	go_on(a, until_ns > a->now_ns ? until_ns : a->now_ns);
	resolve_all(a, until_ns == UINT64_MAX);
	attrib_store_all(a);
	/* Whom it ends no window may go on waiting for. */
	end_hollow(a);
	if (a->windows)
		windows_resolve(a->windows, a, until_ns == UINT64_MAX);
	if (a->dyn)
		dyn_settled(a->dyn, a->now_ns);
	end_later(a);
	processes_reap(a->processes, let_go, a);
}

/*
 * A process that hands over a second registry runs another program since: that life waits for the
 * exec that began it.
 */
static struct process *later_life(struct process *p)
{
	for (int i = 0; p && dyn_has_registry(p); i++) {
		if (!p->later && i < LATER_MAX && (p->later = calloc(1, sizeof(*p))))
			*p->later = (struct process){ .pid = p->pid, .hollow = true };
		p = p->later;
	}
	return p;
}

struct process *attrib_find(void *ctx, int32_t pid, uint64_t time_ns)
{
	struct attrib *a = ctx;
	struct process *p = processes_find(a->processes, pid), *life;

	if (!p) {
		p = processes_find_over(a->processes, pid);
		p = p && dyn_has_registry(p) ? NULL : p;
	}
	/* What it has mapped, its events tell, which are on their way. */
	if (!p) {
		p = processes_add(a->processes, pid);
		if (!p)
			return NULL;
		p->hollow = a->hollow_made = true;
	}
	life = later_life(p);
	if (!life)
		return NULL;
	a->later_made |= life != p;
	p = life;
	p->attached_ns = time_ns;
	a->dynamic_ns = base_now_ns();
	a->ranges_changed = true;
	/* The uid and start time of a forked child are its parent's until asked for. */
	if (a->live && !p->exited)
		scan_describe(p);
	return p;
}

void attrib_release(struct attrib *a)
{
	for (size_t i = 0; i < a->unsettled.nr; i++)
		a->unsettled.items[i].p->unsettled = false;
	free(a->dynamic.items);
	free(a->unsettled.items);
	a->dynamic = a->unsettled = (struct pendings){ 0 };
	waiting_release(&a->waiting);
	processes_free(a->processes, let_go, a);
	a->processes = NULL;
	labels_release(&a->labels);
	told_release(&a->told);
}
