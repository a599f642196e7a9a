/* SPDX-License-Identifier: BSD-2-Clause */
/* The moves of a profile: they are kept in memory here, and read from and written into their
 * section. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

static void drop_hash(struct profdb_edges *m)
{
	free(m->slots);
	m->slots = NULL;
	m->nr_slots = 0;
}

static int compare64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare(const struct profdb_edge *a, const struct profdb_edge *b)
{
	int r = compare64(a->start, b->start);

	if (!r)
		r = compare64(a->from, b->from);
	return r ? r : compare64(a->to, b->to);
}

static uint64_t hash(const struct profdb_edge *m)
{
	return base_hash_u64(base_hash_u64(base_hash_u64(m->start) ^ m->from) ^ m->to);
}

static bool is_same(const struct profdb_edge *a, const struct profdb_edge *b)
{
	return a->start == b->start && a->from == b->from && a->to == b->to;
}

/* Where @move is, or would be put. */
static size_t slot_of(const struct profdb_edges *m, const struct profdb_edge *edge_count)
{
	size_t mask = m->nr_slots - 1, at = hash(edge_count) & mask;

	while (m->slots[at] && !is_same(&m->v[m->slots[at] - 1], edge_count))
		at = (at + 1) & mask;
	return at;
}

/* At most half full, so that probes stay short. */
static int make_hash(struct profdb_edges *m, size_t nr)
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

static bool is_started(const struct profdb_edge *edge_count)
{
	return edge_count->start != PROFDB_ANY_START;
}

static int append(struct profdb_edges *m, const struct profdb_edge *edge_count)
{
	int r = base_grow(&m->v, &m->cap, m->nr + 1, sizeof(*m->v));

	if (r < 0)
		return r;
	m->unsorted = m->unsorted || (m->nr && compare(&m->v[m->nr - 1], edge_count) > 0);
	m->v[m->nr] = (struct profdb_edge){ .start = edge_count->start,
					    .from = edge_count->from,
					    .to = edge_count->to };
	m->nr_started += is_started(edge_count);
	return (int)m->nr++;
}

/* Keep less detail about an edge when the table is full. */
static bool blur(const struct profdb_edges *m, struct profdb_edge *edge_count)
{
	bool all = edge_count->from == PROFDB_OUTSIDE && edge_count->to == PROFDB_OUTSIDE;

	if (is_started(edge_count)) {
		if (m->nr_started < PROFDB_NR_EDGES)
			return false;
		edge_count->start = PROFDB_ANY_START;
		return true;
	}
	if (all || m->nr - m->nr_started < PROFDB_NR_EDGES)
		return false;
	edge_count->from = edge_count->to = PROFDB_OUTSIDE;
	return true;
}

/* Index of what @move is counted in, made where missing; or -ENOMEM. */
static int find(struct profdb_edges *m, struct profdb_edge *edge_count)
{
	int last = m->nr ? compare(&m->v[m->nr - 1], edge_count) : -1, r;
	size_t at;

	if (last == 0)
		return (int)m->nr - 1;
	/* Files come in order: no hash needed to append. */
	if (!m->slots && !m->unsorted && last < 0 && !blur(m, edge_count))
		return append(m, edge_count);
	r = make_hash(m, m->nr + 1);
	if (r < 0)
		return r;
	while (!m->slots[at = slot_of(m, edge_count)] && blur(m, edge_count))
		;
	if (m->slots[at])
		return (int)m->slots[at] - 1;
	r = append(m, edge_count);
	if (r >= 0)
		m->slots[at] = (uint32_t)r + 1;
	return r;
}

