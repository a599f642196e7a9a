/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon_core.h"

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

void attrib_store_bucket(struct attrib *a, enum account_bucket bucket, uint32_t event, uint64_t n)
{
	if (add(a, images_bucket(a->images, bucket), 0, event, n) >= 0)
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
	attrib_store_bucket(a, bucket, c->event, c->count);
	if (a->log_unknown)
		base_log(BASE_LOG_INFO, "%s: %llu samples of pid %d (%s) at 0x%llx",
			 account_bucket_name(bucket), (unsigned long long)c->count, c->pid,
			 c->p ? c->p->comm : "", (unsigned long long)c->addr);
}

/* Hold a count until the registries have been read. */
static void pend(struct attrib *a, const struct pending *c)
{
	if (base_grow(&a->pending, &a->cap_pending, a->nr_pending + 1, sizeof(*a->pending)) < 0) {
		a->account.lost[ACCOUNT_LOST_MEMORY] += c->count;
		return;
	}
	a->pending[a->nr_pending++] = *c;
	a->account.pending += c->count;
}

static void count_kernel(struct attrib *a, const struct driver_count *c)
{
	uint64_t off = 0;
	bool idle = false;
	struct image *img = a->kernel ? kernel_lookup(a->kernel, c->addr, &off, &idle) : NULL;

	if (idle && c->pid == 0)
		attrib_store_bucket(a, ACCOUNT_BUCKET_IDLE, c->event, c->count);
	else if (img)
		attrib_store(a, img, off, c->event, c->count);
	else
		attrib_store_bucket(a, ACCOUNT_BUCKET_KERNEL_UNKNOWN, c->event, c->count);
}

static void count_user(struct attrib *a, const struct driver_count *c)
{
	struct process *p = processes_find(a->processes, c->pid);
	const struct map *m;

	if (!p && c->pid > 0)
		p = track_adopt(a, c->pid, c->time_ns);
	m = p ? map_find(p, c->addr) : NULL;
	struct pending rest = { .p = p,
				.pid = c->pid,
				.time_ns = c->time_ns,
				.addr = c->addr,
				.count = c->count,
				.event = c->event,
				.dynamic = m != NULL };

	if (m && m->kind == MAP_IMAGE)
		attrib_store(a, m->image, m->file_off + (c->addr - m->start), c->event, c->count);
	else if (m || (p && p->dyn))
		pend(a, &rest);
	else
		store_unknown(a, bucket_of(&rest), &rest);
}

static void recorded(struct attrib *a, int r)
{
	if (r < 0 && !a->record_error)
		a->record_error = r;
}

int attrib_count(void *ctx, const struct driver_count *c)
{
	struct attrib *a = ctx;

	if (a->record)
		recorded(a, driver_record_count(a->record, c));
	a->now_ns = c->time_ns;
	if (c->mode == DRIVER_USER)
		count_user(a, c);
	else if (c->mode == DRIVER_KERNEL)
		count_kernel(a, c);
	else
		attrib_store_bucket(a, ACCOUNT_BUCKET_OTHER, c->event, c->count);
	return 0;
}

int attrib_load(void *ctx, const struct driver_load *l)
{
	struct attrib *a = ctx;

	a->now_ns = l->time_ns;
	track_load(a, l);
	return 0;
}

void attrib_record_load(struct attrib *a, const struct driver_load *l)
{
	if (a->record)
		recorded(a, driver_record_load(a->record, l));
}

static void resolve(struct attrib *a, const struct pending *c)
{
	struct image *img = NULL;
	uint64_t off = 0;
	enum dyn_where where = DYN_NONE;

	if (a->dyn)
		where = dyn_lookup(a->dyn, c->p, c->addr, c->time_ns, &img, &off);
	a->account.pending -= c->count;
	if (where == DYN_FOUND)
		attrib_store(a, img, off, c->event, c->count);
	else if (where == DYN_REUSED)
		store_unknown(a, ACCOUNT_BUCKET_REUSED, c);
	else
		store_unknown(a, bucket_of(c), c);
}

static void let_go(void *ctx, struct process *p)
{
	struct attrib *a = ctx;

	if (a->dyn && p->dyn)
		dyn_end(a->dyn, p);
}

/* A pid of which /proc told nothing may mean somebody else at the next drain. */
static void end_hollow(struct attrib *a)
{
	struct process *p;

	for (size_t pos = 0; a->hollow_made && processes_next(a->processes, &pos, &p);)
		if (p->hollow && !p->dyn && !p->attached_ns) {
			processes_end(a->processes, p);
			pos = 0;
		}
	a->hollow_made = false;
}

void attrib_resolve(struct attrib *a)
{
	for (size_t i = 0; i < a->nr_pending; i++)
		resolve(a, &a->pending[i]);
	if (a->nr_pending)
		a->dynamic_seen = true;
	a->nr_pending = 0;
	end_hollow(a);
	processes_reap(a->processes, let_go, a);
}

struct process *attrib_find(void *ctx, int32_t pid)
{
	struct attrib *a = ctx;
	struct process *p = processes_find(a->processes, pid);

	if (!p)
		p = processes_find_over(a->processes, pid);
	if (!p)
		p = track_adopt(a, pid, UINT64_MAX);
	if (!p)
		return NULL;
	p->attached_ns = base_now_ns();
	/* The uid and start time of a forked child are its parent's until asked for. */
	if (a->live && !p->exited)
		scan_describe(p);
	return p;
}

void attrib_release(struct attrib *a)
{
	free(a->pending);
	a->pending = NULL;
	a->nr_pending = a->cap_pending = 0;
	processes_free(a->processes, let_go, a);
	a->processes = NULL;
}
