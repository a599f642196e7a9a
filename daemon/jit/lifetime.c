/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The routine that lived at an address is found by the numbers of the registry's changes where a
 * sample brings one, else by the times of the polls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "jit_internal.h"

/* ---- changes that were not read -------------------------------------------------------------- */

int dyn_gap_add(struct dyn_gaps *g, uint64_t from, uint64_t to)
{
	struct dyn_gap *last = g->nr ? &g->items[g->nr - 1] : NULL;

	if (last && from <= last->to + 1) {
		last->to = to > last->to ? to : last->to;
		return 0;
	}
	/* Two of long ago become one: less is known then. */
	if (g->nr == DYN_GAPS_MAX) {
		g->items[1].from = g->items[0].from;
		memmove(g->items, g->items + 1, --g->nr * sizeof(*g->items));
	}
	if (base_grow(&g->items, &g->cap, g->nr + 1, sizeof(*g->items)) < 0) {
		if (!last)
			return -ENOMEM;
		last->to = to;
		return 0;
	}
	g->items[g->nr++] = (struct dyn_gap){ from, to };
	return 0;
}

/* The first that ends at @seq or above. */
static size_t first_from(const struct dyn_gaps *g, uint64_t seq)
{
	return BASE_LOWER_BOUND(g->items, g->nr, to, seq);
}

uint64_t dyn_gap_first(const struct dyn_gaps *g, uint64_t from, uint64_t to)
{
	size_t i = first_from(g, from);
	uint64_t seq;

	if (from > to || i == g->nr || g->items[i].from > to)
		return 0;
	seq = g->items[i].from;
	return seq > from ? seq : from;
}

uint64_t dyn_gap_last(const struct dyn_gaps *g, uint64_t from, uint64_t to)
{
	size_t i = first_from(g, to);

	if (i < g->nr && g->items[i].from <= to)
		return from <= to ? to : 0;
	if (!i || g->items[i - 1].to < from)
		return 0;
	return g->items[i - 1].to;
}

void dyn_gap_release(struct dyn_gaps *g)
{
	free(g->items);
	*g = (struct dyn_gaps){ 0 };
}

static struct dyn_routine *get(const struct dyn_lifetimes *t, uint32_t index)
{
	return dyn_routine_get(&t->routines, index);
}

/* ---- readings -------------------------------------------------------------------------------- */

/* Numbers wrap. */
static bool is_pruned(const struct dyn_lifetimes *t, uint32_t number)
{
	return number - t->first_poll >= t->nr_polls;
}

/*
 * Polls of long ago are kept as one: no sample asks for times before its end, but for those pruned
 * early.
 */
static struct dyn_poll poll_get(const struct dyn_lifetimes *t, uint32_t number)
{
	if (is_pruned(t, number))
		return (struct dyn_poll){ .lo = t->early_ns, .hi = t->pruned_ns };
	return t->polls[number - t->first_poll];
}

static void prune(struct dyn_lifetimes *t, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (t->polls[i].hi > t->pruned_ns)
			t->pruned_ns = t->polls[i].hi;
	memmove(t->polls, t->polls + nr, (t->nr_polls - nr) * sizeof(*t->polls));
	t->nr_polls -= nr;
	t->first_poll += (uint32_t)nr;
}

static int poll_add(struct dyn_lifetimes *t, const struct dyn_interval *m, uint32_t *number)
{
	const struct dyn_poll *last = t->nr_polls ? &t->polls[t->nr_polls - 1] : NULL;
	int r;

	if (!last || last->lo != m->lo || last->hi != m->hi) {
		/* The older half: who came with those may have come as late as the last of them. */
		if (t->nr_polls == DYN_POLLS_MAX) {
			prune(t, DYN_POLLS_MAX / 2);
			t->early_ns = t->pruned_ns;
		}
		r = base_grow(&t->polls, &t->cap_polls, t->nr_polls + 1, sizeof(*t->polls));
		if (r < 0)
			return r;
		t->polls[t->nr_polls++] = (struct dyn_poll){ m->lo, m->hi };
	}
	*number = t->first_poll + (uint32_t)t->nr_polls - 1;
	return 0;
}

static void prune_polls(struct dyn_lifetimes *t, uint64_t before_ns)
{
	size_t nr = 0;

	while (nr < t->nr_polls && t->polls[nr].hi < before_ns)
		nr++;
	if (nr >= 1024)
		prune(t, nr);
}

/* ---- the past -------------------------------------------------------------------------------- */

