/* SPDX-License-Identifier: BSD-2-Clause */
/* The instruction samples of a profile: they are kept in memory here, and read from and written
 * into their section. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

static void drop_hash(struct profdb_insns *t)
{
	free(t->slots);
	t->slots = NULL;
	t->nr_slots = 0;
}

static int compare64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare(const struct profdb_insn *a, const struct profdb_insn *b)
{
	int r = compare64(a->off, b->off);

	if (!r)
		r = compare64(a->event, b->event);
	if (!r)
		r = compare64(a->known, b->known);
	return r ? r : compare64(a->bits, b->bits);
}

static int by_place(const void *a, const void *b)
{
	return compare(a, b);
}

static uint64_t hash(const struct profdb_insn *m)
{
	return base_hash_u64(base_hash_u64(base_hash_u64(m->off) ^ m->known) ^ m->bits) ^ m->event;
}

/* Where @m is, or would be put. */
static size_t slot_of(const struct profdb_insns *t, const struct profdb_insn *m)
{
	size_t mask = t->nr_slots - 1, at = hash(m) & mask;

	while (t->slots[at] && compare(&t->v[t->slots[at] - 1], m) != 0)
		at = (at + 1) & mask;
	return at;
}

/* At most half full, so that probes stay short. */
static int make_hash(struct profdb_insns *t, size_t nr)
{
	size_t want = 64;

	while (want < 2 * nr)
		want *= 2;
	if (t->slots && want <= t->nr_slots)
		return 0;
	drop_hash(t);
	t->slots = calloc(want, sizeof(*t->slots));
	if (!t->slots)
		return -ENOMEM;
	t->nr_slots = want;
	for (size_t i = 0; i < t->nr; i++)
		t->slots[slot_of(t, &t->v[i])] = (uint32_t)i + 1;
	return 0;
}

static int append(struct profdb_insns *t, const struct profdb_insn *m)
{
	int r = base_grow(&t->v, &t->cap, t->nr + 1, sizeof(*t->v));

	if (r < 0)
		return r;
	t->unsorted = t->unsorted || (t->nr && compare(&t->v[t->nr - 1], m) > 0);
	t->v[t->nr] = (struct profdb_insn){
		.off = m->off, .event = m->event, .known = m->known, .bits = m->bits
	};
	t->nr_placed += m->off != PROFDB_OUTSIDE;
	return (int)t->nr++;
}

/* Without room only that there were so many samples is kept. */
static bool blur(const struct profdb_insns *t, struct profdb_insn *m)
{
	if (m->off == PROFDB_OUTSIDE || t->nr_placed < PROFDB_NR_INSNS)
		return false;
	*m = (struct profdb_insn){ .off = PROFDB_OUTSIDE, .event = m->event, .count = m->count };
	return true;
}

/* Index of what @m is counted in, made where missing; or -ENOMEM. */
static int find(struct profdb_insns *t, struct profdb_insn *m)
{
	int last = t->nr ? compare(&t->v[t->nr - 1], m) : -1, r;
	size_t at;

	if (last == 0)
		return (int)t->nr - 1;
	/* Files come in order: no hash needed to append. */
	if (!t->slots && !t->unsorted && last < 0 && !blur(t, m))
		return append(t, m);
	r = make_hash(t, t->nr + 1);
	if (r < 0)
		return r;
	while (!t->slots[at = slot_of(t, m)] && blur(t, m))
		;
	if (t->slots[at])
		return (int)t->slots[at] - 1;
	r = append(t, m);
	if (r >= 0)
		t->slots[at] = (uint32_t)r + 1;
	return r;
}

/* No sum of a profile's is above 64 bits, so the counts are not either; counters may be. */
static int add(struct profdb_insns *t, const struct profdb_insn *m)
{
	struct profdb_insn in = *m, *to;
	int at = find(t, &in);

	if (at < 0)
		return at;
	to = &t->v[at];
	if (base_add_overflow(to->count, in.count, &to->count))
		to->count = UINT64_MAX;
	for (int i = 0; i < ISAMPLE_NR_COUNTERS; i++)
		if (base_add_overflow(to->sum[i], in.sum[i], &to->sum[i]))
			to->sum[i] = UINT64_MAX;
	return 0;
}

static void sort(struct profdb_insns *t)
{
	if (!t->unsorted)
		return;
	qsort(t->v, t->nr, sizeof(*t->v), by_place);
	t->unsorted = false;
	drop_hash(t);
}

/* The order is no part of what a profile says: sorting does not change a const one. */
static void sort_const(const struct profdb_insns *t)
{
	sort((struct profdb_insns *)t);
}

/* ---- of a profile ---------------------------------------------------------------------------- */

