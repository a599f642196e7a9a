/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots of the registry, one for each routine that lives, and the handles that name them. */
#include "dbgdyn_internal.h"

/*
 * A handle: the low bits of the registration's number, under a mask of this registry's (a fork's
 * child numbers its own alike, and may still have its parent's), and the node's index + 1 (0: not
 * listed).
 */
#define HANDLE_NODE_BITS 23
#define HANDLE_NODE_MASK ((1ull << HANDLE_NODE_BITS) - 1)
static_assert(DBGDYN_HEAP_LEN / (2 * WIRE_SLOT_ALIGN) <= HANDLE_NODE_MASK, "nodes have handles");

/* Sizes up to this many units have lists of their own, larger ones by powers of two. */
#define EXACT 64u

static uint32_t class_of(size_t nr_units, uint32_t *rounded)
{
	uint32_t class = EXACT, units = EXACT;

	if (nr_units <= EXACT) {
		*rounded = (uint32_t)nr_units;
		return (uint32_t)nr_units - 1;
	}
	for (; units < nr_units; class ++)
		units *= 2;
	*rounded = units;
	return class - 1;
}

static struct dbgdyn_node *pop(struct dbgdyn_state *s, uint32_t class)
{
	struct dbgdyn_node *n = NULL;

	if (s->free[class]) {
		n = &s->nodes[s->free[class] - 1];
		s->free[class] = n->next;
	}
	return n;
}

/* A slot that was never used. */
static struct dbgdyn_node *carve(struct dbgdyn_state *s, uint32_t nr_units)
{
	uint64_t len = (uint64_t)nr_units * WIRE_SLOT_ALIGN;
	struct dbgdyn_node *n;

	if (s->nodes_end == s->nr_nodes || len > s->heap_len - s->heap_end)
		return NULL;
	n = &s->nodes[s->nodes_end++];
	n->unit = (uint32_t)(s->heap_end / WIRE_SLOT_ALIGN);
	n->nr_units = nr_units;
	s->heap_end += len;
	return n;
}

struct dbgdyn_node *dbgdyn_heap_take(struct dbgdyn_state *s, size_t len)
{
	size_t nr_units = (sizeof(struct wire_slot) + len + WIRE_SLOT_ALIGN - 1) / WIRE_SLOT_ALIGN;
	struct dbgdyn_node *n;
	uint32_t rounded, class;

	if (len > s->heap_len)
		return NULL;
	class = class_of(nr_units, &rounded);
	n = pop(s, class);
	if (!n)
		n = carve(s, rounded);
	if (!n && rounded > nr_units)
		n = carve(s, (uint32_t)nr_units);
	while (!n && ++class < DBGDYN_NR_CLASSES)
		n = pop(s, class);
	return n;
}

void dbgdyn_heap_give(struct dbgdyn_state *s, struct dbgdyn_node *n)
{
	uint32_t rounded, class = class_of(n->nr_units, &rounded);

	/* A shorter piece from the heap's last bytes belongs to the class below. */
	class -= rounded > n->nr_units;
	n->seq = 0;
	n->next = s->free[class];
	s->free[class] = (uint32_t)(n - s->nodes) + 1;
}

static struct wire_slot *slot_of(const struct dbgdyn_state *s, const struct dbgdyn_node *n)
{
	return (void *)(s->heap + (size_t)n->unit * WIRE_SLOT_ALIGN);
}

/* A slot may change more than once in a call, so it counts its changes itself. */
void *dbgdyn_slot_begin(struct dbgdyn_state *s, struct dbgdyn_node *n)
{
	struct wire_slot *slot = slot_of(s, n);

	slot->len = n->nr_units * WIRE_SLOT_ALIGN;
	__atomic_store_n(&slot->version, ++n->version, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return slot + 1;
}

void dbgdyn_slot_end(struct dbgdyn_state *s, struct dbgdyn_node *n)
{
	__atomic_store_n(&slot_of(s, n)->version, ++n->version, __ATOMIC_RELEASE);
}

/* No number reaches the highest bit, so no handle is 0. */
static uint64_t handle_mask(const struct dbgdyn_state *s)
{
	return s->generation << HANDLE_NODE_BITS | 1ull << 63;
}

uint64_t dbgdyn_handle_make(const struct dbgdyn_state *s, const struct dbgdyn_node *n, uint64_t seq)
{
	uint64_t index = n ? (uint64_t)(n - s->nodes) + 1 : 0;

	return (seq << HANDLE_NODE_BITS | index) ^ handle_mask(s);
}

struct dbgdyn_node *dbgdyn_handle_find(struct dbgdyn_state *s, uint32_t facility, uint64_t handle,
				       int *result)
{
	uint64_t plain = handle ^ handle_mask(s), index = plain & HANDLE_NODE_MASK;
	struct dbgdyn_node *n;

	*result = DBGDYN_EINVAL;
	if (!handle || index > s->nodes_end || plain >> HANDLE_NODE_BITS > s->seq)
		return NULL;
	if (!index) {
		*result = DBGDYN_EFULL;
		return NULL;
	}
	n = &s->nodes[index - 1];
	if (!n->seq || n->born << HANDLE_NODE_BITS != (plain & ~HANDLE_NODE_MASK) ||
	    n->facility != facility)
		return NULL;
	*result = DBGDYN_OK;
	return n;
}
