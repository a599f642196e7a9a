/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts, load events and traces come in the order of time; each count is attributed, gets its
 * process, thread and minute, waits where files have yet to tell of its code, and is stored. */
#include <errno.h>
#include <stdlib.h>

#include "counts.h"

/* ---- attributes of instructions -------------------------------------------------------------- */

/* Numbers begin at 1. Room for the number's return is made with it, so that cannot fail. */
static uint32_t make_number(struct insns *t)
{
	if (t->nr_free)
		return t->free[--t->nr_free];
	if (t->nr >= UINT32_MAX - 1 || base_grow(&t->v, &t->cap, t->nr + 1, sizeof(*t->v)) < 0 ||
	    base_grow(&t->free, &t->cap_free, t->nr + 1, sizeof(*t->free)) < 0)
		return 0;
	return (uint32_t)++t->nr;
}

/* The number of a copy, above 0, up to insns_put; 0: there is none, or no memory for it. */
static uint32_t insns_keep(struct insns *t, const struct isample *insn)
{
	uint32_t number = insn ? make_number(t) : 0;

	if (number)
		t->v[number - 1] = *insn;
	return number;
}

/* NULL for 0. Valid until the next insns_keep. */
static const struct isample *insns_get(const struct insns *t, uint32_t number)
{
	return number ? &t->v[number - 1] : NULL;
}

static void insns_put(struct insns *t, uint32_t number)
{
	if (number)
		t->free[t->nr_free++] = number;
}

static void insns_release(struct insns *t)
{
	free(t->v);
	free(t->free);
	*t = (struct insns){ 0 };
}

/* ---- waiting --------------------------------------------------------------------------------- */

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
	return a->addr == b->addr && a->event == b->event && a->thread == b->thread &&
	       a->threaded == b->threaded;
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

/* ---- a new epoch ----------------------------------------------------------------------------- */

static void name_threads(const struct owners *o, struct pendings *d)
{
	for (size_t i = 0; i < d->nr; i++)
		owner_thread(o, &d->items[i]);
}

static void forget_threads(const struct owners *o, struct pendings *d)
{
	(void)o;
	for (size_t i = 0; i < d->nr; i++)
		d->items[i].thread = 0;
}

static void each_waiting(struct counts *t, void (*fn)(const struct owners *o, struct pendings *d))
{
	fn(&t->owners, &t->dynamic);
	fn(&t->owners, &t->unsettled);
	for (size_t i = 0; i < t->waiting.nr; i++)
		fn(&t->owners, &t->waiting.items[i]->counts);
}

/* The driver's numbers of threads end with the epoch. */
void counts_new_epoch(struct counts *t)
{
	each_waiting(t, name_threads);
	if (owner_new_epoch(&t->owners))
		each_waiting(t, forget_threads);
}

/* ---- the stages of a sample ------------------------------------------------------------------ */

/* Counts that wait for /proc; what is more is charged as if no event had been lost. */
enum { UNSETTLED_MAX = 1 << 17 };

static void pend(struct counts *t, struct pendings *to, struct sample *s)
{
	if (base_grow(&to->items, &to->cap, to->nr + 1, sizeof(*to->items)) < 0) {
		t->store->account.lost[ACCOUNT_LOST_MEMORY] += s->count;
		insns_put(&t->insns, s->insn);
		return;
	}
	to->items[to->nr++] = *s;
	t->store->account.pending += s->count;
}

/* Buckets of user addresses in no image: with -unknown they are told one by one. */
static void tell_unknown(const struct sample *s, enum account_bucket bucket)
{
	if (bucket == ACCOUNT_BUCKET_QUOTA || bucket == ACCOUNT_BUCKET_BUDGET ||
	    s->mode != DRIVER_USER)
		return;
	base_log(BASE_LOG_INFO, "%s: %llu samples of pid %d (%s) at 0x%llx",
		 account_bucket_name(bucket), (unsigned long long)s->count, s->pid,
		 s->p ? s->p->comm : "", (unsigned long long)s->addr);
}

