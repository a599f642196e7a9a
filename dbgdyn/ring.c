/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of records that the daemon fetches. */
#include "dbgdyn_internal.h"

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