static bool is_insn(const struct profdb_profile *p, const struct profdb_insn *m)
{
	bool placed = m->off != PROFDB_OUTSIDE;

	return m->event < p->nr_events && !(m->bits & ~m->known) && placed == (m->known != 0) &&
	       !(m->known & ~(ISAMPLE_ALL_BITS | ISAMPLE_ALL_COUNTERS));
}

int profdb_profile_insn_add(struct profdb_profile *p, const struct profdb_insn *m)
{
	if (!is_insn(p, m))
		return -EINVAL;
	return m->count ? add(&p->insns, m) : 0;
}

int profdb_profile_insns_reserve(struct profdb_profile *p, size_t more)
{
	size_t nr = p->insns.nr + more, max = PROFDB_NR_INSNS + PROFDB_NR_EVENTS;
	int r;

	nr = nr < max ? nr : max;
	r = more ? base_grow(&p->insns.v, &p->insns.cap, nr, sizeof(*p->insns.v)) : 0;
	return r < 0 || !more ? r : make_hash(&p->insns, nr);
}

size_t profdb_profile_nr_insns(const struct profdb_profile *p)
{
	return p->insns.nr;
}

const struct profdb_insn *profdb_profile_insn(const struct profdb_profile *p, size_t index)
{
	sort_const(&p->insns);
	return index < p->insns.nr ? &p->insns.v[index] : NULL;
}

/* ---- the section of a file ------------------------------------------------------------------- */

/*
 * Words of what is known have few values, which stand first. Samples follow, ascending: how far its
 * offset lies from the one before, event, number of what is known, the bits among these, count,
 * counters. docs/format/dcpiformat.md
 */

enum { NR_MASKS = PROFDB_NR_INSNS + 1 };

/* The bits at the places of @known alone, side by side, and back. */
static uint64_t squeeze(uint64_t bits, uint64_t known)
{
	uint64_t out = 0;

	for (int at = 0; known; known &= known - 1, at++)
		out |= (bits >> __builtin_ctzll(known) & 1) << at;
	return out;
}