static void store_named(struct counts *t, enum account_bucket bucket, const struct sample *s,
			const struct store_count *c)
{
	const struct images_owner owner = process_owner(s->mode == DRIVER_USER ? s->p : NULL);

	store_bucket(t->store, bucket, &owner, c);
	if (t->log_unknown)
		tell_unknown(s, bucket);
}

/* Its address had several routines while it was counted. The first and the last of its samples
 * have times, by which their routines are known. */
static bool is_divided(const struct sample *s, const struct verdict *v)
{
	return s->waits && v->kind == VERDICT_BUCKET && v->bucket == ACCOUNT_BUCKET_REUSED &&
	       s->count > 1 && !s->insn;
}

static bool place(struct counts *t, struct sample *s, bool last);

/* One sample of a count at a time that is known, in a mapping of @image (may be NULL). */
static void place_end(struct counts *t, const struct sample *s, struct image *image,
		      uint64_t time_ns)
{
	struct sample one = *s;

	one.first_ns = one.time_ns = time_ns;
	one.count = 1;
	one.image = image_get(image);
	place(t, &one, true);
}

/*
 * The stages behind the first one, in which @s got its process and mapping: the verdict, the owner,
 * the store. False: it has no verdict yet; not where @last.
 */
static bool place(struct counts *t, struct sample *s, bool last)
{
	struct image *image = s->waits ? image_get(s->image) : NULL;
	const struct verdict v = attribute_sample(t->attribute, s, last);
	bool divided = is_divided(s, &v);
	struct store_count to = { .off = v.off,
				  .n = s->count - (divided ? 2 : 0),
				  .event = s->event,
				  .kernel = s->mode != DRIVER_USER,
				  .insn = insns_get(&t->insns, s->insn) };

	if (divided) {
		place_end(t, s, image, s->first_ns);
		place_end(t, s, image, s->time_ns);
	}
	image_put(image);
	if (v.kind == VERDICT_LATER || !to.n)
		return v.kind != VERDICT_LATER;
	owner_find(&t->owners, s, &to);
	if (v.kind == VERDICT_BUCKET) {
		store_named(t, v.bucket, s, &to);
	} else {
		if (v.image && v.image->kind == PROFDB_DYNAMIC && s->p && !to.kernel)
			image_label(v.image, s->p->label);
		store_soon(t->store, v.image, &to);
	}
	insns_put(&t->insns, s->insn);
	return true;
}

/* No event to come changes its mapping. In dynamic code it waits for the poll behind the drain. */
static void settle(struct counts *t, struct sample *s)
{
	const struct attribute *a = t->attribute;

	/* A child of a fork makes no memory of its own. */
	if (s->dynamic && !s->p->watched && a->dyn && a->live)
		dyn_watch(a->dyn, s->p);
	s->waits = s->dynamic && s->map->since_ns <= s->first_ns;
	if (s->waits || !place(t, s, false))
		pend(t, &t->dynamic, s);
}

static struct sample sample_of(struct counts *t, const struct driver_count *c)
{
	return (struct sample){ .pid = c->pid,
				.first_ns = c->first_ns,
				.time_ns = c->time_ns,
				.addr = c->addr,
				.count = c->count,
				.thread = c->thread,
				.event = c->event,
				.mode = c->mode,
				.bucket = ACCOUNT_BUCKET_OTHER,
				.insn = insns_keep(&t->insns, c->insn),
				.generation = c->generation,
				.generation_read = c->generation_read,
				.generation_unread = c->generation_unread };
}

static void record(const struct counts *t, const struct driver_count *c)
{
	if (t->follow->record)
		follow_record_count(t->follow, c);
}

