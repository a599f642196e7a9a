/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts, load events and traces come in the order of time; each count is attributed and stored. */
#include <errno.h>
#include <stdlib.h>

#include "counts.h"

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
		counts_scanned(t);
	}
	/* Behind what that has read in /proc, so that a replay knows the process as well. */
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

/* False: it waits for the next poll of its registry. */
static bool resolve(struct counts *t, struct sample *s, bool last)
{
	const struct verdict v = attribute_dynamic(t->attribute, s, last);

	if (v.kind == VERDICT_LATER)
		return false;
	t->store->account.pending -= s->count;
	store_verdict(t, s, &v);
	return true;
}

/* The memory that the next look-ups will read is asked for now. */
static void expect_lookup(const struct pendings *d, size_t i)
{
	static const size_t ahead[] = { 16, 8 };

	for (unsigned int step = 0; step < 2; step++)
		if (i + ahead[step] < d->nr)
			attribute_expect(&d->items[i + ahead[step]], step);
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
