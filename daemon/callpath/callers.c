/* SPDX-License-Identifier: BSD-2-Clause */
/* Most paths have the callers of one that was placed before: as long as nothing of their process
 * has changed, these need not be looked up again. */
#include <string.h>

#include "callpath_internal.h"

enum { CALLERS_MIN = 3 };

size_t callpath_inner(const struct driver_callpath *c)
{
	return c->nr_kernel ? c->nr_kernel : 1;
}

static struct callpath_callers *slot_of(const struct callpaths *t, const struct callpath_pending *k,
					const uint64_t *addrs, size_t nr)
{
	uint64_t hash = (uintptr_t)k->p ^ t->tree.seed;

	for (size_t i = 0; i < nr; i++)
		hash = (hash ^ addrs[i]) * 0x9e3779b97f4a7c15u;
	return &t->callers[(hash >> 40) % CALLPATH_NR_CALLERS];
}

/* Code that a program writes, and processes of a label, are looked up each time. */
static size_t nr_callers(const struct callpath_pending *k)
{
	size_t inner = callpath_inner(&k->c), nr = k->c.nr > inner ? k->c.nr - inner : 0;

	return !k->p || k->p->dyn || k->p->label || nr < CALLERS_MIN || nr > CALLPATH_CALLERS_LEN
		       ? 0
		       : nr;
}

int64_t callpath_callers_find(const struct callpaths *t, const struct callpath_pending *k,
			      const uint64_t *addrs)
{
	const uint64_t *callers = addrs + callpath_inner(&k->c);
	size_t nr = nr_callers(k);
	const struct callpath_callers *e = nr ? slot_of(t, k, callers, nr) : NULL;

	if (!e || e->p != k->p || e->nr != nr || e->maps_version != k->p->maps_version ||
	    e->tree_version != t->tree_version || e->life != k->life || e->end != k->c.end ||
	    k->c.first_ns < e->since_ns || memcmp(e->addrs, callers, nr * sizeof(*callers)))
		return -1;
	return e->node;
}

/* Those that are in no image may be in one the next time, and code of programs changes. */
static bool are_certain(const struct callpath_frame *frames, const uint64_t *addrs, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		enum profdb_kind kind = frames[i].image->kind;

		if (addrs[i] & DRIVER_FRAME_FUNCTION ||
		    (kind != PROFDB_FILE && kind != PROFDB_VDSO && kind != PROFDB_KERNEL))
			return false;
	}
	return true;
}

void callpath_callers_keep(struct callpaths *t, const struct callpath_pending *k,
			   const uint64_t *addrs, int64_t node)
{
	size_t inner = callpath_inner(&k->c), nr = nr_callers(k);
	struct callpath_callers *e;

	if (!nr || !are_certain(t->frames + inner, addrs + inner, nr))
		return;
	e = slot_of(t, k, addrs + inner, nr);
	*e = (struct callpath_callers){ .p = k->p,
					.maps_version = k->p->maps_version,
					.tree_version = t->tree_version,
					.since_ns = k->c.first_ns,
					.life = k->life,
					.node = (uint32_t)node,
					.nr = (uint32_t)nr,
					.end = k->c.end };
	memcpy(e->addrs, addrs + inner, nr * sizeof(*addrs));
}
