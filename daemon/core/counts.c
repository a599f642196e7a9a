/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts, load events and traces come in the order of time; each count is attributed, gets its
 * process, thread and minute, waits where files have yet to tell of its code, and is stored. */
#include <errno.h>
#include <stdlib.h>

#include "counts.h"
#include "registry.h"
#include "watch.h"

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

/* ---- whose a count is: the process ----------------------------------------------------------- */

/*
 * The process of a count of the kernel's; nothing that is known of it changes by that. NULL: it is
 * not known, or idle. A sample in the kernel may be of the time between the exec of a process and
 * the event that tells of it, or behind the one of its end: it says nothing about lives.
 */
static struct process *whose_process(struct counts *t, const struct driver_count *c)
{
	struct process *p;

	if (!t->store->workloads || c->pid <= 0)
		return NULL;
	p = processes_find(t->follow->processes, c->pid);
	if (!p)
		p = processes_find_over(t->follow->processes, c->pid);
	if (!p) {
		p = follow_find(t->follow, c->pid, c->time_ns, 0);
		counts_scanned(t);
	}
	return p;
}

static struct workload_who who_of(const struct process *p, const char *thread)
{
	return (struct workload_who){ .comm = p->comm[0] ? p->comm : thread,
				      .exe = p->exe,
				      .cgroup = p->cgroup,
				      .label = p->label,
				      .uid = p->uid_known ? p->uid : WORKLOAD_NO_UID,
				      .pid = p->pid,
				      .brief = !p->begins && p->lives_ns &&
					       p->lives_ns < WORKLOAD_BRIEF_NS };
}

/*
 * /proc is ahead of the events that are still queued: a process that has another name there may
 * have another program. After so many drains the events are here, and the name is another one
 * because its event was lost, or as a thread with a name of its own forked the process.
 */
enum { PLACE_TRIES = 8 };

static bool is_placed(const struct counts *t, struct process *p)
{
	bool last = p->place_tries == PLACE_TRIES - 1;

	if (!t->follow->live || p->exited || p->lives_ns)
		return true;
	p->place_drain = t->drain + 1;
	return proc_place(p, last ? proc_check_life : proc_check_name) != -ESTALE || last;
}

/* Once in an epoch /proc is asked: a process gets another user or cgroup without an event. */
static void place(const struct counts *t, struct process *p)
{
	if (p->placed == t->epoch + 1 || p->place_drain == t->drain + 1)
		return;
	if (!is_placed(t, p)) {
		p->place_tries++;
		return;
	}
	p->placed = t->epoch + 1;
	p->place_tries = 0;
}

static uint32_t life_of(struct counts *t, struct process *p, uint32_t thread)
{
	struct workloads *w = t->store->workloads;
	struct workload_who who;

	place(t, p);
	if (p->workload && p->identified)
		return p->workload;
	who = who_of(p, workload_thread_name(w, thread));
	p->workload =
		p->workload ? workload_life_change(w, p->workload, &who) : workload_life(w, &who);
	p->identified = true;
	return p->workload;
}

