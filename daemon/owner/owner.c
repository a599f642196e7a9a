/* SPDX-License-Identifier: BSD-2-Clause */
/* The owner of a sample is found when it is stored: the process as it is known by then. */
#include <errno.h>

#include "owner.h"
#include "registry.h"
#include "watch.h"

/* ---- the thread ------------------------------------------------------------------------------ */

static const char *driver_name(const void *ctx, uint32_t thread)
{
	return driver_thread_name(ctx, thread);
}

/* The idle task is one, whatever its thread on each CPU is called. */
void owner_thread(const struct owners *o, struct sample *s)
{
	if (s->threaded)
		return;
	s->threaded = true;
	s->thread = o->store->workloads && s->pid ? workload_thread(o->store->workloads, s->thread,
								    driver_name, o->follow->driver)
						  : 0;
}

/* ---- the process ----------------------------------------------------------------------------- */

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

static bool is_placed(const struct owners *o, struct process *p)
{
	bool last = p->place_tries == PLACE_TRIES - 1;

	if (!o->follow->live || p->exited || p->lives_ns)
		return true;
	p->place_drain = o->drain + 1;
	return proc_place(p, !last) != -ESTALE || last;
}

/* Once in an epoch /proc is asked: a process gets another user or cgroup without an event. */
static void find_place(const struct owners *o, struct process *p)
{
	if (p->placed == o->epoch + 1 || p->place_drain == o->drain + 1)
		return;
	if (!is_placed(o, p)) {
		p->place_tries++;
		return;
	}
	p->placed = o->epoch + 1;
	p->place_tries = 0;
}

/* All that /proc tells of it in this epoch is known, and it has its number for that. */
static bool has_number(const struct owners *o, const struct process *p)
{
	return p->workload && p->identified && p->placed == o->epoch + 1;
}

static uint32_t life_of(struct owners *o, struct sample *s)
{
	struct workloads *w = o->store->workloads;
	struct process *p = s->p;
	struct workload_who who;

	find_place(o, p);
	if (p->workload && p->identified)
		return p->workload;
	owner_thread(o, s);
	who = who_of(p, workload_thread_name(w, s->thread));
	p->workload =
		p->workload ? workload_life_change(w, p->workload, &who) : workload_life(w, &who);
	p->identified = true;
	return p->workload;
}

/* A process of which nothing is known has a thread with a name at best. */
static uint32_t stranger(const struct owners *o, struct sample *s)
{
	struct workloads *w = o->store->workloads;
	struct workload_who who = { .uid = WORKLOAD_NO_UID };

	if (s->pid == 0)
		return WORKLOAD_IDLE;
	owner_thread(o, s);
	who.comm = workload_thread_name(w, s->thread);
	return s->thread ? workload_group(w, &who) : WORKLOAD_NOBODY;
}

/* ---- who may see it -------------------------------------------------------------------------- */

/* Processes that are asked for in one drain; others are asked for in later ones. */
enum { ASKS_MAX = 64 };

/*
 * Its user may see into it: all of its user ids are the user's, and the kernel says so too. What is
 * asked now holds until its exec, so for its samples that are younger, but not for older ones: they
 * may be those of the program that it was before.
 */
static void ask(struct owners *o, struct process *p)
{
	if (o->asks_drain != o->drain + 1)
		o->nr_asks = 0;
	o->asks_drain = o->drain + 1;
	if (o->nr_asks++ >= ASKS_MAX)
		return;
	p->seen_into_ns =
		registry_process_check(p->pid, p->uid) == 0 && registry_process_open(p->pid, p->uid)
			? base_now_ns()
			: UINT64_MAX;
}

static uint32_t reader_of(struct owners *o, struct process *p, uint64_t first_ns)
{
	if (!p->seen_into_ns && !p->exited && !p->placeholder && o->follow->live)
		ask(o, p);
	return p->seen_into_ns && first_ns > p->seen_into_ns ? p->uid : 0;
}

void owner_ask_again(struct owners *o)
{
	struct process *p;

	for (size_t pos = 0; processes_next(o->follow->processes, &pos, &p);)
		p->seen_into_ns = 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

void owner_find(struct owners *o, struct sample *s, struct store_count *to)
{
	struct process *p = s->p;

	if (o->store->workloads) {
		if (p)
			to->where.life = has_number(o, p) ? p->workload : life_of(o, s);
		else
			to->where.life = stranger(o, s);
		owner_thread(o, s);
		to->where.thread = s->thread;
		to->where.minute = workload_clock_minute(&o->clock, s->time_ns);
	}
	if (p && p->uid_known && watch_has_viewers(o->store->watch) &&
	    watch_wants(o->store->watch, p->uid))
		to->reader = reader_of(o, p, s->first_ns);
}

/* They are counted anew, and get numbers of their own where these are free again. */
static void leave_groups(struct owners *o)
{
	const struct workloads *w = o->store->workloads;
	struct process *p;

	for (size_t pos = 0; processes_next(o->follow->processes, &pos, &p);)
		if (workload_is_group(w, p->workload))
			p->workload = 0;
}

bool owner_new_epoch(struct owners *o)
{
	o->epoch++;
	leave_groups(o);
	if (o->follow->driver)
		driver_threads_forget(o->follow->driver);
	return workload_new_epoch(o->store->workloads);
}
