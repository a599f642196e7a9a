/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

static void drop_hash(struct profdb_moves *m)
{
	free(m->slots);
	m->slots = NULL;
	m->nr_slots = 0;
}

void profdb_moves_release(struct profdb_moves *m)
{
	drop_hash(m);
	free(m->v);
	*m = (struct profdb_moves){ 0 };
}

void profdb_moves_clear(struct profdb_moves *m)
{
	drop_hash(m);
	*m = (struct profdb_moves){ .v = m->v, .cap = m->cap };
}

static int compare64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

int profdb_move_compare(const struct profdb_move *a, const struct profdb_move *b)
{
	int r = compare64(a->start, b->start);

	if (!r)
		r = compare64(a->from, b->from);
	return r ? r : compare64(a->to, b->to);
}

static uint64_t hash(const struct profdb_move *m)
{
	return base_hash_u64(base_hash_u64(base_hash_u64(m->start) ^ m->from) ^ m->to);
}

static bool is_same(const struct profdb_move *a, const struct profdb_move *b)
{
	return a->start == b->start && a->from == b->from && a->to == b->to;
}

/* Where @move is, or would be put. */
static size_t slot_of(const struct profdb_moves *m, const struct profdb_move *move)
{
	size_t mask = m->nr_slots - 1, at = hash(move) & mask;

	while (m->slots[at] && !is_same(&m->v[m->slots[at] - 1], move))
		at = (at + 1) & mask;
	return at;
}

/* At most half full, so that probes stay short. */
static int make_hash(struct profdb_moves *m, size_t nr)
{
	size_t want = 64;

	while (want < 2 * nr)
		want *= 2;
	if (m->slots && want <= m->nr_slots)
		return 0;
	drop_hash(m);
	m->slots = calloc(want, sizeof(*m->slots));
	if (!m->slots)
		return -ENOMEM;
	m->nr_slots = want;
	for (size_t i = 0; i < m->nr; i++)
		m->slots[slot_of(m, &m->v[i])] = (uint32_t)i + 1;
	return 0;
}

int profdb_moves_reserve(struct profdb_moves *m, size_t more)
{
	/* The bounds hold, however many come; one is for all that are beyond them. */
	size_t max = 2 * PROFDB_NR_MOVES + 1, nr = more < max - m->nr ? m->nr + more : max;
	int r = base_grow(&m->v, &m->cap, nr, sizeof(*m->v));

	return r < 0 ? r : more ? make_hash(m, nr) : 0;
}

static bool is_started(const struct profdb_move *move)
{
	return move->start != PROFDB_ANY_START;
}

static int append(struct profdb_moves *m, const struct profdb_move *move)
{
	int r = base_grow(&m->v, &m->cap, m->nr + 1, sizeof(*m->v));

	if (r < 0)
		return r;
	m->unsorted = m->unsorted || (m->nr && profdb_move_compare(&m->v[m->nr - 1], move) > 0);
	m->v[m->nr] =
		(struct profdb_move){ .start = move->start, .from = move->from, .to = move->to };
	m->nr_started += is_started(move);
	return (int)m->nr++;
}

/* What is known of it while there is no room to know all. */
static bool blur(const struct profdb_moves *m, struct profdb_move *move)
{
	bool all = move->from == PROFDB_OUTSIDE && move->to == PROFDB_OUTSIDE;

	if (is_started(move)) {
		if (m->nr_started < PROFDB_NR_MOVES)
			return false;
		move->start = PROFDB_ANY_START;
		return true;
	}
	if (all || m->nr - m->nr_started < PROFDB_NR_MOVES)
		return false;
	move->from = move->to = PROFDB_OUTSIDE;
	return true;
}

/* Index of what @move is counted in, made where missing; or -ENOMEM. */
static int find(struct profdb_moves *m, struct profdb_move *move)
{
	int last = m->nr ? profdb_move_compare(&m->v[m->nr - 1], move) : -1, r;
	size_t at;

	if (last == 0)
		return (int)m->nr - 1;
	/* Files come in order: no hash needed to append. */
	if (!m->slots && !m->unsorted && last < 0 && !blur(m, move))
		return append(m, move);
	r = make_hash(m, m->nr + 1);
	if (r < 0)
		return r;
	while (!m->slots[at = slot_of(m, move)] && blur(m, move))
		;
	if (m->slots[at])
		return (int)m->slots[at] - 1;
	r = append(m, move);
	if (r >= 0)
		m->slots[at] = (uint32_t)r + 1;
	return r;
}

int profdb_moves_add(struct profdb_moves *m, const struct profdb_move *move)
{
	struct profdb_move in = *move;
	uint64_t sum[2];
	int at;

	/* No count exceeds the sum, so the sum alone tells of an overflow. */
	if (base_add_overflow(m->sum[0], move->count[0], &sum[0]) ||
	    base_add_overflow(m->sum[1], move->count[1], &sum[1]))
		return -DCPI_EOVERFLOW;
	if (!move->count[0] && !move->count[1])
		return 0;
	at = find(m, &in);
	if (at < 0)
		return at;
	for (int half = 0; half < 2; half++) {
		m->v[at].count[half] += move->count[half];
		m->sum[half] = sum[half];
	}
	return 0;
}

static int by_place(const void *a, const void *b)
{
	return profdb_move_compare(a, b);
}

void profdb_moves_sort(struct profdb_moves *m)
{
	if (!m->unsorted)
		return;
	qsort(m->v, m->nr, sizeof(*m->v), by_place);
	m->unsorted = false;
	drop_hash(m);
}

/* ---- of a profile ---------------------------------------------------------------------------- */

int profdb_profile_move_add(struct profdb_profile *p, const struct profdb_move *m)
{
	return profdb_moves_add(&p->moves, m);
}

size_t profdb_profile_nr_moves(const struct profdb_profile *p)
{
	return p->moves.nr;
}

const struct profdb_move *profdb_profile_move(const struct profdb_profile *p, size_t index)
{
	/* The order is no part of what a profile says: sorting does not change a const one. */
	profdb_moves_sort((struct profdb_moves *)&p->moves);
	return index < p->moves.nr ? &p->moves.v[index] : NULL;
}