/* A process of which nothing is known has a thread with a name at best. */
static uint32_t stranger(struct counts *t, int32_t pid, uint32_t thread)
{
	struct workloads *w = t->store->workloads;
	const struct workload_who who = { .comm = workload_thread_name(w, thread),
					  .uid = WORKLOAD_NO_UID };

	if (pid == 0)
		return WORKLOAD_IDLE;
	return thread ? workload_group(w, &who) : WORKLOAD_NOBODY;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static const char *driver_name(const void *ctx, uint32_t thread)
{
	return driver_thread_name(ctx, thread);
}

/*
 * The number of a thread's name. The idle task is one, whatever its thread on each CPU is called.
 */
static uint32_t whose_thread(struct counts *t, const struct driver_count *c)
{
	if (!t->store->workloads || !c->thread || !c->pid)
		return 0;
	return workload_thread(t->store->workloads, c->thread, driver_name, t->follow->driver);
}

/* ---- who may see it -------------------------------------------------------------------------- */

/* Processes that are asked for in one drain; others are asked for in later ones. */
enum { ASKS_MAX = 64 };

/*
 * Its user may see into it: all of its user ids are the user's, and the kernel says so too. What is
 * asked now holds until its exec, so for its samples that are younger, but not for older ones: they
 * may be those of the program that it was before.
 */
static void ask(struct counts *t, struct process *p)
{
	if (t->asks_drain != t->drain + 1)
		t->nr_asks = 0;
	t->asks_drain = t->drain + 1;
	if (t->nr_asks++ >= ASKS_MAX)
		return;
	p->seen_into_ns =
		registry_process_check(p->pid, p->uid) == 0 && registry_process_open(p->pid, p->uid)
			? base_now_ns()
			: UINT64_MAX;
}

uint32_t whose_reader(struct counts *t, struct process *p, uint64_t first_ns)
{
	if (!p || !p->uid_known || !watch_wants(t->store->watch, p->uid))
		return 0;
	if (!p->seen_into_ns && !p->exited && !p->placeholder && t->follow->live)
		ask(t, p);
	return p->seen_into_ns && first_ns > p->seen_into_ns ? p->uid : 0;
}

void whose_ask_again(struct counts *t)
{
	struct process *p;

	for (size_t pos = 0; processes_next(t->follow->processes, &pos, &p);)
		p->seen_into_ns = 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

struct workload_where whose(struct counts *t, struct process *p, int32_t pid, uint32_t thread,
			    uint64_t time_ns)
{
	struct workload_where where = { 0 };

	if (!t->store->workloads)
		return where;
	where.life = p ? life_of(t, p, thread) : stranger(t, pid, thread);
	where.thread = thread;
	where.minute = workload_clock_minute(&t->clock, time_ns);
	return where;
}

static void forget_threads(struct pendings *d)
{
	for (size_t i = 0; i < d->nr; i++)
		d->items[i].thread = 0;
}

/* They are counted anew, and get numbers of their own where these are free again. */
static void leave_groups(struct counts *t)
{
	const struct workloads *w = t->store->workloads;
	struct process *p;

	for (size_t pos = 0; processes_next(t->follow->processes, &pos, &p);)
		if (workload_is_group(w, p->workload))
			p->workload = 0;
}

void whose_new_epoch(struct counts *t)
{
	t->epoch++;
	leave_groups(t);
	if (t->follow->driver)
		driver_threads_forget(t->follow->driver);
	if (!workload_new_epoch(t->store->workloads))
		return;
	forget_threads(&t->dynamic);
	forget_threads(&t->unsettled);
	for (size_t i = 0; i < t->waiting.nr; i++)
		forget_threads(&t->waiting.items[i]->counts);
}

/* Counts that wait for /proc; what is more is charged as if no event had been lost. */
enum { UNSETTLED_MAX = 1 << 17 };

/* ---- storing --------------------------------------------------------------------------------- */

static void store_named(struct counts *t, enum account_bucket bucket, const struct process *p,
			const struct store_count *c)
{
	const struct images_owner owner = process_owner(p);

	store_bucket(t->store, bucket, &owner, c);
}

/* Buckets of user addresses in no image: with -unknown they are told one by one. */
static bool is_unknown(enum account_bucket bucket)
{
	return bucket != ACCOUNT_BUCKET_QUOTA && bucket != ACCOUNT_BUCKET_BUDGET;
}

static void store_verdict(struct counts *t, const struct sample *s, const struct verdict *v)
{
	const struct store_count c = { .off = v->off,
				       .n = s->count,
				       .event = s->event,
				       .where = whose(t, s->p, s->pid, s->thread, s->time_ns),
				       .reader = whose_reader(t, s->p, s->first_ns),
				       .insn = insns_get(&t->insns, s->insn) };

	if (v->kind == VERDICT_IMAGE) {
		if (v->image && v->image->kind == PROFDB_DYNAMIC && s->p)
			store_label(v->image, s->p->label);
		store_soon(t->store, v->image, &c);
		insns_put(&t->insns, s->insn);
		return;
	}
	store_named(t, v->bucket, s->p, &c);
	insns_put(&t->insns, s->insn);
	if (t->log_unknown && is_unknown(v->bucket))
		base_log(BASE_LOG_INFO, "%s: %llu samples of pid %d (%s) at 0x%llx",
			 account_bucket_name(v->bucket), (unsigned long long)s->count, s->pid,
			 s->p ? s->p->comm : "", (unsigned long long)s->addr);
}

static void pend(struct counts *t, struct pendings *to, const struct sample *s)
{
	if (base_grow(&to->items, &to->cap, to->nr + 1, sizeof(*to->items)) < 0) {
		t->store->account.lost[ACCOUNT_LOST_MEMORY] += s->count;
		insns_put(&t->insns, s->insn);
		return;
	}
	to->items[to->nr++] = *s;
	t->store->account.pending += s->count;
}

/* Not in the mode of a process, but on its account. */
static struct store_count count_of_other(struct counts *t, const struct driver_count *c,
					 uint64_t off)
{
	struct process *p = whose_process(t, c);

	return (struct store_count){ .off = off,
				     .n = c->count,
				     .event = c->event,
				     .where = whose(t, p, c->pid, whose_thread(t, c), c->time_ns),
				     .reader = whose_reader(t, p, c->first_ns),
				     .kernel = true,
				     .insn = c->insn };
}

static void count_kernel(struct counts *t, const struct driver_count *c)
{
	const struct verdict v = attribute_kernel(t->attribute, c);
	const struct store_count to = count_of_other(t, c, v.off);

	if (v.kind == VERDICT_IMAGE)
		store_soon(t->store, v.image, &to);
	else
		store_named(t, v.bucket, NULL, &to);
}

static void count_other(struct counts *t, const struct driver_count *c)
{
	const struct store_count to = count_of_other(t, c, 0);

	store_named(t, ACCOUNT_BUCKET_OTHER, NULL, &to);
}

/* ---- mappings -------------------------------------------------------------------------------- */

static void settle(struct counts *t, struct sample *s)
{
	const struct verdict v = attribute_mapped(t->attribute, s);

	if (v.kind == VERDICT_LATER)
		pend(t, &t->dynamic, s);
	else
		store_verdict(t, s, &v);
}

/*
 * Events still to come may tell that the mapping found in /proc is younger than the count. Those
 * that were lost tell nothing, but what /proc lists next may.
 */
static bool is_unsettled(const struct counts *t, const struct sample *s)
{
	const struct map *m = s->p && s->time_ns < s->p->known_ns ? map_find(s->p, s->addr) : NULL;

	if (t->follow->events_lost && s->p && t->unsettled.nr < UNSETTLED_MAX)
		return true;
	return m && m->listed && !m->since_ns;
}

static void count_user(struct counts *t, const struct driver_count *c, struct process *p)
{
	struct sample s = { .p = p,
			    .pid = c->pid,
			    .first_ns = c->first_ns,
			    .time_ns = c->time_ns,
			    .addr = c->addr,
			    .count = c->count,
			    .thread = whose_thread(t, c),
			    .event = c->event,
			    .insn = insns_keep(&t->insns, c->insn),
			    .generation = c->generation,
			    .generation_read = c->generation_read,
			    .generation_unread = c->generation_unread };

	if (!is_unsettled(t, &s)) {
		settle(t, &s);
		return;
	}
	p->unsettled = true;
	if (!t->unsettled.nr || p->known_ns < t->unsettled_ns)
		t->unsettled_ns = p->known_ns;
	pend(t, &t->unsettled, &s);
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

/* The next count or event happened at @time_ns. */
static void advance(struct counts *t, uint64_t time_ns)
{
	/* A live daemon looks at the clock before each drain. */
	if (!t->clock.nr && time_ns)
		workload_clock_look(&t->clock, time_ns, t->recorded_utc_ns);
	follow_until(t->follow, time_ns);
	if (t->follow->lives_ended)
		counts_scanned(t);
	if (t->unsettled.nr && time_ns >= t->unsettled_ns && !t->follow->events_lost)
		settle_listed(t, time_ns);
	if (t->traces)
		trace_pass(t->traces, time_ns);
	/* Behind the counts of their processes, which are unsettled as long as any of both is. */
	if (t->callpaths)
		callpath_pass(t->callpaths, time_ns);
}

int counts_count(void *ctx, const struct driver_count *c)
{
	struct counts *t = ctx;
	struct process *p = NULL;
	bool excluded;

	advance(t, c->time_ns);
	excluded = t->exclude && c->pid > 0 && exclude_has_pid(t->exclude, c->pid);
	if (c->mode == DRIVER_USER && c->pid > 0 && !excluded) {
		p = follow_find(t->follow, c->pid, c->time_ns, c->instance);
		if (t->follow->lives_ended)
			counts_scanned(t);
	}
	/* Behind what that has read in /proc, so that a replay knows the process as well. */
	if (t->follow->record)
		follow_record_count(t->follow, c);
	if (excluded)
		t->store->account.lost[ACCOUNT_LOST_EXCLUDED] += c->count;
	else if (c->mode == DRIVER_USER)
		count_user(t, c, p);
	else if (c->mode == DRIVER_KERNEL)
		count_kernel(t, c);
	else
		count_other(t, c);
	return 0;
}

int counts_load(void *ctx, const struct driver_load *l)
{
	struct counts *t = ctx;

	if (l->kind == DRIVER_LOAD_LOST) {
		follow_lost(t->follow, l->len);
		whose_ask_again(t);
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
	const struct driver_count at = { .first_ns = c->first_ns,
					 .time_ns = c->time_ns,
					 .instance = c->instance,
					 .pid = c->pid,
					 .thread = c->thread,
					 .event = c->event,
					 .mode = DRIVER_KERNEL,
					 .count = c->count };
	struct store_count to;

	if (t->exclude && c->pid > 0 && exclude_has_pid(t->exclude, c->pid)) {
		t->store->times.lost[ACCOUNT_LOST_EXCLUDED] += c->count;
		return;
	}
	to = count_of_other(t, &at, 0);
	store_named(t, account_bucket_of(c->wait), NULL, &to);
}

int counts_callpath(void *ctx, const struct driver_callpath *c, const uint64_t *frames)
{
	struct counts *t = ctx;

	advance(t, c->time_ns);
	if (c->wait)
		count_wait(t, c);
	if (t->callpaths)
		callpath_take(t->callpaths, c, frames);
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

void counts_resynchronised(struct counts *t, uint64_t nr)
{
	counts_scanned(t);
	whose_ask_again(t);
	t->follow->lost_read = nr;
	t->follow->events_lost = false;
	trace_events_lost(t->traces, t->follow->now_ns);
}

/* ---- after the registries were read ---------------------------------------------------------- */

/* One sample of a count at a time that is known. */
static void resolve_end(struct counts *t, const struct sample *s, struct image *image,
			uint64_t time_ns)
{
	struct sample one = *s;
	struct verdict v;

	one.first_ns = one.time_ns = time_ns;
	one.count = 1;
	one.image = image_get(image);
	v = attribute_dynamic(t->attribute, &one, true);
	store_verdict(t, &one, &v);
}

/* Its address had several routines while it was counted. The first and the last of its samples
 * have times, by which their routines are known. */
static bool is_divided(const struct sample *s, const struct verdict *v)
{
	return v->kind == VERDICT_BUCKET && v->bucket == ACCOUNT_BUCKET_REUSED && s->count > 1 &&
	       !s->insn;
}

static void resolve_ends(struct counts *t, const struct sample *s, struct image *image,
			 const struct verdict *v)
{
	struct sample rest = *s;

	resolve_end(t, s, image, s->first_ns);
	resolve_end(t, s, image, s->time_ns);
	rest.count -= 2;
	if (rest.count)
		store_verdict(t, &rest, v);
}

/* False: it waits for the next poll of its registry. */
static bool resolve(struct counts *t, struct sample *s, bool last)
{
	struct image *image = image_get(s->image);
	const struct verdict v = attribute_dynamic(t->attribute, s, last);

	if (v.kind != VERDICT_LATER) {
		t->store->account.pending -= s->count;
		if (is_divided(s, &v))
			resolve_ends(t, s, image, &v);
		else
			store_verdict(t, s, &v);
	}
	image_put(image);
	return v.kind != VERDICT_LATER;
}

/* The memory that the next look-ups will read is asked for now. */
static void expect_lookup(const struct pendings *d, size_t i)
{
	static const size_t ahead[] = { 16, 8 };

	for (unsigned int step = 0; step < 2; step++) {
		size_t at = i + ahead[step];

		if (at < d->nr)
			dyn_expect(d->items[at].p, d->items[at].addr, step);
	}
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

		expect_lookup(d, i);
		if (!resolve(t, &s, last) &&
		    (dyn_has_registry(s.p) || waiting_add(&t->waiting, &s) < 0))
			d->items[kept++] = s;
	}
	d->nr = kept;
	waiting_look(&t->waiting, last || t->attribute->flushing,
		     last ? resolve_last : resolve_waiting, t);
}

void counts_resolve(struct counts *t, uint64_t until_ns)
{
	struct follow *f = t->follow;

	f->events_lost &= until_ns != UINT64_MAX;
	advance(t, until_ns > f->now_ns ? until_ns : f->now_ns);
	follow_read_ended(f);
	resolve_all(t, until_ns == UINT64_MAX);
	store_all(t->store);
	/* No trace may go on waiting for a process that this ends. */
	follow_end_placeholder(f);
	counts_scanned(t);
	if (t->traces)
		trace_resolve(t->traces, until_ns == UINT64_MAX);
	if (t->callpaths)
		callpath_resolve(t->callpaths, until_ns == UINT64_MAX);
	if (t->attribute->dyn)
		dyn_settled(t->attribute->dyn, f->now_ns);
	follow_reap(f);
	t->drain++;
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
