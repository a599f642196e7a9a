/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "dyn_internal.h"

static int remember(struct dyn_tenants *t, const struct dyn_tenant *n, uint64_t hi)
{
	int r;

	/* A recorded stream may tell times in any order; the past is searched by them. */
	if (t->nr_past && hi < t->past[t->nr_past - 1].until_hi)
		hi = t->past[t->nr_past - 1].until_hi;
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
		t->reused = n->evicted = true;
		dyn_tree_remove(&t->now, &old->node);
		free(old);
	}
	dyn_tree_insert(&t->now, &n->node);
	return 0;
}

/* What is known of an address so far. */
struct answer {
	enum dyn_where where;
	struct dyn_facility *facility;
	uint64_t elf;
};

/* One more that may have lived there in the interval; @whole: if it was there, then all the time.
 */
static void may_be(struct answer *a, struct dyn_facility *f, uint64_t elf, bool whole)
{
	bool other = a->where != DYN_NONE && (a->facility != f || a->elf != elf);

	a->facility = f;
	a->elf = elf;
	if (other || a->where == DYN_REUSED)
		a->where = DYN_REUSED;
	else if (a->where == DYN_NONE)
		a->where = whole ? DYN_FOUND : DYN_REUSED;
}

/* The first of the past that was not gone for certain at @time_ns. */
static size_t first_past(const struct dyn_tenants *t, uint64_t time_ns)
{
	size_t low = 0, high = t->nr_past;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->past[mid].until_hi > time_ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

enum dyn_where dyn_tenant_find(const struct dyn_tenants *t, uint64_t addr, uint64_t first_ns,
			       uint64_t time_ns, struct dyn_facility **f, uint64_t *elf, bool *sure)
{
	const struct dyn_tenant *n = (const void *)dyn_tree_find(&t->now, addr);
	struct answer a = { 0 };

	if (n && n->lo < time_ns)
		may_be(&a, n->facility, n->elf + (addr - n->node.start), n->lo < first_ns);
	*sure = n && first_ns >= n->hi;
	if (!*sure && first_ns < t->forgotten && n && n->evicted)
		return DYN_REUSED;
	/* Not certainly this one: whoever else may have lived here then makes it unknown. */
	for (size_t i = first_past(t, first_ns); !*sure && i < t->nr_past; i++) {
		const struct dyn_past *p = &t->past[i];

		if (addr >= p->start && addr < p->end && p->lo < time_ns)
			may_be(&a, p->facility, p->elf + (addr - p->start),
			       p->lo < first_ns && time_ns < p->until_hi);
	}
	*f = a.facility;
	*elf = a.elf;
	return a.where;
}

void dyn_tenant_forget(struct dyn_tenants *t, uint64_t settled_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->nr_past; i++) {
		if (t->past[i].until_hi + DYN_PAST_NS >= settled_ns)
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
