/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes and threads of samples, for formats that have such: a workload is one, as far as
 * its pid and its thread's name were kept. Threads are known by name alone, and have made numbers.
 */
#include <errno.h>
#include <stdlib.h>

#include "export_internal.h"

/* Linux has no pid from here on. */
#define MADE (UINT64_C(1) << 22)

struct finder {
	const struct export *x;
	struct export_threads *t;
	size_t cap;
	struct base_map by_name; /* a thread's number + 1 */
	struct base_map by_pid;	 /* its pid + 1 */
	struct base_map mains;	 /* pids that have a first thread */
	uint64_t made;		 /* numbers that were made so far */
};

/* The text of a tag of a part's workload; 0: it has none. */
static uint32_t text_of(const struct export *x, const struct export_part *p, uint32_t key)
{
	const struct export_owner *o = p->owner == EXPORT_NONE ? NULL : &x->owners[p->owner];

	for (uint32_t i = 0; o && i < o->nr; i++) {
		const struct export_tag *tag = &x->tags[x->owner_tags[o->first + i]];

		if (tag->key == key)
			return tag->text;
	}
	return 0;
}

/* A process whose pid was not kept is one with all others of its name. */
static int number_process(struct finder *f, struct export_thread *t, uint32_t pid)
{
	const uint32_t key[] = { pid, pid ? 0 : t->process };
	uintptr_t known = (uintptr_t)base_map_get(&f->by_pid, key, sizeof(key));

	if (known) {
		t->pid = known - 1;
		return 0;
	}
	t->pid = pid ? strtoull(f->x->texts[pid], NULL, 10) : MADE + f->made++;
	return base_map_set(&f->by_pid, key, sizeof(key), (void *)(uintptr_t)(t->pid + 1));
}

/* The thread that has its process's name is the first one; of programs that a process had one after
 * the other, that of the first. */
static int number_thread(struct finder *f, struct export_thread *t)
{
	t->main = !t->estimated && (!t->name || t->name == t->process) &&
		  !base_map_get(&f->mains, &t->pid, sizeof(t->pid));
	t->tid = t->main ? t->pid : MADE + f->made++;
	return t->main ? base_map_set(&f->mains, &t->pid, sizeof(t->pid), f) : 0;
}

static int add_thread(struct finder *f, struct export_thread *t, uint32_t pid)
{
	int r = base_grow(&f->t->v, &f->cap, f->t->nr + 1, sizeof(*f->t->v));

	if (r >= 0)
		r = number_process(f, t, pid);
	if (r >= 0)
		r = number_thread(f, t);
	if (r >= 0)
		f->t->v[f->t->nr++] = *t;
	return r;
}

/* The number of a part's thread, which is made so. */
static int find_thread(struct finder *f, size_t part, uint32_t *out)
{
	const struct export_part *p = &f->x->parts[part];
	struct export_thread t = { .process = text_of(f->x, p, WORKLOAD_COMM),
				   .name = text_of(f->x, p, WORKLOAD_THREAD),
				   .estimated = p->estimated };
	const uint32_t pid = text_of(f->x, p, WORKLOAD_PID),
		       key[] = { pid, t.process, t.name, t.estimated };
	uintptr_t at = (uintptr_t)base_map_get(&f->by_name, key, sizeof(key));
	int r = 0;

	if (!at) {
		r = add_thread(f, &t, pid);
		at = f->t->nr;
		if (r >= 0)
			r = base_map_set(&f->by_name, key, sizeof(key), (void *)at);
	}
	if (r < 0)
		return r;
	*out = (uint32_t)(at - 1);
	f->t->v[at - 1].nr++;
	return 0;
}

/* Groups the parts by thread: @of is the thread of each. */
static void group(struct export_threads *t, const uint32_t *of, size_t nr)
{
	size_t first = 0;

	for (size_t i = 0; i < t->nr; i++) {
		t->v[i].first = first;
		first += t->v[i].nr;
		t->v[i].nr = 0;
	}
	for (size_t i = 0; i < nr; i++) {
		struct export_thread *at = &t->v[of[i]];

		t->parts[at->first + at->nr++] = i;
	}
}

int export_threads(const struct export *x, struct export_threads *out)
{
	struct finder f = { .x = x, .t = out };
	uint32_t *of = calloc(x->nr_parts + 1, sizeof(*of)); /* indexed by part */
	int r;

	out->parts = calloc(x->nr_parts + 1, sizeof(*out->parts));
	r = of && out->parts ? 0 : -ENOMEM;
	for (size_t i = 0; i < x->nr_parts && r >= 0; i++)
		r = find_thread(&f, i, &of[i]);
	if (r >= 0)
		group(out, of, x->nr_parts);
	base_map_release(&f.by_name);
	base_map_release(&f.by_pid);
	base_map_release(&f.mains);
	free(of);
	return r;
}

void export_threads_release(struct export_threads *t)
{
	free(t->v);
	free(t->parts);
}
