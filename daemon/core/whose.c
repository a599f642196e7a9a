/* SPDX-License-Identifier: BSD-2-Clause */
/* A count gets the number of its process in the workloads, its thread's, and its minute. */
#include <errno.h>

#include "counts.h"
#include "registry.h"
#include "watch.h"

/* ---- the process ----------------------------------------------------------------------------- */

/*
 * A sample in the kernel may be of the time between the exec of a process and the event that tells
 * of it, or behind the one of its end: it says nothing about lives.
 */
struct process *whose_process(struct counts *t, const struct driver_count *c)
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
				      .pid = p->pid };
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

	if (!t->follow->live || p->exited)
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

/* The idle task is one, whatever its thread on each CPU is called. */
uint32_t whose_thread(struct counts *t, const struct driver_count *c)
{
	if (!t->store->workloads || !c->thread || !c->pid)
		return 0;
	return workload_thread(t->store->workloads, c->thread, driver_name, t->follow->driver);
}

/* ---- who may see it ----------------------------------------------------------------------------
 */

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
