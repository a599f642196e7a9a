/* SPDX-License-Identifier: BSD-2-Clause */
#include "profdb_internal.h"

/*
 * Moves of one start stand together: how far it lies from the one before, how many they are, then
 * each by how far its `from` lies from that of the one before (at first from the start), its `to`
 * from its `from`, and its two counts. Steps are taken modulo 2^64, so that PROFDB_OUTSIDE is near.
 * docs/format/dcpiformat.md
 */

/* Small for small steps either way; every step has one form. */
static uint64_t step(uint64_t from, uint64_t to)
{
	uint64_t d = to - from;

	return d << 1 ^ (d >> 63 ? UINT64_MAX : 0);
}

static uint64_t unstep(uint64_t from, uint64_t z)
{
	return from + (z >> 1 ^ (z & 1 ? UINT64_MAX : 0));
}

/* ---- reading --------------------------------------------------------------------------------- */

static int get_step(const struct profdb_payload *s, size_t *pos, uint64_t from, uint64_t *to)
{
	uint64_t z = 0;
	int r = profdb_varint_get(s, pos, &z);

	*to = unstep(from, z);
	return r;
}

static int take_move(struct profdb_moves *m, const struct profdb_payload *s, size_t *pos,
		     struct profdb_move *move)
{
	const struct profdb_move *last = m->nr ? &m->v[m->nr - 1] : NULL;
	size_t nr = m->nr;
	int r = get_step(s, pos, move->from, &move->from);

	if (r >= 0)
		r = get_step(s, pos, move->from, &move->to);
	for (int half = 0; r >= 0 && half < 2; half++)
		r = profdb_varint_get(s, pos, &move->count[half]);
	if (r < 0)
		return r;
	if ((!move->count[0] && !move->count[1]) || (last && profdb_move_compare(last, move) >= 0))
		return -DCPI_EFORMAT;
	r = profdb_moves_add(m, move);
	/* More than a profile may have would have been added up. */
	return r == -DCPI_EOVERFLOW || (r >= 0 && m->nr == nr) ? -DCPI_EFORMAT : r;
}

static int take_start(struct profdb_moves *m, const struct profdb_payload *s, size_t *pos,
		      uint64_t *start)
{
	struct profdb_move move;
	uint64_t before = *start, nr;
	int r = get_step(s, pos, before, start);

	if (r >= 0)
		r = profdb_varint_get(s, pos, &nr);
	if (r < 0 || !nr || (m->nr && *start <= before))
		return -DCPI_EFORMAT;
	move = (struct profdb_move){ .start = *start, .from = *start };
	for (; r >= 0 && nr; nr--)
		r = take_move(m, s, pos, &move);
	return r;
}

int profdb_moves_parse(struct profdb_moves *m, const struct profdb_payload *s)
{
	uint64_t start = 0;
	size_t pos = 0;
	int r = 0;

	while (r >= 0 && pos < s->len)
		r = take_start(m, s, &pos, &start);
	return r < 0 ? r : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static size_t nr_of_start(const struct profdb_moves *m, size_t i)
{
	size_t first = i;

	while (i < m->nr && m->v[i].start == m->v[first].start)
		i++;
	return i - first;
}

static size_t put_move(uint8_t *to, const struct profdb_move *move, uint64_t before)
{
	size_t n = profdb_varint_put(to, step(before, move->from));

	n += profdb_varint_put(to + n, step(move->from, move->to));
	n += profdb_varint_put(to + n, move->count[0]);
	return n + profdb_varint_put(to + n, move->count[1]);
}

/* There may be hundreds of thousands: room is made once for all of them, and what is left of it
 * taken back. */
static int put_start(struct base_buf *out, const struct profdb_move *move, size_t nr,
		     uint64_t before)
{
	size_t n, at = out->len;
	uint8_t *to;
	void *room;
	int r = base_buf_extend(out, (2 + 4 * nr) * PROFDB_VARINT_MAX, &room);

	if (r < 0)
		return r;
	to = room;
	n = profdb_varint_put(to, step(before, move->start));
	n += profdb_varint_put(to + n, nr);
	before = move->start;
	for (size_t i = 0; i < nr; i++) {
		n += put_move(to + n, &move[i], before);
		before = move[i].from;
	}
	out->len = at + n;
	return 0;
}

int profdb_moves_print(struct profdb_moves *m, struct base_buf *out)
{
	uint64_t before = 0;
	size_t nr;
	int r = 0;

	profdb_moves_sort(m);
	for (size_t i = 0; r >= 0 && i < m->nr; i += nr) {
		nr = nr_of_start(m, i);
		r = put_start(out, &m->v[i], nr, before);
		before = m->v[i].start;
	}
	return r;
}
