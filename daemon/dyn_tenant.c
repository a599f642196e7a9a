/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "dyn_internal.h"

static int remember(struct dyn_tenants *t, const struct dyn_tenant *n, uint64_t hi)
{
	int r;

	if (t->nr_past == DYN_PAST_MAX) {
		/* The older half; whoever asks for so long ago is told that it is not known. */
		size_t half = DYN_PAST_MAX / 2;

		for (size_t i = 0; i < half; i++)
			if (t->past[i].until_hi > t->forgotten)
				t->forgotten = t->past[i].until_hi;
		memmove(t->past, t->past + half, (t->nr_past - half) * sizeof(*t->past));
		t->nr_past -= half;
	}
	r = base_grow(&t->past, &t->cap_past, t->nr_past + 1, sizeof(*t->past));
	if (r < 0)
		return r;
	t->past[t->nr_past++] = (struct dyn_past){ .start = n->node.start,
						   .end = n->node.end,
						   .facility = n->facility,
						   .elf = n->elf,
						   .lo = n->lo,
						   .until_hi = hi };
	if (hi > t->past_latest)
		t->past_latest = hi;
	return 0;
}

/*
 * A tenant of which a part is overwritten is gone as a whole: what stands in the rest of it nobody
 * has told.
 */
int dyn_tenant_enter(struct dyn_tenants *t, struct dyn_facility *f, uint64_t addr, uint64_t len,
		     uint64_t elf, uint64_t lo, uint64_t hi)
{
	struct dyn_tenant *n, *old;

	old = (void *)dyn_tree_find(&t->now, addr);
	if (old && old->facility == f && old->node.start == addr && old->node.end == addr + len &&
	    old->elf == elf)
		return 0; /* told once more */
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	*n = (struct dyn_tenant){ .node = { .start = addr, .end = addr + len },
				  .facility = f,
				  .elf = elf,
				  .lo = lo,
				  .hi = hi };
	while ((old = (void *)dyn_tree_overlap(&t->now, addr, addr + len))) {
		if (remember(t, old, hi) < 0)
			t->forgotten = hi;
		n->evicted = true;
		dyn_tree_remove(&t->now, &old->node);
		free(old);
	}
	dyn_tree_insert(&t->now, &n->node);
	return 0;
}

enum dyn_where dyn_tenant_find(const struct dyn_tenants *t, uint64_t addr, uint64_t time_ns,
			       struct dyn_facility **f, uint64_t *elf)
{
	const struct dyn_tenant *n = (const void *)dyn_tree_find(&t->now, addr);
	enum dyn_where where = DYN_NONE;

	if (n && n->lo < time_ns) {
		*f = n->facility;
		*elf = n->elf + (addr - n->node.start);
		where = DYN_FOUND;
		if (time_ns >= n->hi)
			return where;
	}
	/* Not certainly this one: whoever else may have lived here then makes it unknown. */
	if (time_ns >= t->past_latest)
		return where;
	if (time_ns < t->forgotten && n && n->evicted)
		return DYN_REUSED;
	for (size_t i = 0; i < t->nr_past; i++) {
		const struct dyn_past *p = &t->past[i];
		uint64_t at = p->elf + (addr - p->start);

		if (addr < p->start || addr >= p->end || p->lo >= time_ns || time_ns >= p->until_hi)
			continue;
		if (where == DYN_FOUND && (*f != p->facility || *elf != at))
			return DYN_REUSED;
		*f = p->facility;
		*elf = at;
		where = DYN_FOUND;
	}
	return where;
}

void dyn_tenant_forget(struct dyn_tenants *t, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->nr_past; i++) {
		if (t->past[i].until_hi + DYN_PAST_NS >= now_ns)
			t->past[kept++] = t->past[i];
		else if (t->past[i].until_hi > t->forgotten)
			t->forgotten = t->past[i].until_hi;
	}
	t->nr_past = kept;
}

void dyn_tenant_release(struct dyn_tenants *t)
{
	dyn_tree_release(&t->now);
	free(t->past);
	*t = (struct dyn_tenants){ 0 };
}