static uint64_t spread(uint64_t packed, uint64_t known)
{
	uint64_t out = 0;

	for (; known; known &= known - 1, packed >>= 1)
		out |= (packed & 1) << __builtin_ctzll(known);
	return out;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct masks {
	uint64_t *v;
	size_t nr, cap;
};

static int take_masks(struct masks *m, const struct profdb_payload *s, size_t *pos)
{
	uint64_t nr, mask;
	int r = profdb_varint_get(s, pos, &nr);

	if (r < 0 || nr > NR_MASKS)
		return -DCPI_EFORMAT;
	for (; nr; nr--) {
		r = profdb_varint_get(s, pos, &mask);
		if (r < 0 || (m->nr && m->v[m->nr - 1] >= mask))
			return -DCPI_EFORMAT;
		r = base_grow(&m->v, &m->cap, m->nr + 1, sizeof(*m->v));
		if (r < 0)
			return r;
		m->v[m->nr++] = mask;
	}
	return 0;
}

static int get_insn(const struct masks *masks, const struct profdb_payload *s, size_t *pos,
		    struct profdb_insn *m)
{
	uint64_t gap, event = 0, mask = 0, packed = 0;
	uint64_t *const fields[] = { &event, &mask, &packed, &m->count };
	int r = profdb_varint_get(s, pos, &gap);

	for (size_t i = 0; r >= 0 && i < sizeof(fields) / sizeof(*fields); i++)
		r = profdb_varint_get(s, pos, fields[i]);
	if (r < 0 || event >= PROFDB_NR_EVENTS || mask >= masks->nr || !m->count ||
	    base_add_overflow(m->off, gap, &m->off))
		return -DCPI_EFORMAT;
	m->event = (uint32_t)event;
	m->known = masks->v[mask];
	m->bits = spread(packed, m->known & ISAMPLE_ALL_BITS);
	if (squeeze(m->bits, m->known & ISAMPLE_ALL_BITS) != packed)
		return -DCPI_EFORMAT;
	for (int i = 0; r >= 0 && i < ISAMPLE_NR_COUNTERS; i++) {
		m->sum[i] = 0;
		if (m->known & ISAMPLE_HAS(i))
			r = profdb_varint_get(s, pos, &m->sum[i]);
	}
	return r;
}

static int take_insns(struct profdb_profile *p, const struct masks *masks,
		      const struct profdb_payload *s, size_t pos)
{
	struct profdb_insn m = { 0 }, before;
	uint64_t sum[PROFDB_NR_EVENTS] = { 0 };
	int r = 0;

	while (r >= 0 && pos < s->len) {
		before = m;
		r = get_insn(masks, s, &pos, &m);
		if (r >= 0 && m.known & ~(ISAMPLE_ALL_BITS | ISAMPLE_ALL_COUNTERS))
			return -DCPI_EVERSION;
		/* More than a profile may have would have been added up. */
		if (r >= 0 && (!is_insn(p, &m) || (p->insns.nr && compare(&before, &m) >= 0) ||
			       (m.off != PROFDB_OUTSIDE && p->insns.nr_placed == PROFDB_NR_INSNS)))
			return -DCPI_EFORMAT;
		if (r >= 0 && (base_add_overflow(sum[m.event], m.count, &sum[m.event]) ||
			       sum[m.event] > p->events[m.event].sum))
			return -DCPI_EFORMAT;
		if (r >= 0)
			r = add(&p->insns, &m);
	}
	return r;
}

static int insns_parse(struct profdb_profile *p, const struct profdb_payload *s)
{
	struct masks masks = { 0 };
	size_t pos = 0;
	int r = take_masks(&masks, s, &pos);

	if (r >= 0)
		r = take_insns(p, &masks, s, pos);
	free(masks.v);
	return r < 0 ? r : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	return compare64(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Each once, ascending. */
static int list_masks(const struct profdb_insns *t, struct masks *m)
{
	size_t nr = 0;

	m->v = calloc(t->nr, sizeof(*m->v));
	if (!m->v)
		return -ENOMEM;
	for (size_t i = 0; i < t->nr; i++)
		m->v[i] = t->v[i].known;
	qsort(m->v, t->nr, sizeof(*m->v), by_number);
	for (size_t i = 0; i < t->nr; i++)
		if (!nr || m->v[nr - 1] != m->v[i])
			m->v[nr++] = m->v[i];
	m->nr = nr;
	return 0;
}

static uint64_t number_of(const struct masks *m, uint64_t mask)
{
	const uint64_t *at = bsearch(&mask, m->v, m->nr, sizeof(*m->v), by_number);

	return (uint64_t)(at - m->v);
}

static int put_insn(struct base_buf *out, const struct masks *masks, const struct profdb_insn *m,
		    uint64_t before)
{
	uint8_t bytes[(5 + ISAMPLE_NR_COUNTERS) * PROFDB_VARINT_MAX];
	size_t n = profdb_varint_put(bytes, m->off - before);

	n += profdb_varint_put(bytes + n, m->event);
	n += profdb_varint_put(bytes + n, number_of(masks, m->known));
	n += profdb_varint_put(bytes + n, squeeze(m->bits, m->known & ISAMPLE_ALL_BITS));
	n += profdb_varint_put(bytes + n, m->count);
	for (int i = 0; i < ISAMPLE_NR_COUNTERS; i++)
		if (m->known & ISAMPLE_HAS(i))
			n += profdb_varint_put(bytes + n, m->sum[i]);
	return base_buf_append(out, bytes, n);
}

static int insns_print(const struct profdb_profile *p, struct base_buf *out)
{
	const struct profdb_insns *t = &p->insns;
	struct masks masks = { 0 };
	uint64_t before = 0;
	int r;

	sort_const(t);
	r = list_masks(t, &masks);
	if (r >= 0)
		r = base_buf_append_leb128(out, masks.nr);
	for (size_t i = 0; r >= 0 && i < masks.nr; i++)
		r = base_buf_append_leb128(out, masks.v[i]);
	for (size_t i = 0; r >= 0 && i < t->nr; i++) {
		r = put_insn(out, &masks, &t->v[i], before);
		before = t->v[i].off;
	}
	free(masks.v);
	return r;
}

/* ---- as a detail of profiles ----------------------------------------------------------------- */

static void insns_release(struct profdb_profile *p)
{
	drop_hash(&p->insns);
	free(p->insns.v);
	p->insns = (struct profdb_insns){ 0 };
}

static void insns_clear(struct profdb_profile *p)
{
	struct profdb_insns *t = &p->insns;

	drop_hash(t);
	*t = (struct profdb_insns){ .v = t->v, .cap = t->cap };
}

static int insns_reserve(struct profdb_profile *to, const struct profdb_profile *from)
{
	return profdb_profile_insns_reserve(to, from->insns.nr);
}

static void insns_merge(struct profdb_profile *to, const struct profdb_profile *from,
			const size_t *event)
{
	for (size_t i = 0; i < from->insns.nr; i++) {
		struct profdb_insn m = from->insns.v[i];

		m.event = (uint32_t)event[m.event];
		if (add(&to->insns, &m) < 0)
			return;
	}
}

const struct profdb_detail profdb_detail_insns = {
	.tag = "insn",
	.what = "instruction samples",
	.nr = profdb_profile_nr_insns,
	.release = insns_release,
	.clear = insns_clear,
	.reserve = insns_reserve,
	.merge = insns_merge,
	.parse = insns_parse,
	.print = insns_print,
};
