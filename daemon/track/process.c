/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of processes: the lives of each pid, until their counts are settled. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "track.h"

/* NR_LAST: CPUs whose samples come by turns, each in a row of one process. SPARE_MAX: what a storm
 * of short programs leaves to one drain; SPARE_MAPS: how many of these have an array of mappings,
 * none larger than MAPS_MAX. */
enum { NR_LAST = 16, SPARE_MAX = 1024, SPARE_MAPS = 128, MAPS_MAX = 64 };

struct processes {
	struct base_map by_pid;
	struct process *last[NR_LAST]; /* that were found, by the end of their pid; or NULL */
	struct process **over; /* in the order in which they ended; room for all that live */
	size_t nr_over, cap_over;
	size_t nr_forgotten;   /* number of these before the first whose mappings are dropped or
				  unsettled */
	struct process *spare; /* to be used again, by their later lives */
	size_t nr_spare;
	struct spare_maps {
		struct map *v;
		size_t cap;
	} maps[SPARE_MAPS];
	size_t nr_maps;
};

struct processes *processes_new(void)
{
	return calloc(1, sizeof(struct processes));
}

static void free_maps(struct processes *t, struct process *p)
{
	map_clear(p);
	if (p->maps && p->cap_maps <= MAPS_MAX && t->nr_maps < SPARE_MAPS)
		t->maps[t->nr_maps++] = (struct spare_maps){ p->maps, p->cap_maps };
	else
		free(p->maps);
	p->maps = NULL;
	p->cap_maps = 0;
}

static struct process *process_new(struct processes *t)
{
	struct process *p = t->spare;

	if (p) {
		t->spare = p->later;
		t->nr_spare--;
		*p = (struct process){ 0 };
	} else {
		p = calloc(1, sizeof(*p));
	}
	if (p && t->nr_maps) {
		const struct spare_maps *maps = &t->maps[--t->nr_maps];

		p->maps = maps->v;
		p->cap_maps = maps->cap;
	}
	return p;
}

static void put_by(struct processes *t, struct process *p)
{
	if (t->nr_spare >= SPARE_MAX) {
		free(p);
		return;
	}
	p->later = t->spare;
	t->spare = p;
	t->nr_spare++;
}

static void process_free(struct processes *t, struct process *p)
{
	while (p) {
		struct process *later = p->later;

		free_maps(t, p);
		free(p->announced);
		free(p->exe);
		free(p->cgroup);
		put_by(t, p);
		p = later;
	}
}

void processes_free(struct processes *t, void (*end)(void *ctx, struct process *p), void *ctx)
{
	struct process *p;

	if (!t)
		return;
	for (size_t pos = 0; processes_next(t, &pos, &p); pos = 0)
		processes_end(t, p);
	processes_reap(t, end, ctx);
	while ((p = t->spare)) {
		t->spare = p->later;
		free(p);
	}
	while (t->nr_maps)
		free(t->maps[--t->nr_maps].v);
	base_map_release(&t->by_pid);
	free(t->over);
	free(t);
}

static struct process **last_of(struct processes *t, int32_t pid)
{
	return &t->last[(uint32_t)pid % NR_LAST];
}

struct process *processes_find(struct processes *t, int32_t pid)
{
	struct process **last = last_of(t, pid);

	if (!*last || (*last)->pid != pid)
		*last = base_map_get(&t->by_pid, &pid, sizeof(pid));
	return *last;
}

struct process *processes_find_over(const struct processes *t, int32_t pid)
{
	for (size_t i = t->nr_over; i--;)
		if (t->over[i]->pid == pid)
			return t->over[i];
	return NULL;
}

struct process *processes_add(struct processes *t, int32_t pid)
{
	struct process *old = processes_find(t, pid), *p;

	/* Room to end every life there is, so that ending one cannot fail. */
	if (base_grow(&t->over, &t->cap_over, t->nr_over + t->by_pid.nr + 1, sizeof(*t->over)) < 0)
		return NULL;
	p = process_new(t);
	if (!p)
		return NULL;
	p->pid = pid;
	if (old)
		processes_end(t, old);
	if (base_map_set(&t->by_pid, &pid, sizeof(pid), p) < 0) {
		free_maps(t, p);
		put_by(t, p);
		return NULL;
	}
	return p;
}

void processes_end(struct processes *t, struct process *p)
{
	struct process **last = last_of(t, p->pid);

	if (p->exited)
		return;
	p->exited = true;
	*last = *last == p ? NULL : *last;
	base_map_del(&t->by_pid, &p->pid, sizeof(p->pid));
	t->over[t->nr_over++] = p;
}

/* Storms of short programs leave thousands of lives to a drain. */
void processes_forget_maps(struct processes *t)
{
	for (; t->nr_forgotten < t->nr_over; t->nr_forgotten++) {
		struct process *p = t->over[t->nr_forgotten];

		if (!p->unsettled && !p->nr_paths)
			free_maps(t, p);
	}
}

void processes_reap(struct processes *t, void (*end)(void *ctx, struct process *p), void *ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->nr_over; i++) {
		if (t->over[i]->unsettled) {
			t->over[kept++] = t->over[i];
			continue;
		}
		if (end)
			end(ctx, t->over[i]);
		process_free(t, t->over[i]);
	}
	t->nr_over = t->nr_forgotten = kept;
}

bool processes_next(const struct processes *t, size_t *pos, struct process **out)
{
	void *value;

	if (!base_map_next(&t->by_pid, pos, &value))
		return false;
	*out = value;
	return true;
}

bool processes_next_over(const struct processes *t, size_t *pos, struct process **out)
{
	if (*pos >= t->nr_over)
		return false;
	*out = t->over[(*pos)++];
	return true;
}

size_t processes_nr(const struct processes *t)
{
	return t->by_pid.nr;
}

void process_set_comm(struct process *p, const char *comm)
{
	char now[sizeof(p->comm)] = "";

	memcpy(now, comm, strnlen(comm, sizeof(now) - 1));
	if (strcmp(now, p->comm) == 0)
		return;
	memcpy(p->comm, now, sizeof(now));
	p->workload = 0;
}

struct images_owner process_owner(const struct process *p)
{
	if (!p)
		return (struct images_owner){ 0 };
	return (struct images_owner){ .pid = p->pid,
				      .began_ns = p->began_ns ? p->began_ns : p->start_time_ns,
				      .label = p->label };
}
