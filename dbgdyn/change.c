/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A change of the registry, from its beginning to its commit, and the ring where the daemon reads
 * of it.
 */
#include <time.h>

#include "dbgdyn_internal.h"

/* ---- the ring -------------------------------------------------------------------------------- */

/* Bytes that the daemon has not fetched. A tail that makes no sense counts as a full ring. */
static uint64_t ring_used(const struct dbgdyn_state *s)
{
	uint64_t used = s->head - __atomic_load_n(&s->reg->tail, __ATOMIC_ACQUIRE);

	return used > s->ring_len ? s->ring_len : used;
}

void *dbgdyn_ring_reserve(struct dbgdyn_state *s, size_t len)
{
	uint64_t pos = s->head % s->ring_len, to_end = s->ring_len - pos;
	uint64_t pad = to_end < len ? to_end : 0;
	struct wire_head *h = (void *)(s->ring + pos);

	if (!len || len > s->ring_len || len + pad > s->ring_len - ring_used(s))
		return NULL;
	if (!pad)
		return h;
	*h = (struct wire_head){ .len = (uint32_t)pad, .type = WIRE_PAD };
	s->head += pad; /* seen by the daemon together with the record behind it */
	return s->ring;
}

/*
 * As the pad counts, a long record may not fit here even into an empty ring. The pad alone then
 * goes to the daemon: once it has read that, the record fits at the start.
 */
void dbgdyn_ring_turn(struct dbgdyn_state *s, size_t len)
{
	uint64_t pos = s->head % s->ring_len, to_end = s->ring_len - pos;
	struct wire_head *h = (void *)(s->ring + pos);

	if (len > s->ring_len || to_end >= len || to_end + len <= s->ring_len ||
	    to_end > s->ring_len - ring_used(s))
		return;
	*h = (struct wire_head){ .len = (uint32_t)to_end, .type = WIRE_PAD };
	s->head += to_end;
	s->published = s->head;
	__atomic_store_n(&s->reg->head, s->head, __ATOMIC_RELEASE);
}

bool dbgdyn_ring_commit(struct dbgdyn_state *s, size_t len)
{
	uint64_t half = s->ring_len / 2, used, grown;

	s->head += len;
	grown = s->head - s->published;
	s->published = s->head;
	__atomic_store_n(&s->reg->head, s->head, __ATOMIC_RELEASE);
	used = ring_used(s);
	return used >= half && (used < grown || used - grown < half);
}

/* ---- changes --------------------------------------------------------------------------------- */

/*
 * Whether records are wanted: a daemon with the descriptor can read a record after this process has
 * ended. Without one no record is needed, since the heap lists live code.
 */
static bool asked(struct dbgdyn_state *s)
{
	if (!dbgdyn_attached(s))
		return __atomic_load_n(&s->handed, __ATOMIC_RELAXED);
	if (__atomic_load_n(&s->handed, __ATOMIC_RELAXED))
		__atomic_store_n(&s->handed, 0, __ATOMIC_RELAXED);
	return true;
}

int dbgdyn_dropped(struct dbgdyn_state *s)
{
	__atomic_fetch_add(&s->reg->nr_dropped, 1, __ATOMIC_RELAXED);
	return DBGDYN_EFULL;
}

int dbgdyn_change_begin(struct dbgdyn_change *c, struct dbgdyn_state *s, uint32_t facility)
{
	*c = (struct dbgdyn_change){ .s = s, .facility = facility, .asked = asked(s) };
	if (!dbgdyn_lock(s))
		return dbgdyn_dropped(s);
	if (s->open[facility])
		return DBGDYN_OK;
	dbgdyn_unlock(s); /* ended meanwhile */
	return DBGDYN_EREFUSED;
}

/*
 * When a change happens tells a sample that has no generation which routine it is of. Some kernels
 * make the clock a system call, which not every facility may make.
 */
static uint64_t time_of(const struct dbgdyn_change *c)
{
	struct timespec now;

	if (!c->asked || c->s->quiet[c->facility] || clock_gettime(CLOCK_MONOTONIC, &now) < 0)
		return 0;
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Bytes of the ring before the record. */
static size_t when_len(const struct dbgdyn_change *c)
{
	return c->time_ns ? sizeof(struct wire_time) : 0;
}

void dbgdyn_change_number(struct dbgdyn_change *c)
{
	c->time_ns = time_of(c);
	c->seq = c->s->seq + 1;
	/* Its low half 0 would be the word of an address that nothing happened to. */
	if (!(uint32_t)c->seq)
		c->seq++;
	c->s->seq = c->seq;
}

void *dbgdyn_change_reserve(struct dbgdyn_change *c, size_t len)
{
	struct wire_time *when;

	if (!c->asked)
		return NULL;
	when = dbgdyn_ring_reserve(c->s, when_len(c) + len);
	if (!when || !c->time_ns)
		return when;
	*when = (struct wire_time){ .head = { .len = sizeof(*when), .type = WIRE_WHEN },
				    .time_ns = c->time_ns };
	return when + 1;
}

void dbgdyn_change_turn(struct dbgdyn_change *c, size_t len)
{
	dbgdyn_ring_turn(c->s, when_len(c) + len);
}

void dbgdyn_change_tell(struct dbgdyn_change *c, size_t len)
{
	c->announced = true;
	c->bell |= dbgdyn_ring_commit(c->s, when_len(c) + len);
}

/* Its routine's other ranges live without it. */
static void leave_siblings(struct dbgdyn_state *s, struct dbgdyn_node *n)
{
	uint32_t me = (uint32_t)(n - s->nodes) + 1, before = n->sibling;

	if (!before)
		return;
	while (s->nodes[before - 1].sibling != me)
		before = s->nodes[before - 1].sibling;
	s->nodes[before - 1].sibling = n->sibling == before ? 0 : n->sibling;
	n->sibling = 0;
}

void dbgdyn_change_close(struct dbgdyn_change *c, uint32_t chain)
{
	while (chain) {
		struct dbgdyn_node *n = &c->s->nodes[chain - 1];
		struct wire_head *h = dbgdyn_slot_begin(c->s, n);

		*h = (struct wire_head){ .len = sizeof(*h), .type = WIRE_PAD };
		dbgdyn_slot_end(c->s, n);
		dbgdyn_words_move(c->s, n->addr, n->code_len, c->seq);
		chain = n->next;
		leave_siblings(c->s, n);
		dbgdyn_heap_give(c->s, n);
	}
}

int dbgdyn_change_commit(struct dbgdyn_change *c)
{
	struct dbgdyn_state *s = c->s;
	bool bell = c->bell && !s->quiet[c->facility];

	__atomic_store_n(&s->reg->heap_end, s->heap_end, __ATOMIC_RELEASE);
	__atomic_store_n(&s->reg->nr_unlisted, s->nr_unlisted, __ATOMIC_RELAXED);
	__atomic_store_n(&s->reg->seq, s->seq, __ATOMIC_RELEASE);
	dbgdyn_inherited_announce(s->seq);
	dbgdyn_unlock(s);
	return bell;
}