static void count_user(struct counts *t, const struct driver_count *c)
{
	struct sample s = sample_of(t, c);
	bool settled = follow_count(t->follow, c, &s, t->unsettled.nr < UNSETTLED_MAX);

	if (t->follow->lives_ended)
		counts_scanned(t);
	/* Behind what that has read in /proc, so that a replay knows the process as well. */
	record(t, c);
	if (settled) {
		settle(t, &s);
		return;
	}
	s.p->unsettled = true;
	if (!t->unsettled.nr || s.p->known_ns < t->unsettled_ns)
		t->unsettled_ns = s.p->known_ns;
	t->due_ns = 0;
	pend(t, &t->unsettled, &s);
}

/*
 * The process of a count in the kernel, which may be of the time between an exec and its event, or
 * behind the end of the process: such a count says nothing about lives.
 */
static struct process *find_any(struct follow *f, int32_t pid, uint64_t time_ns)
{
	struct process *p = processes_find(f->processes, pid);

	if (!p)
		p = processes_find_over(f->processes, pid);
	return p ? p : follow_find(f, pid, time_ns, 0);
}

/* @s is not of the mode of a process, but on its account. */
static void count_other(struct counts *t, struct sample *s)
{
	if (t->store->workloads && s->pid > 0)
		s->p = find_any(t->follow, s->pid, s->time_ns);
	if (t->follow->lives_ended)
		counts_scanned(t);
	place(t, s, true);
}

/* Counts whose process was listed up to @time_ns are settled, all counts of one process together.
 */
static void settle_listed(struct counts *t, uint64_t time_ns)
{
	struct pendings *u = &t->unsettled;
	size_t kept = 0;

	t->unsettled_ns = UINT64_MAX;
	for (size_t i = 0; i < u->nr; i++) {
		struct sample *s = &u->items[i];

		if (s->p->known_ns > time_ns) {
			if (s->p->known_ns < t->unsettled_ns)
				t->unsettled_ns = s->p->known_ns;
			u->items[kept++] = *s;
			continue;
		}
		t->store->account.pending -= s->count;
		s->p->unsettled = false;
		sample_locate(s);
		settle(t, s);
	}
	u->nr = kept;
}

/* ---- what the driver hands on ---------------------------------------------------------------- */

void counts_scanned(struct counts *t)
{
	if (!t->follow->lives_ended)
		return;
	if (t->traces)
		trace_take_ends(t->traces);
	follow_ends_clear(t->follow);
}

/* Records that wait beside the counts: traces, and call paths. */
struct later {
	const struct attribute_later *ops;
	void *ctx;
};

enum { LATERS_MAX = 2 };

/* The kinds that this daemon has, into @out: how many. */
static size_t laters(const struct counts *t, struct later out[LATERS_MAX])
{
	size_t nr = 0;

	if (t->traces)
		out[nr++] = (struct later){ &trace_later, t->traces };
	if (t->callpaths)
		out[nr++] = (struct later){ &callpath_later, t->callpaths };
	return nr;
}

