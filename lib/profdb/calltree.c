/* SPDX-License-Identifier: BSD-2-Clause */
/* The nodes of a calling-context tree are found by their caller and frame here, and counted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

static size_t slot_of(const struct profdb_calltree *t, const struct profdb_callnode *n)
{
	uint64_t key[2] = { (uint64_t)n->parent << 32 | n->image, n->off };
	size_t mask = t->nr_slots - 1, at = base_hash64_seeded(t->seed, key, sizeof(key)) & mask;

	for (; t->slots[at]; at = (at + 1) & mask) {
		const struct profdb_callnode *have = &t->nodes[t->slots[at] - 1];

		if (have->parent == n->parent && have->image == n->image && have->off == n->off)
			break;
	}
	return at;
}

/* At most half full, so that probes stay short. */
static int make_hash(struct profdb_calltree *t, size_t nr)
{
	size_t want = t->nr_slots ? t->nr_slots : 64;
	uint32_t *slots;

	while (want < 2 * nr)
		want *= 2;
	if (want == t->nr_slots)
		return 0;
	slots = calloc(want, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->nr_slots = want;
	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < t->nr; i++)
		t->slots[slot_of(t, &t->nodes[i])] = (uint32_t)i + 1;
	return 0;
}

static int grow(struct profdb_calltree *t, size_t nr)
{
	size_t words;
	int r;

	if (base_mul_overflow(nr, t->stride, &words))
		return -ENOMEM;
	r = base_grow(&t->nodes, &t->cap, nr, sizeof(*t->nodes));
	return r < 0 ? r : base_grow(&t->counts, &t->cap_counts, words, sizeof(*t->counts));
}

int profdb_calltree_init(struct profdb_calltree *t)
{
	/* Frames are chosen by programs: one that knew the hash could have all of them collide. */
	*t = (struct profdb_calltree){ .stride = 1, .seed = base_hash_seed() };
	if (grow(t, PROFDB_NR_CALLPATH_ENDS) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < PROFDB_NR_CALLPATH_ENDS; i++) {
		t->nodes[i] = (struct profdb_callnode){ .parent = i };
		t->counts[i] = 0;
	}
	t->nr = PROFDB_NR_CALLPATH_ENDS;
	return 0;
}

void profdb_calltree_release(struct profdb_calltree *t)
{
	free(t->nodes);
	free(t->counts);
	free(t->slots);
}

int profdb_calltree_widen(struct profdb_calltree *t, size_t nr_events)
{
	size_t stride = t->stride, old = t->stride, words;
	int r;

	while (stride < nr_events)
		stride *= 2;
	if (stride == old)
		return 0;
	if (base_mul_overflow(t->nr, stride, &words))
		return -ENOMEM;
	r = base_grow(&t->counts, &t->cap_counts, words, sizeof(*t->counts));
	if (r < 0)
		return r;
	/* From the last row down: rows move up, over rows that have moved already. */
	for (size_t i = t->nr; i-- > 0;) {
		memmove(t->counts + i * stride, t->counts + i * old, old * sizeof(*t->counts));
		memset(t->counts + i * stride + old, 0, (stride - old) * sizeof(*t->counts));
	}
	t->stride = stride;
	return 0;
}

int profdb_calltree_reserve(struct profdb_calltree *t, size_t more)
{
	int r;

	if (more > PROFDB_NR_CALLNODES - t->nr)
		return -DCPI_ELIMIT;
	r = grow(t, t->nr + more);
	return r < 0 ? r : make_hash(t, t->nr + more);
}

uint32_t profdb_calltree_node(struct profdb_calltree *t, const struct profdb_callnode *n)
{
	size_t at = slot_of(t, n);

	if (t->slots[at])
		return t->slots[at] - 1;
	t->nodes[t->nr] = *n;
	memset(profdb_calltree_counts(t, t->nr), 0, t->stride * sizeof(*t->counts));
	t->slots[at] = (uint32_t)++t->nr;
	return (uint32_t)t->nr - 1;
}

int profdb_calltree_append(struct profdb_calltree *t, const struct profdb_callnode *n,
			   const uint64_t *count, size_t nr_events)
{
	int r = t->nr >= PROFDB_NR_CALLNODES ? -DCPI_ELIMIT : grow(t, t->nr + 1);

	if (r < 0)
		return r;
	t->nodes[t->nr] = *n;
	memset(profdb_calltree_counts(t, t->nr), 0, t->stride * sizeof(*t->counts));
	memcpy(profdb_calltree_counts(t, t->nr), count, nr_events * sizeof(*count));
	t->nr++;
	return 0;
}
