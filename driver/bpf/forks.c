/* SPDX-License-Identifier: BSD-2-Clause */
/* Forks of clients, as programs told them, matched with the load events of perf. */
#include <stdlib.h>

#include "bpf_internal.h"
#include "kernel/sample.h"

/* The clock of events is read without a lock, which may be so much aside of that of tasks. */
#define SLACK_NS 1000000u

void bpf_forks_add(struct bpf_forks *f, const struct sample_fork *fork)
{
	/* Without memory its FORK event is one without a cursor. */
	if (base_grow(&f->items, &f->cap, f->nr + 1, sizeof(*f->items)) < 0)
		return;
	f->items[f->nr++] = *fork;
	f->sorted = false;
}

static int by_child(const void *va, const void *vb)
{
	const struct sample_fork *a = va, *b = vb;

	if (a->child != b->child)
		return a->child < b->child ? -1 : 1;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* The first of @child that was told at @time_ns or later. */
static const struct sample_fork *first_of(const struct bpf_forks *f, uint32_t child,
					  uint64_t time_ns)
{
	const struct sample_fork key = { .child = child, .time_ns = time_ns };
	size_t from = 0, to = f->nr, mid;

	while (from < to) {
		mid = from + (to - from) / 2;
		if (by_child(&f->items[mid], &key) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from < f->nr && f->items[from].child == child ? &f->items[from] : NULL;
}

void bpf_forks_tell(struct bpf_forks *f, struct driver_load *load)
{
	const struct sample_fork *found;

	if (!f->sorted && f->nr)
		qsort(f->items, f->nr, sizeof(*f->items), by_child);
	f->sorted = true;
	found = first_of(f, (uint32_t)load->pid, load->time_ns);
	if (!found || found->parent != (uint32_t)load->ppid ||
	    found->begun_ns > load->time_ns + SLACK_NS)
		return;
	load->cursor = found->cursor;
	load->flags |= DRIVER_LOAD_CURSOR;
}

void bpf_forks_drop(struct bpf_forks *f, uint64_t until_ns)
{
	size_t nr = 0;

	for (size_t i = 0; i < f->nr; i++) {
		if (f->items[i].time_ns > until_ns)
			f->items[nr++] = f->items[i];
	}
	f->nr = nr;
}

void bpf_forks_release(struct bpf_forks *f)
{
	free(f->items);
	*f = (struct bpf_forks){ 0 };
}