/* The next count or event happened at @time_ns. */
static void advance(struct counts *t, uint64_t time_ns)
{
	struct later l[LATERS_MAX];

	t->due_ns = 0;
	/* A live daemon looks at the clock before each drain. */
	if (!t->owners.clock.nr && time_ns)
		workload_clock_look(&t->owners.clock, time_ns, t->recorded_utc_ns);
	follow_until(t->follow, time_ns);
	if (t->follow->lives_ended)
		counts_scanned(t);
	if (t->unsettled.nr && time_ns >= t->unsettled_ns && !t->follow->events_lost)
		settle_listed(t, time_ns);
	/* Behind the counts of their processes, which are unsettled as long as any of them is. */
	for (size_t i = 0, nr = laters(t, l); i < nr; i++)
		l[i].ops->pass(l[i].ctx, time_ns);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Up to then no count finds anything to do before it; 0: it is not known when. */
static uint64_t next_due(const struct counts *t)
{
	const struct follow_queue *q = &t->follow->queue;
	uint64_t due_ns = t->unsettled.nr ? t->unsettled_ns : UINT64_MAX;
	struct later l[LATERS_MAX];

	if (!t->owners.clock.nr)
		return 0;
	if (q->nr)
		due_ns = earlier(due_ns, q->items[0].load.time_ns);
	for (size_t i = 0, nr = laters(t, l); i < nr; i++)
		due_ns = earlier(due_ns, l[i].ops->next_ns(l[i].ctx));
	return due_ns;
}

static bool is_excluded(const struct counts *t, int32_t pid)
{
	return t->exclude && pid > 0 && exclude_has_pid(t->exclude, pid);
}

int counts_count(void *ctx, const struct driver_count *c)
{
	struct counts *t = ctx;
	struct sample s;

	/* Most counts come with nothing between them. */
	if (c->time_ns >= t->due_ns) {
		advance(t, c->time_ns);
		t->due_ns = next_due(t);
	}
	t->follow->now_ns = c->time_ns;
	if (is_excluded(t, c->pid)) {
		record(t, c);
		t->store->account.lost[ACCOUNT_LOST_EXCLUDED] += c->count;
		return 0;
	}
	if (c->mode == DRIVER_USER) {
		count_user(t, c);
		return 0;
	}
	record(t, c);
	s = sample_of(t, c);
	count_other(t, &s);
	return 0;
}

int counts_load(void *ctx, const struct driver_load *l)
{
	struct counts *t = ctx;

	if (l->kind == DRIVER_LOAD_LOST) {
		t->follow->events_lost = t->follow->live && l->len != t->follow->lost_read;
		owner_ask_again(&t->owners);
		t->due_ns = 0;
		trace_events_lost(t->traces, t->follow->now_ns);
		return 0;
	}
	advance(t, l->time_ns);
	if (t->callpaths)
		callpath_load(t->callpaths, l);
	follow_load(t->follow, l);
	counts_scanned(t);
	return 0;
}

int counts_trace(void *ctx, const struct insn_trace *w, const uint64_t *words)
{
	struct counts *t = ctx;

	advance(t, w->time_ns);
	if (t->traces)
		trace_take(t->traces, w, words);
	return 0;
}

/* Nanoseconds of a thread that waits or runs go under what it does. */
static void count_wait(struct counts *t, const struct driver_callpath *c)
{
	struct sample s = { .first_ns = c->first_ns,
			    .time_ns = c->time_ns,
			    .pid = c->pid,
			    .thread = c->thread,
			    .event = c->event,
			    .mode = DRIVER_OTHER,
			    .bucket = account_bucket_of(c->wait),
			    .count = c->count };

	if (is_excluded(t, c->pid))
		t->store->times.lost[ACCOUNT_LOST_EXCLUDED] += c->count;
	else
		count_other(t, &s);
}

/* Frames in a process are of that time; a path in the kernel says nothing about lives. */
static void take_callpath(struct counts *t, const struct driver_callpath *c, const uint64_t *frames)
{
	struct sample s = { .pid = c->pid, .time_ns = c->time_ns, .threaded = true };
	struct store_count to = { 0 };
	struct process *p = NULL;

	if (is_excluded(t, c->pid)) {
		callpath_take(t->callpaths, c, frames, NULL, 0);
		return;
	}
	if (c->nr > c->nr_kernel && c->pid > 0)
		p = follow_find(t->follow, c->pid, c->time_ns, c->instance);
	s.p = !p && t->store->workloads && c->pid > 0 ? find_any(t->follow, c->pid, c->time_ns) : p;
	counts_scanned(t);
	owner_find(&t->owners, &s, &to);
	callpath_take(t->callpaths, c, frames, p, to.where.life);
}

int counts_callpath(void *ctx, const struct driver_callpath *c, const uint64_t *frames)
{
	struct counts *t = ctx;

	advance(t, c->time_ns);
	if (c->wait)
		count_wait(t, c);
	if (t->callpaths)
		take_callpath(t, c, frames);
	counts_scanned(t);
	return 0;
}

int counts_function(void *ctx, const struct driver_function *f)
{
	struct counts *t = ctx;

	advance(t, f->time_ns);
	if (t->callpaths)
		callpath_function(t->callpaths, f);
	return 0;
}

struct driver_sink counts_sink(struct counts *t)
{
	return (struct driver_sink){ .load = counts_load,
				     .count = counts_count,
				     .trace = t->traces ? counts_trace : NULL,
				     .callpath = t->callpaths ? counts_callpath : NULL,
				     .function = t->callpaths ? counts_function : NULL,
				     .ctx = t };
}

void counts_resynchronised(struct counts *t, uint64_t nr)
{
	counts_scanned(t);
	owner_ask_again(&t->owners);
	t->due_ns = 0;
	t->follow->lost_read = nr;
	t->follow->events_lost = false;
	trace_events_lost(t->traces, t->follow->now_ns);
}

/* ---- after the registries were read ---------------------------------------------------------- */

/* False: it waits for the next poll of its registry. */
static bool resolve(struct counts *t, struct sample *s, bool last)
{
	if (!place(t, s, last))
		return false;
	t->store->account.pending -= s->count;
	return true;
}

static bool resolve_waiting(void *ctx, struct sample *s)
{
	return resolve(ctx, s, false);
}

static bool resolve_last(void *ctx, struct sample *s)
{
	return resolve(ctx, s, true);
}

/* A process with a registry is polled all the time; other runtimes write files when they like. */
static void resolve_all(struct counts *t, bool last)
{
	struct pendings *d = &t->dynamic;
	size_t kept = 0;

	t->attribute->resolved_ns = base_now_ns();
	if (d->nr)
		t->attribute->dynamic_ns = t->attribute->resolved_ns;
	for (size_t i = 0; i < d->nr; i++) {
		struct sample s = d->items[i];

		t->attribute->next = &d->items[i];
		t->attribute->nr_next = d->nr - i;
		if (place(t, &s, last))
			t->store->account.pending -= s.count;
		else if (dyn_has_registry(s.p) || waiting_add(&t->waiting, &s) < 0)
			d->items[kept++] = s;
	}
	d->nr = kept;
	t->attribute->nr_next = 0;
	waiting_look(&t->waiting, last || t->attribute->flushing,
		     last ? resolve_last : resolve_waiting, t);
}

/* The words of lives that are over are read, before their samples are looked up a last time. */
static void read_ended(struct follow *f)
{
	struct process *p;

	for (size_t pos = 0; f->dyn && processes_next_over(f->processes, &pos, &p);)
		dyn_read_ended(f->dyn, p);
}

void counts_resolve(struct counts *t, uint64_t until_ns)
{
	struct follow *f = t->follow;
	struct later l[LATERS_MAX];

	f->events_lost &= until_ns != UINT64_MAX;
	advance(t, until_ns > f->now_ns ? until_ns : f->now_ns);
	read_ended(f);
	resolve_all(t, until_ns == UINT64_MAX);
	store_all(t->store);
	/* No trace may go on waiting for a process that this ends. */
	follow_end_placeholder(f);
	counts_scanned(t);
	for (size_t i = 0, nr = laters(t, l); i < nr; i++)
		l[i].ops->resolve(l[i].ctx, until_ns == UINT64_MAX);
	if (t->attribute->dyn)
		dyn_settled(t->attribute->dyn, f->now_ns);
	follow_reap(f);
	t->owners.drain++;
}

void counts_release(struct counts *t)
{
	for (size_t i = 0; i < t->unsettled.nr; i++)
		t->unsettled.items[i].p->unsettled = false;
	free(t->dynamic.items);
	free(t->unsettled.items);
	t->dynamic = t->unsettled = (struct pendings){ 0 };
	waiting_release(&t->waiting);
	insns_release(&t->insns);
}