static void forget_one(struct dyn_lifetimes *t, const struct dyn_past *p)
{
	struct dyn_routine *r = get(t, p->routine);

	t->forgotten_ns = p->until_hi > t->forgotten_ns ? p->until_hi : t->forgotten_ns;
	t->forgotten_seq = p->until > t->forgotten_seq ? p->until : t->forgotten_seq;
	/* Without memory it is kept until the end. */
	if (!--r->nr_past && !(r->flags & (DYN_LIVE | DYN_SAMPLED)) &&
	    base_grow(&t->unused, &t->cap_unused, t->nr_unused + 1, sizeof(*t->unused)) == 0)
		t->unused[t->nr_unused++] = p->routine;
}

static int remember(struct dyn_lifetimes *t, struct dyn_past p)
{
	const struct dyn_past *last = t->nr_past ? &t->past[t->nr_past - 1] : NULL;
	int r;

	/* Searched by both: a recorded stream may tell times in any order, a list what ended long
	 * before. */
	p.order = last && last->order > p.until ? last->order : p.until;
	p.until_hi = last && last->until_hi > p.until_hi ? last->until_hi : p.until_hi;
	if (t->nr_past == DYN_PAST_MAX) {
		/* The older half; whoever asks for so long ago is told that it is not known. */
		size_t half = DYN_PAST_MAX / 2;

		for (size_t i = 0; i < half; i++)
			forget_one(t, &t->past[i]);
		memmove(t->past, t->past + half, (t->nr_past - half) * sizeof(*t->past));
		t->nr_past -= half;
		dyn_past_index(t);
	}
	r = dyn_past_add(t, &p);
	get(t, p.routine)->nr_past++;
	if (r < 0)
		forget_one(t, &p);
	return r;
}

/* Up to this change it was seen alive. */
static uint64_t alive_until(const struct dyn_lifetimes *t, const struct dyn_routine *r)
{
	bool listed = r->list == t->list || r->list == (uint8_t)(t->list - 1);
	uint64_t seq = listed ? t->confirmed : 0;

	return seq > r->seq ? seq : r->seq;
}

/*
 * @index is gone with change @how.until at the latest, and earlier if a change was missed before
 * that, unless until_first says how much earlier. @how.whole_ns: a sample of up to then may have
 * been its.
 */