static int add(struct profdb_edges *m, const struct profdb_edge *edge_count)
{
	struct profdb_edge in = *edge_count;
	uint64_t sum[2];
	int at;

	/* No count exceeds the sum, so the sum alone tells of an overflow. */
	if (base_add_overflow(m->sum[0], edge_count->count[0], &sum[0]) ||
	    base_add_overflow(m->sum[1], edge_count->count[1], &sum[1]))
		return -DCPI_EOVERFLOW;
	if (!edge_count->count[0] && !edge_count->count[1])
		return 0;
	at = find(m, &in);
	if (at < 0)
		return at;
	for (int half = 0; half < 2; half++) {
		m->v[at].count[half] += edge_count->count[half];
		m->sum[half] = sum[half];
	}
	return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

/*
 * To compare whole moves is to read each a dozen times, and qsort of glibc sorts what is as large
 * as they are by pointers. What is sorted instead are their offsets, digit by digit from the
 * lowest.
 */
enum { DIGIT_BITS = 11, NR_DIGITS = 1 << DIGIT_BITS, FEW = 512 };

struct key {
	uint32_t word[3]; /* to, from, start */
	uint32_t at;
};

static int by_place(const void *a, const void *b)
{
	return compare(a, b);
}

static uint64_t offset_above(uint64_t off, uint64_t last)
{
	return off < PROFDB_ANY_START && off > last ? off : last;
}

/* The highest offset that is no mark. */
static uint64_t last_offset(const struct profdb_edges *m)
{
	uint64_t last = 0;

	for (size_t i = 0; i < m->nr; i++) {
		last = offset_above(m->v[i].start, last);
		last = offset_above(m->v[i].from, last);
		last = offset_above(m->v[i].to, last);
	}
	return last;
}

/* The two marks come right behind all offsets, so that there are few digits. */
static uint32_t word_of(uint64_t off, uint32_t last)
{
	return off < PROFDB_ANY_START ? (uint32_t)off : last + 1 + (off == PROFDB_OUTSIDE);
}

/* Keys with the same digit keep their order. False: all have the same digit. */
static bool sort_digit(const struct key *from, struct key *to, size_t nr, int word,
		       unsigned int shift)
{
	uint32_t ends[NR_DIGITS] = { 0 }, end = (uint32_t)nr;

	for (size_t i = 0; i < nr; i++)
		ends[from[i].word[word] >> shift & (NR_DIGITS - 1)]++;
	if (ends[from[0].word[word] >> shift & (NR_DIGITS - 1)] == nr)
		return false;
	for (size_t d = NR_DIGITS; d-- > 0;) {
		uint32_t here = ends[d];

		ends[d] = end;
		end -= here;
	}
	for (size_t i = nr; i-- > 0;)
		to[--ends[from[i].word[word] >> shift & (NR_DIGITS - 1)]] = from[i];
	return true;
}

/* The sorted ones are in one of the two. */
static const struct key *sort_keys(struct key *keys, struct key *other, size_t nr, uint32_t last)
{
	for (int word = 0; word < 3; word++)
		for (unsigned int shift = 0; shift < 32 && (last + 2) >> shift;
		     shift += DIGIT_BITS) {
			struct key *swap = other;

			if (!sort_digit(keys, other, nr, word, shift))
				continue;
			other = keys;
			keys = swap;
		}
	return keys;
}

/* False: there is no memory for it, or an offset is too high. */
static bool sort_by_digits(struct profdb_edges *m)
{
	uint64_t last = last_offset(m);
	struct key *keys = last + 2 <= UINT32_MAX ? malloc(2 * m->nr * sizeof(*keys)) : NULL;
	struct profdb_edge *v = keys ? malloc(m->cap * sizeof(*v)) : NULL; /* room stays */
	const struct key *sorted;

	if (!v) {
		free(keys);
		return false;
	}
	for (size_t i = 0; i < m->nr; i++)
		keys[i] = (struct key){ { word_of(m->v[i].to, (uint32_t)last),
					  word_of(m->v[i].from, (uint32_t)last),
					  word_of(m->v[i].start, (uint32_t)last) },
					(uint32_t)i };
	sorted = sort_keys(keys, keys + m->nr, m->nr, (uint32_t)last);
	for (size_t i = 0; i < m->nr; i++)
		v[i] = m->v[sorted[i].at];
	free(keys);
	free(m->v);
	m->v = v;
	return true;
}

static void sort(struct profdb_edges *m)
{
	if (!m->unsorted)
		return;
	if (m->nr < FEW || !sort_by_digits(m))
		qsort(m->v, m->nr, sizeof(*m->v), by_place);
	m->unsorted = false;
	drop_hash(m);
}

/* The order is no part of what a profile says: sorting does not change a const one. */
static void sort_const(const struct profdb_edges *m)
{
	sort((struct profdb_edges *)m);
}

/* ---- merging --------------------------------------------------------------------------------- */

/* Together they are within the bounds: none has to be blurred. */
static bool fit(const struct profdb_edges *a, const struct profdb_edges *b)
{
	return a->nr_started + b->nr_started <= PROFDB_NR_EDGES &&
	       a->nr - a->nr_started + b->nr - b->nr_started <= PROFDB_NR_EDGES;
}

static int reserve(struct profdb_edges *m, const struct profdb_edges *from)
{
	/* The bounds hold, however many come; one is for all that are beyond them. */
	size_t max = 2 * PROFDB_NR_EDGES + 1, nr = m->nr + from->nr < max ? m->nr + from->nr : max;
	int r = base_grow(&m->v, &m->cap, nr, sizeof(*m->v));

	return r < 0 || fit(m, from) ? r : make_hash(m, nr);
}

/* From the last on, so that there is room; those of both leave a gap. */
static void merge_sorted(struct profdb_edges *to, const struct profdb_edges *from)
{
	size_t i = to->nr, j = from->nr, end = to->nr + from->nr, at = end;

	while (j) {
		const struct profdb_edge *more = &from->v[j - 1];
		int r = i ? compare(&to->v[i - 1], more) : -1;

		if (r > 0) {
			to->v[--at] = to->v[--i];
			continue;
		}
		to->v[--at] = *more;
		for (int half = 0; !r && half < 2; half++)
			to->v[at].count[half] += to->v[i - 1].count[half];
		to->nr_started += r && is_started(more);
		i -= !r;
		j--;
	}
	memmove(to->v + i, to->v + at, (end - at) * sizeof(*to->v));
	to->nr = i + end - at;
	for (int half = 0; half < 2; half++)
		to->sum[half] += from->sum[half];
}

/* With room for them, and sums that do not overflow. */
static void merge(struct profdb_edges *to, const struct profdb_edges *from)
{
	if (!from->nr)
		return;
	if (!fit(to, from)) {
		for (size_t i = 0; i < from->nr; i++)
			add(to, &from->v[i]);
		return;
	}
	sort(to);
	sort_const(from);
	drop_hash(to);
	merge_sorted(to, from);
}

/* ---- of a profile ---------------------------------------------------------------------------- */

int profdb_profile_edge_add(struct profdb_profile *p, const struct profdb_edge *m)
{
	return add(&p->edge_counts, m);
}

void profdb_profile_edges_fetch(const struct profdb_profile *p, const struct profdb_edge *m,
				size_t nr)
{
	const struct profdb_edges *of = &p->edge_counts;
	size_t mask = of->nr_slots - 1;

	for (size_t i = 0; of->slots && i < nr; i++)
		base_prefetch(&of->slots[hash(&m[i]) & mask]);
	for (size_t i = 0; of->slots && i < nr; i++) {
		uint32_t at = of->slots[hash(&m[i]) & mask];

		if (at)
			base_prefetch(&of->v[at - 1]);
	}
}

size_t profdb_profile_nr_edges(const struct profdb_profile *p)
{
	return p->edge_counts.nr;
}

const struct profdb_edge *profdb_profile_edge(const struct profdb_profile *p, size_t index)
{
	sort_const(&p->edge_counts);
	return index < p->edge_counts.nr ? &p->edge_counts.v[index] : NULL;
}

/* ---- the section of a file ------------------------------------------------------------------- */

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

static int take_edge(struct profdb_edges *m, const struct profdb_payload *s, size_t *pos,
		     struct profdb_edge *edge_count)
{
	const struct profdb_edge *last = m->nr ? &m->v[m->nr - 1] : NULL;
	size_t nr = m->nr;
	int r = get_step(s, pos, edge_count->from, &edge_count->from);

	if (r >= 0)
		r = get_step(s, pos, edge_count->from, &edge_count->to);
	for (int half = 0; r >= 0 && half < 2; half++)
		r = profdb_varint_get(s, pos, &edge_count->count[half]);
	if (r < 0)
		return r;
	if ((!edge_count->count[0] && !edge_count->count[1]) ||
	    (last && compare(last, edge_count) >= 0))
		return -DCPI_EFORMAT;
	r = add(m, edge_count);
	/* More than a profile may have would have been added up. */
	return r == -DCPI_EOVERFLOW || (r >= 0 && m->nr == nr) ? -DCPI_EFORMAT : r;
}

static int take_start(struct profdb_edges *m, const struct profdb_payload *s, size_t *pos,
		      uint64_t *start)
{
	struct profdb_edge edge_count;
	uint64_t before = *start, nr;
	int r = get_step(s, pos, before, start);

	if (r >= 0)
		r = profdb_varint_get(s, pos, &nr);
	if (r < 0 || !nr || (m->nr && *start <= before))
		return -DCPI_EFORMAT;
	edge_count = (struct profdb_edge){ .start = *start, .from = *start };
	for (; r >= 0 && nr; nr--)
		r = take_edge(m, s, pos, &edge_count);
	return r;
}

static int moves_parse(struct profdb_profile *p, const struct profdb_payload *s)
{
	uint64_t start = 0;
	size_t pos = 0;
	int r = 0;

	while (r >= 0 && pos < s->len)
		r = take_start(&p->edge_counts, s, &pos, &start);
	return r < 0 ? r : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static size_t nr_of_start(const struct profdb_edges *m, size_t i)
{
	size_t first = i;

	while (i < m->nr && m->v[i].start == m->v[first].start)
		i++;
	return i - first;
}

static size_t put_edge(uint8_t *to, const struct profdb_edge *edge_count, uint64_t before)
{
	size_t n = profdb_varint_put(to, step(before, edge_count->from));

	n += profdb_varint_put(to + n, step(edge_count->from, edge_count->to));
	n += profdb_varint_put(to + n, edge_count->count[0]);
	return n + profdb_varint_put(to + n, edge_count->count[1]);
}

/* There may be hundreds of thousands: room is made once for all of them, and what is left of it
 * taken back. */
static int put_start(struct base_buf *out, const struct profdb_edge *edge_count, size_t nr,
		     uint64_t before)
{
	size_t n, at = out->len;
	uint8_t *to;
	void *space;
	int r = base_buf_extend(out, (2 + 4 * nr) * PROFDB_VARINT_MAX, &space);

	if (r < 0)
		return r;
	to = space;
	n = profdb_varint_put(to, step(before, edge_count->start));
	n += profdb_varint_put(to + n, nr);
	before = edge_count->start;
	for (size_t i = 0; i < nr; i++) {
		n += put_edge(to + n, &edge_count[i], before);
		before = edge_count[i].from;
	}
	out->len = at + n;
	return 0;
}

static int moves_print(const struct profdb_profile *p, struct base_buf *out)
{
	const struct profdb_edges *m = &p->edge_counts;
	uint64_t before = 0;
	size_t nr;
	int r = 0;

	sort_const(m);
	for (size_t i = 0; r >= 0 && i < m->nr; i += nr) {
		nr = nr_of_start(m, i);
		r = put_start(out, &m->v[i], nr, before);
		before = m->v[i].start;
	}
	return r;
}

/* ---- as a detail of profiles ----------------------------------------------------------------- */

static void moves_release(struct profdb_profile *p)
{
	drop_hash(&p->edge_counts);
	free(p->edge_counts.v);
	p->edge_counts = (struct profdb_edges){ 0 };
}

static void moves_clear(struct profdb_profile *p)
{
	struct profdb_edges *m = &p->edge_counts;

	drop_hash(m);
	*m = (struct profdb_edges){ .v = m->v, .cap = m->cap };
}

static int moves_reserve(struct profdb_profile *to, const struct profdb_profile *from)
{
	return reserve(&to->edge_counts, &from->edge_counts);
}

static void moves_merge(struct profdb_profile *to, const struct profdb_profile *from,
			const size_t *event)
{
	(void)event;
	merge(&to->edge_counts, &from->edge_counts);
}

const struct profdb_detail profdb_detail_moves = {
	.tag = "move",
	.what = "moves",
	.nr = profdb_profile_nr_edges,
	.release = moves_release,
	.clear = moves_clear,
	.reserve = moves_reserve,
	.merge = moves_merge,
	.parse = moves_parse,
	.print = moves_print,
};
