/* SPDX-License-Identifier: BSD-2-Clause */
/* Registries that are handed over get the life of the process that made them; lives that are over
 * are let go. */
#include <stdlib.h>

#include "follow_internal.h"

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

void follow_read_ended(struct follow *f)
{
	struct process *p;

	for (size_t pos = 0; f->dyn && processes_next_over(f->processes, &pos, &p);)
		dyn_read_ended(f->dyn, p);
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