static void end_lifetime(struct dyn_lifetimes *t, uint32_t index, struct dyn_past how)
{
	struct dyn_routine *r = get(t, index);

	if (!how.until_first)
		how.until_first = dyn_gap_first(&t->gaps, alive_until(t, r) + 1, how.until);
	/* A list may be ahead of the ring: what happens until then is not announced yet. */
	if (!how.until_first)
		how.until_first = how.until > t->last_seq ? t->last_seq + 1 : how.until;
	how.routine = index;
	how.addr = r->addr;
	how.len = r->len;
	how.reuses = r->flags & DYN_REUSES;
	how.seq = r->seq;
	how.lo = poll_get(t, r->poll).lo;
	dyn_routine_remove(&t->routines, &t->routines.live, index);
	t->routines.nr_live--;
	remember(t, how);
	r->flags &= (uint8_t) ~(DYN_LIVE | DYN_REUSES | DYN_LISTED);
	if (r->place == DYN_PLACE_OWN) {
		dyn_routine_insert(&t->routines, &t->dead[r->facility], index);
	} else {
		r->kid[0] = (uint32_t)how.until;
		r->kid[1] = (uint32_t)(how.until >> 32);
	}
	t->reused = true;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void miss(struct dyn_lifetimes *t, uint64_t from, const struct dyn_interval *m)
{
	if (dyn_gap_add(&t->gaps, from, m->seq) < 0)
		t->forgotten_seq = m->seq + 1;
	/* A routine at an address that was used before may have had predecessors there. */
	t->forgotten_ns = m->hi > t->forgotten_ns ? m->hi : t->forgotten_ns;
	t->nr_missed += m->seq - from + 1;
	t->reused = true;
	if (!t->wants_list)
		t->missed_lo_ns = m->lo;
	t->wants_list = true;
}

void dyn_lifetime_reached(struct dyn_lifetimes *t, const struct dyn_interval *m, bool announced)
{
	/* No time is told of changes that were missed; and those routines may live still. */
	uint64_t lo = m->lo < t->reading.lo ? m->lo : t->reading.lo;
	uint64_t hi = m->hi > t->reading.hi ? m->hi : t->reading.hi;
	struct dyn_interval to = { announced ? m->seq - 1 : m->seq, lo, hi };
	uint64_t next = t->last_seq + 1;

	if (m->seq <= t->last_seq)
		return;
	/* Until a list tells what was missed, that may have lived until now where this change is.
	 */
	if (m->hi > t->forgotten_ns && dyn_gap_first(&t->gaps, t->confirmed + 1, m->seq))
		t->forgotten_ns = m->hi;
	/* Numbers whose low half would be 0 are left out. */
	next += !(uint32_t)next;
	if (to.seq >= next)
		miss(t, next, &to);
	t->last_seq = m->seq;
}

void dyn_lifetime_lost(struct dyn_lifetimes *t, const struct dyn_interval *m)
{
	if (m->seq == t->last_seq)
		miss(t, m->seq, m);
}

void dyn_lifetime_codeless(struct dyn_lifetimes *t, uint64_t seq)
{
	if (!t->codeless)
		t->codeless = seq;
	t->wants_list = true;
}

uint32_t dyn_lifetime_known(struct dyn_lifetimes *t, uint64_t addr, uint64_t len, uint64_t seq)
{
	uint32_t i = dyn_lifetime_handle(t, addr, seq);

	if (!i || get(t, i)->len != len || get(t, i)->flags & DYN_HOLE)
		return 0;
	get(t, i)->list = t->list;
	return i;
}

bool dyn_lifetime_knows_object(struct dyn_lifetimes *t, uint64_t addr, uint64_t len, uint64_t seq)
{
	uint64_t end = addr + len;
	bool known = false;
	uint32_t i;

	/* Its routines are listed themselves. */
	while (addr < end && t->nr_misses <= DYN_MISSES_MAX &&
	       (i = dyn_routine_overlap(&t->routines, t->routines.live, addr, end))) {
		struct dyn_routine *r = get(t, i);

		if (r->seq == seq)
			known = true;
		else
			t->nr_misses++;
		if (r->seq == seq && r->flags & DYN_HOLE)
			r->list = t->list;
		addr = r->addr + r->len;
	}
	return known || t->nr_misses > DYN_MISSES_MAX;
}

uint32_t dyn_lifetime_take_hole(struct dyn_lifetimes *t, uint64_t addr, uint64_t len, uint64_t seq)
{
	struct dyn_routine *r;
	uint32_t i;

	if (!t->has_holes)
		return 0;
	i = dyn_routine_overlap(&t->routines, t->routines.live, addr, addr + len);
	r = i ? get(t, i) : NULL;
	if (!r || !(r->flags & DYN_HOLE) || r->seq != seq)
		return 0;
	dyn_routine_remove(&t->routines, &t->routines.live, i);
	t->routines.nr_live--;
	r->flags &= (uint8_t) ~(DYN_LIVE | DYN_LISTED);
	return i;
}

bool dyn_lifetime_is_older(struct dyn_lifetimes *t, uint64_t addr, uint64_t len, uint64_t seq)
{
	uint32_t i = dyn_routine_overlap(&t->routines, t->routines.live, addr, addr + len);

	while (i) {
		const struct dyn_routine *r = get(t, i);

		if (r->seq > seq && !(r->addr == addr && r->len == len))
			return true;
		if (++t->nr_misses > DYN_MISSES_MAX)
			return true;
		i = dyn_routine_overlap(&t->routines, t->routines.live, r->addr + r->len,
					addr + len);
	}
	return false;
}

/* Another routine took its place. */
static struct dyn_past replaced(const struct dyn_interval *m)
{
	return (struct dyn_past){ .until = m->seq,
				  .whole_ns = m->hi ? m->hi - 1 : 0,
				  .until_hi = m->hi };
}

void dyn_lifetime_clear(struct dyn_lifetimes *t, uint64_t addr, uint64_t len,
			const struct dyn_interval *m)
{
	uint32_t i;

	while ((i = dyn_routine_overlap(&t->routines, t->routines.live, addr, addr + len)))
		end_lifetime(t, i, replaced(m));
}

/* Registered once more: others may have stood there meanwhile, of whom nobody told. */
static bool was_away(const struct dyn_lifetimes *t, const struct dyn_routine *r, unsigned int flags,
		     const struct dyn_interval *m)
{
	if (m->seq <= r->seq)
		return false;
	return flags & DYN_LISTED || dyn_gap_first(&t->gaps, alive_until(t, r) + 1, m->seq);
}

/*
 * A lifetime of which a part is overwritten is gone as a whole: what stands in the rest of it
 * nobody has told.
 */
int dyn_lifetime_enter(struct dyn_lifetimes *t, uint32_t index, unsigned int flags,
		       const struct dyn_interval *m)
{
	struct dyn_routine *r = get(t, index);
	uint32_t number;
	int err;

	if (r->flags & DYN_LIVE && was_away(t, r, flags, m)) {
		end_lifetime(t, index, replaced(m));
		flags |= DYN_REUSES;
	}
	if (r->flags & DYN_LIVE) {
		/* Told once more, or registered once more. */
		r->seq = m->seq > r->seq ? m->seq : r->seq;
		r->list = flags & DYN_LISTED ? t->list : r->list;
		return 0;
	}
	err = poll_add(t, m, &number);
	if (err < 0)
		return err;
	if (dyn_routine_overlap(&t->routines, t->routines.live, r->addr, r->addr + r->len)) {
		dyn_lifetime_clear(t, r->addr, r->len, m);
		flags |= DYN_REUSES;
	}
	if (r->place == DYN_PLACE_OWN)
		dyn_routine_remove(&t->routines, &t->dead[r->facility], index);
	r->flags |= (uint8_t)(DYN_LIVE | flags);
	r->seq = m->seq;
	r->poll = number;
	r->list = (uint8_t)(flags & DYN_LISTED ? t->list : t->list - 1);
	dyn_routine_insert(&t->routines, &t->routines.live, index);
	t->routines.nr_live++;
	t->reused |= (flags & DYN_REUSES) != 0;
	return 0;
}

uint32_t dyn_lifetime_handle(const struct dyn_lifetimes *t, uint64_t addr, uint64_t handle)
{
	uint32_t i = dyn_routine_living(&t->routines, addr);

	return i && get(t, i)->addr == addr && get(t, i)->seq == handle ? i : 0;
}

/*
 * The routines in [addr, addr + len) that were registered by @handle (an object's) end; if that is
 * 0, those of @facility that begin there.
 */
int dyn_lifetime_retire(struct dyn_lifetimes *t, uint32_t facility, uint64_t addr, uint64_t len,
			uint64_t handle, const struct dyn_interval *m)
{
	uint64_t end = addr + len;
	int nr = 0;

	while (addr < end) {
		uint32_t i = dyn_routine_overlap(&t->routines, t->routines.live, addr, end);
		struct dyn_routine *r = i ? get(t, i) : NULL;

		if (!r)
			break;
		if (handle ? r->seq == handle : r->addr >= addr && r->facility == facility) {
			addr = r->addr + r->len;
			/* The routine that it names lived until then. */
			end_lifetime(t, i,
				     (struct dyn_past){ .until_first = handle ? m->seq : 0,
							.until = m->seq,
							.whole_ns = m->lo,
							.until_hi = m->hi });
			nr++;
		} else {
			addr = r->addr + r->len;
			/* One that names a handle far away from its code wastes our time. */
			if (++t->nr_misses > DYN_MISSES_MAX)
				return -DCPI_ELIMIT;
		}
	}
	return nr;
}

/* ---- lists ----------------------------------------------------------------------------------- */

void dyn_lifetime_listed(struct dyn_lifetimes *t, const struct wire_listed *l)
{
	t->list_ended = true;
	t->list_before = l->seq_before;
	t->list_after = l->seq_after > l->seq_before ? l->seq_after : l->seq_before;
	t->nr_unlisted = l->nr_unlisted + t->nr_lost_listed;
	t->nr_lost_listed = 0;
}

/* One that the list does not have: it ended with one of the changes that were missed. */
static void vanish(struct dyn_lifetimes *t, uint32_t index, uint64_t hi)
{
	struct dyn_routine *r = get(t, index);
	uint64_t until = dyn_gap_last(&t->gaps, alive_until(t, r) + 1, t->list_before);

	if (!until || t->nr_unlisted) {
		r->list = (uint8_t)(t->list - 128);
		return;
	}
	end_lifetime(
		t, index,
		(struct dyn_past){ .until = until, .whole_ns = t->missed_lo_ns, .until_hi = hi });
}

void dyn_lifetime_sweep(struct dyn_lifetimes *t, const struct dyn_interval *m)
{
	uint64_t pos = 0;
	uint32_t i;

	if (!t->list_ended || t->last_seq < t->list_after)
		return;
	while ((i = dyn_routine_overlap(&t->routines, t->routines.live, pos, UINT64_MAX))) {
		struct dyn_routine *r = get(t, i);

		pos = r->addr + r->len;
		if (r->seq > t->list_before)
			r->list = t->list;
		else if (r->list != t->list)
			vanish(t, i, m->hi);
	}
	t->list_ended = false;
	t->confirmed = t->list_before;
	t->complete = t->nr_unlisted ? t->complete : t->list_before;
	t->list++;
	/* Changes that were missed since need a list of their own. */
	t->wants_list = t->codeless || dyn_gap_first(&t->gaps, t->list_before + 1, UINT64_MAX) != 0;
	t->missed_lo_ns = m->lo;
}

/* ---- by number ------------------------------------------------------------------------------- */

static size_t first_by_order(const struct dyn_lifetimes *t, uint64_t seq)
{
	return BASE_UPPER_BOUND(t->past, t->nr_past, order, seq);
}

/* The first change with which the last known lifetime of @addr that was gone by @seq may have gone.
 */
static uint64_t vacant_since(const struct dyn_lifetimes *t, uint64_t addr, uint64_t seq)
{
	struct dyn_past_walk w = { .addr = addr };
	uint64_t since = 0;

	while (dyn_past_next(t, &w))
		if (w.p->until <= seq && w.p->until_first > since)
			since = w.p->until_first;
	return since;
}

/*
 * A routine that was never announced may have lived at a vacant @addr at @seq or from then on to
 * @to: one that came with a change that was missed, also long before @seq.
 */
static bool may_be_missed(const struct dyn_lifetimes *t, uint64_t addr, uint64_t seq, uint64_t to)
{
	uint64_t from = seq >= t->complete ? t->complete + 1 : 0, since;

	if (!dyn_gap_first(&t->gaps, from, to))
		return false;
	since = vacant_since(t, addr, seq);
	return since <= from || dyn_gap_first(&t->gaps, since, to) != 0;
}

/*
 * The word tells of change @seq, and the next lifetime that is known came with @from: it was a
 * virgin address, or one that had been retired, which both belong to that lifetime.
 */
static enum dyn_where before(const struct dyn_lifetimes *t, uint64_t addr, uint64_t seq,
			     uint64_t from, bool reuses)
{
	if (!reuses)
		return DYN_FOUND;
	if (seq < t->forgotten_seq || may_be_missed(t, addr, seq, from - 1))
		return DYN_GENERATION;
	return DYN_FOUND;
}

enum dyn_where dyn_lifetime_find_seq(const struct dyn_lifetimes *t, uint64_t addr, uint64_t seq,
				     uint32_t *index, bool *sure)
{
	struct dyn_past_walk w = { .addr = addr, .from = first_by_order(t, seq) };
	const struct dyn_past *p = NULL;
	const struct dyn_routine *r;

	*sure = true;
	/* Behind the first one stand those that ended later. */
	while (dyn_past_next(t, &w)) {
		if (w.p->until <= seq)
			continue;
		if (!p || w.p < p)
			p = w.p;
		dyn_past_skip(&w);
	}
	if (p) {
		*index = p->routine;
		*sure = p->seq <= seq;
		if (p->seq <= seq)
			return seq < p->until_first ? DYN_FOUND : DYN_GENERATION;
		return before(t, addr, seq, p->seq, p->reuses);
	}
	*index = dyn_routine_living(&t->routines, addr);
	if (!*index) {
		*sure = vacant_since(t, addr, seq) != 0;
		return may_be_missed(t, addr, seq, t->last_seq) ? DYN_GENERATION : DYN_NONE;
	}
	r = get(t, *index);
	*sure = r->seq <= seq;
	if (r->seq > seq)
		return before(t, addr, seq, r->seq, r->flags & DYN_REUSES);
	return dyn_gap_first(&t->gaps, alive_until(t, r) + 1, seq) ? DYN_GENERATION : DYN_FOUND;
}

/* ---- by time --------------------------------------------------------------------------------- */

/* The answer for an address so far. */
struct answer {
	enum dyn_where where;
	uint32_t index;
};

/* One more that may have lived there in the interval; @whole: if it was there, then all the time.
 */
static void may_be(struct answer *a, uint32_t index, bool whole)
{
	bool other = a->where != DYN_NONE && a->index != index;

	a->index = index;
	if (other)
		a->where = DYN_REUSED;
	else if (a->where == DYN_NONE)
		a->where = whole ? DYN_FOUND : DYN_REUSED;
}

/* The first of the past that was not gone for certain at @time_ns. */
static size_t first_by_time(const struct dyn_lifetimes *t, uint64_t time_ns)
{
	return BASE_UPPER_BOUND(t->past, t->nr_past, until_hi, time_ns);
}

enum dyn_where dyn_lifetime_find(const struct dyn_lifetimes *t, uint64_t addr, uint64_t first_ns,
				 uint64_t time_ns, uint32_t *index, bool *sure)
{
	uint32_t now = dyn_routine_living(&t->routines, addr);
	const struct dyn_routine *r = now ? get(t, now) : NULL;
	struct dyn_past_walk w = { .addr = addr, .from = first_by_time(t, first_ns) };
	struct dyn_poll since = { 0 };
	struct answer a = { 0 };

	if (r)
		since = poll_get(t, r->poll);
	if (r && since.lo < time_ns)
		may_be(&a, now, since.lo < first_ns);
	*sure = r && first_ns >= since.hi;
	if (!*sure && first_ns < t->forgotten_ns && r && r->flags & DYN_REUSES)
		return DYN_REUSED;
	/* Not certainly this one: whoever else may have lived here then makes it unknown. */
	while (!*sure && dyn_past_next(t, &w))
		if (w.p->lo < time_ns)
			may_be(&a, w.p->routine, w.p->lo < first_ns && time_ns <= w.p->whole_ns);
	*index = a.index;
	return a.where;
}

uint64_t dyn_lifetime_announced_ns(const struct dyn_lifetimes *t, uint32_t index)
{
	uint32_t number = get(t, index)->poll;

	return is_pruned(t, number) ? 0 : poll_get(t, number).hi;
}

/* ---- who inherits ---------------------------------------------------------------------------- */

static size_t first_fork(const struct dyn_lifetimes *t, uint64_t after_ns)
{
	return BASE_BOUND(i, t->nr_forks, t->forks[i] <= after_ns);
}

int dyn_lifetime_fork_add(struct dyn_lifetimes *t, uint64_t fork_ns)
{
	int r = base_grow(&t->forks, &t->cap_forks, t->nr_forks + 1, sizeof(*t->forks));
	size_t at;

	if (r < 0)
		return r;
	at = first_fork(t, fork_ns);
	memmove(t->forks + at + 1, t->forks + at, (t->nr_forks++ - at) * sizeof(*t->forks));
	t->forks[at] = fork_ns;
	return 0;
}

void dyn_lifetime_fork_remove(struct dyn_lifetimes *t, uint64_t fork_ns)
{
	size_t at = first_fork(t, fork_ns);

	if (!at || t->forks[at - 1] != fork_ns)
		return;
	memmove(t->forks + at - 1, t->forks + at, (t->nr_forks - at) * sizeof(*t->forks));
	t->nr_forks--;
}

uint64_t dyn_lifetime_fork_before(const struct dyn_lifetimes *t, uint64_t time_ns)
{
	size_t at = first_fork(t, time_ns);

	return at ? t->forks[at - 1] : 0;
}

static bool is_inherited(const struct dyn_lifetimes *t, const struct dyn_past *p)
{
	size_t at = first_fork(t, p->lo);

	return at < t->nr_forks && t->forks[at] <= p->until_hi;
}

/* ---- the end --------------------------------------------------------------------------------- */

void dyn_lifetime_forget(struct dyn_lifetimes *t, uint64_t settled_ns)
{
	uint64_t oldest_ns = settled_ns > DYN_PAST_NS ? settled_ns - DYN_PAST_NS : 0;
	size_t nr = oldest_ns ? first_by_time(t, oldest_ns - 1) : 0, kept = 0;

	for (size_t i = 0; i < nr; i++) {
		if (is_inherited(t, &t->past[i]))
			t->past[kept++] = t->past[i];
		else
			forget_one(t, &t->past[i]);
	}
	if (kept < nr) {
		memmove(t->past + kept, t->past + nr, (t->nr_past - nr) * sizeof(*t->past));
		t->nr_past -= nr - kept;
		dyn_past_index(t);
	}
	if (t->nr_forks && t->forks[0] < oldest_ns)
		oldest_ns = t->forks[0];
	prune_polls(t, oldest_ns);
}

void dyn_lifetime_release(struct dyn_lifetimes *t)
{
	dyn_routine_release(&t->routines);
	dyn_gap_release(&t->gaps);
	dyn_past_release(t);
	free(t->unused);
	free(t->polls);
	free(t->forks);
	*t = (struct dyn_lifetimes){ 0 };
}
