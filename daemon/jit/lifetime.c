/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The changes that a registry tells: routines are kept, and their lifetimes begin and end. Each
 * change has a number, and came between two polls; some were missed, of which a list tells what
 * lives.
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

uint64_t dyn_gap_last(const struct dyn_gaps *g, uint64_t from, uint64_t to)
{
	size_t i = dyn_gap_from(g, to);

	if (i < g->nr && g->items[i].from <= to)
		return from <= to ? to : 0;
	if (!i || g->items[i - 1].to < from)
		return 0;
	return g->items[i - 1].to;
}

static struct dyn_routine *get(const struct dyn_lifetimes *t, uint32_t index)
{
	return dyn_routine_get(&t->routines, index);
}

/* ---- readings -------------------------------------------------------------------------------- */

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

/*
 * @index is gone with change @how.until at the latest, and earlier if a change was missed before
 * that, unless until_first says how much earlier. @how.whole_ns: a sample of up to then may have
 * been its.
 */
static void end_lifetime(struct dyn_lifetimes *t, uint32_t index, struct dyn_past how)
{
	struct dyn_routine *r = get(t, index);

	if (!how.until_first)
		how.until_first = dyn_gap_first(&t->gaps, dyn_alive_until(t, r) + 1, how.until);
	/* A list may be ahead of the ring: what happens until then is not announced yet. */
	if (!how.until_first)
		how.until_first = how.until > t->last_seq ? t->last_seq + 1 : how.until;
	how.routine = index;
	how.addr = r->addr;
	how.len = r->len;
	how.reuses = r->flags & DYN_REUSES;
	how.seq = r->seq;
	how.lo = dyn_poll_get(t, r->poll).lo;
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

/* Change @m->seq was read, but could not be kept. */
static void dyn_lifetime_lost(struct dyn_lifetimes *t, const struct dyn_interval *m)
{
	if (m->seq == t->last_seq)
		miss(t, m->seq, m);
}

/* Change @seq brought a routine without code: a list has it, if that still lives. */
static void dyn_lifetime_codeless(struct dyn_lifetimes *t, uint64_t seq)
{
	if (!t->codeless)
		t->codeless = seq;
	t->wants_list = true;
}

/* A list tells of [addr, addr + len), registered by @seq: the routine, if it is known, else 0. */
static uint32_t dyn_lifetime_known(struct dyn_lifetimes *t, uint64_t addr, uint64_t len,
				   uint64_t seq)
{
	uint32_t i = dyn_lifetime_handle(t, addr, seq);

	if (!i || get(t, i)->len != len || get(t, i)->flags & DYN_HOLE)
		return 0;
	get(t, i)->list = t->list;
	return i;
}

/* A list tells of the object that was registered there by @seq: it lives, as is known already. */
static bool dyn_lifetime_knows_object(struct dyn_lifetimes *t, uint64_t addr, uint64_t len,
				      uint64_t seq)
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

/*
 * The lowest of those in [addr, addr + len) which are an object's of change @seq, in none of its
 * routines, or 0; it does not live any more, nor did it ever.
 */
static uint32_t dyn_lifetime_take_hole(struct dyn_lifetimes *t, uint64_t addr, uint64_t len,
				       uint64_t seq)
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

/* In [addr, addr + len) something lives that came after @seq. */
static bool dyn_lifetime_is_older(struct dyn_lifetimes *t, uint64_t addr, uint64_t len,
				  uint64_t seq)
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

/* Routines that live in [addr, addr + len) are gone. */
static void dyn_lifetime_clear(struct dyn_lifetimes *t, uint64_t addr, uint64_t len,
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
	return flags & DYN_LISTED || dyn_gap_first(&t->gaps, dyn_alive_until(t, r) + 1, m->seq);
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

/*
 * The routines in [addr, addr + len) that were registered by @handle (an object's) end; if that is
 * 0, those of @facility that begin there. How many, or -DCPI_ELIMIT.
 */
static int dyn_lifetime_retire(struct dyn_lifetimes *t, uint32_t facility, uint64_t addr,
			       uint64_t len, uint64_t handle, const struct dyn_interval *m)
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

static void dyn_lifetime_listed(struct dyn_lifetimes *t, const struct wire_listed *l)
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
	uint64_t until = dyn_gap_last(&t->gaps, dyn_alive_until(t, r) + 1, t->list_before);

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

/* ---- who inherits ---------------------------------------------------------------------------- */

/* The last of those forks up to @time_ns, or 0. */
static uint64_t dyn_lifetime_fork_before(const struct dyn_lifetimes *t, uint64_t time_ns)
{
	size_t at = dyn_first_fork(t, time_ns);

	return at ? t->forks[at - 1] : 0;
}

static bool is_inherited(const struct dyn_lifetimes *t, const struct dyn_past *p)
{
	size_t at = dyn_first_fork(t, p->lo);

	return at < t->nr_forks && t->forks[at] <= p->until_hi;
}

/* ---- what is forgotten ----------------------------------------------------------------------- */

void dyn_lifetime_forget(struct dyn_lifetimes *t, uint64_t settled_ns)
{
	uint64_t oldest_ns = settled_ns > DYN_PAST_NS ? settled_ns - DYN_PAST_NS : 0;
	size_t nr = 0, kept = 0;

	if (oldest_ns)
		nr = BASE_UPPER_BOUND(t->past, t->nr_past, until_hi, oldest_ns - 1);
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

/* ---- which routines are kept ----------------------------------------------------------------- */

/* Frames of a longer record are not asked for: all of it would be read for each table. */
enum { FRAMES_RECORD_MAX = 1 << 20 };

static bool same(const struct wire_routine *a, const struct wire_routine *b)
{
	return a->addr == b->addr && a->head.len == b->head.len && a->code_len == b->code_len &&
	       a->name_len == b->name_len && a->nr_lines == b->nr_lines &&
	       a->nr_files == b->nr_files && a->nr_inlines == b->nr_inlines &&
	       !((a->head.flags ^ b->head.flags) & (WIRE_ROUTINE_CODE | WIRE_ROUTINE_FRAMES)) &&
	       !memcmp(a + 1, b + 1, a->head.len - sizeof(*a));
}

static void say_crowded(struct dyn_registry *reg)
{
	if (!reg->crowded)
		base_log(BASE_LOG_WARN,
			 "process %d registers more routines than there is room for (%u of one, "
			 "%u of all processes, of which a user may have half of what others "
			 "leave): further ones are dropped",
			 reg->pid, DYN_ROUTINES_MAX, DYN_ALL_ROUTINES_MAX);
	reg->crowded = true;
}

/* With or without a name it takes memory, and who registers chooses how many. */
static int new_routine(struct dyn_registry *reg, uint32_t hash, uint32_t *index)
{
	struct dyn_routines *t = &reg->lifetimes.routines;
	bool more = !t->free;
	int r;

	if (more &&
	    (reg->nr_slots >= DYN_ROUTINES_MAX || reg->dyn->nr_slots >= DYN_ALL_ROUTINES_MAX ||
	     !budget_take(reg->dyn->config.budgets, reg->uid, BUDGET_ROUTINES, 1,
			  DYN_ALL_ROUTINES_MAX))) {
		say_crowded(reg);
		return -DCPI_ELIMIT;
	}
	r = dyn_routine_new(t, hash, index);
	if (more && r == 0) {
		reg->nr_slots++;
		reg->dyn->nr_slots++;
	}
	if (more && r < 0)
		budget_give_back(reg->dyn->config.budgets, reg->uid, BUDGET_ROUTINES, 1);
	return r;
}

static int keep_routine(struct dyn_facility *f, const struct wire_routine *rec, uint32_t hash,
			uint32_t *index)
{
	struct dyn_routines *t = &f->registry->lifetimes.routines;
	struct dyn *d = f->registry->dyn;
	struct dyn_routine *mine;
	uint32_t record;
	int r;

	if (rec->head.len > dyn_capacity_left(f->registry))
		return -EDQUOT;
	r = new_routine(f->registry, hash, index);
	if (r < 0)
		return r;
	r = dyn_spool_put(&d->spool, &f->registry->store, &rec->head, &record);
	if (r < 0) {
		dyn_routine_drop(t, *index);
		return r == -DCPI_ELIMIT ? -EDQUOT : r;
	}
	mine = dyn_routine_get(t, *index);
	mine->addr = rec->addr;
	mine->len = (uint32_t)rec->code_len;
	mine->facility = (uint8_t)f->index;
	mine->record = record;
	mine->has_frames =
		rec->head.flags & WIRE_ROUTINE_FRAMES && rec->head.len <= FRAMES_RECORD_MAX;
	f->changed = true;
	f->nr_routines++;
	d->stats.routines++;
	return 0;
}

/*
 * The routine of these contents at this address: one that was kept before, or a new one that is
 * kept from now on. 0 or negative; -EDQUOT: its process has no room for more; -DCPI_ELIMIT: not
 * even for a nameless one.
 */
static int kept_routine(struct dyn_facility *f, const struct wire_routine_view *v, uint32_t *index)
{
	struct dyn_routines *t = &f->registry->lifetimes.routines;
	const struct wire_routine *rec = v->rec;
	uint32_t hash = dyn_routine_hash(t, rec->addr, rec->code_len, rec + 1,
					 rec->head.len - sizeof(*rec));
	uint32_t i = dyn_routine_bucket(t, hash);

	while (i) {
		const struct dyn_routine *r = dyn_routine_get(t, i);
		const struct wire_routine *old = NULL;

		if (r->hash == hash && r->facility == f->index && r->record)
			old = dyn_facility_record(f, r);
		if (old && same(old, rec)) {
			*index = i;
			return 0;
		}
		i = r->next;
	}
	return keep_routine(f, rec, hash, index);
}

/* Keep the code of a routine that came without: @rec is its record with it. 0, -EDQUOT, -ENOMEM,
 * -errno. */
static int keep_code(struct dyn_facility *f, uint32_t index, const struct wire_routine *rec)
{
	struct dyn_routine *r = dyn_routine_get(&f->registry->lifetimes.routines, index);
	const struct wire_routine *old = r->record ? dyn_facility_record(f, r) : NULL;
	struct dyn *d = f->registry->dyn;
	uint32_t record, old_len;
	int err;

	if (!old || old->head.flags & WIRE_ROUTINE_CODE || r->facility != f->index)
		return 0;
	old_len = old->head.len;
	if (rec->head.len > dyn_capacity_left(f->registry))
		return -EDQUOT;
	err = dyn_spool_put(&d->spool, &f->registry->store, &rec->head, &record);
	if (err < 0)
		return err == -DCPI_ELIMIT ? -EDQUOT : err;
	dyn_spool_drop(&d->spool, &f->registry->store, r->record, old_len);
	r->record = record;
	f->changed = true;
	f->image->behind |= (r->flags & (DYN_SAMPLED | DYN_WRITTEN)) != 0;
	return 0;
}

/*
 * A routine there of which nothing is kept: its process is over its quota (DYN_NAMELESS), or none
 * of an object's routines is there (DYN_HOLE too); as such it is in no image. 0, -ENOMEM,
 * -DCPI_ELIMIT.
 */
static int nameless(struct dyn_facility *f, uint64_t addr, uint64_t len, uint8_t flags,
		    uint32_t *index)
{
	struct dyn_routines *t = &f->registry->lifetimes.routines;
	uint32_t hash = dyn_routine_hash(t, addr, len, "", 0);
	struct dyn_routine *mine;
	int r;

	for (*index = dyn_routine_bucket(t, hash); *index; *index = mine->next) {
		mine = dyn_routine_get(t, *index);
		if ((mine->flags & (DYN_NAMELESS | DYN_HOLE)) == flags && mine->addr == addr &&
		    mine->len == len && mine->facility == f->index)
			return 0;
	}
	r = new_routine(f->registry, hash, index);
	if (r < 0)
		return r;
	mine = dyn_routine_get(t, *index);
	mine->addr = addr;
	mine->len = (uint32_t)len;
	mine->facility = (uint8_t)f->index;
	mine->flags = flags;
	f->registry->dyn->stats.routines_refused += !(flags & DYN_HOLE);
	return 0;
}

static bool place_good(uint64_t addr, uint64_t len)
{
	return len && addr < REGISTRY_VADDR_MAX && len <= REGISTRY_VADDR_MAX - addr;
}

/* ---- what comes ------------------------------------------------------------------------------ */

static struct dyn_facility *facility_at(const struct dyn_registry *reg, uint32_t index)
{
	return index < WIRE_NR_FACILITIES ? reg->facilities[index] : NULL;
}

static int enter_hole(struct dyn_registry *reg, uint32_t facility, uint64_t addr, uint64_t end,
		      unsigned int flags, const struct dyn_interval *m)
{
	uint32_t index;
	int r;

	if (addr >= end)
		return 0;
	reg->lifetimes.has_holes = true;
	r = nameless(reg->facilities[facility], addr, end - addr, DYN_NAMELESS | DYN_HOLE, &index);
	return r < 0 ? r : dyn_lifetime_enter(&reg->lifetimes, index, flags, m);
}

/* A routine of an object: what stands beside it is the object still. */
static int cut_hole(struct dyn_registry *reg, uint64_t addr, uint64_t len, unsigned int flags,
		    const struct dyn_interval *m)
{
	struct dyn_lifetimes *t = &reg->lifetimes;
	uint32_t i;
	int r = 0;

	while (r == 0 && (i = dyn_lifetime_take_hole(t, addr, len, m->seq))) {
		struct dyn_routine hole = *dyn_routine_get(&t->routines, i);
		unsigned int same = flags | (hole.flags & DYN_REUSES);

		dyn_routine_get(&t->routines, i)->flags &= (uint8_t)~DYN_REUSES;
		if (!hole.nr_past)
			dyn_routine_drop(&t->routines, i);
		r = enter_hole(reg, hole.facility, hole.addr, addr, same, m);
		if (r == 0)
			r = enter_hole(reg, hole.facility, addr + len, hole.addr + hole.len, same,
				       m);
	}
	return r;
}

static int enter_object(struct dyn_registry *reg, const struct wire_object *rec,
			const struct dyn_interval *m)
{
	unsigned int flags = (rec->head.flags & WIRE_ROUTINE_REUSES ? DYN_REUSES : 0) |
			     (rec->head.flags & WIRE_ROUTINE_LISTED ? DYN_LISTED : 0);
	struct dyn_lifetimes *t = &reg->lifetimes;

	if (!facility_at(reg, rec->facility) || rec->code_len > UINT32_MAX || m->seq > DYN_SEQ_MAX)
		return -EINVAL;
	if (flags & DYN_LISTED && (dyn_lifetime_knows_object(t, rec->addr, rec->code_len, m->seq) ||
				   dyn_lifetime_is_older(t, rec->addr, rec->code_len, m->seq)))
		return 0;
	return enter_hole(reg, rec->facility, rec->addr, rec->addr + rec->code_len, flags, m);
}

static int enter_routine(struct dyn_registry *reg, const struct wire_routine_view *v,
			 const struct dyn_interval *m)
{
	struct dyn_facility *f = facility_at(reg, v->rec->facility);
	unsigned int flags = (v->rec->head.flags & WIRE_ROUTINE_REUSES ? DYN_REUSES : 0) |
			     (v->rec->head.flags & WIRE_ROUTINE_LISTED ? DYN_LISTED : 0);
	uint32_t index;
	int r;

	if (!f || v->rec->addr >= REGISTRY_VADDR_MAX ||
	    v->rec->code_len > REGISTRY_VADDR_MAX - v->rec->addr)
		return -EINVAL;
	/* Most of a list is known; and it was read after the ring, but not all at one instant. */
	if (flags & DYN_LISTED &&
	    (index = dyn_lifetime_known(&reg->lifetimes, v->rec->addr, v->rec->code_len, m->seq)))
		return v->code ? keep_code(f, index, v->rec) : 0;
	/* It was dropped when it came first; its code is not told again. */
	if (flags & DYN_LISTED && m->seq <= reg->place.known_seq && !v->code)
		return 0;
	if (flags & DYN_LISTED &&
	    dyn_lifetime_is_older(&reg->lifetimes, v->rec->addr, v->rec->code_len, m->seq))
		return 0;
	r = kept_routine(f, v, &index);
	/* A routine lives there all the same. */
	if (r < 0)
		r = nameless(f, v->rec->addr, v->rec->code_len, DYN_NAMELESS, &index);
	if (r == 0)
		r = cut_hole(reg, v->rec->addr, v->rec->code_len, flags, m);
	if (r == 0)
		r = dyn_lifetime_enter(&reg->lifetimes, index, flags, m);
	if (r < 0)
		return r;
	r = dyn_facility_place(f, index, reg->dyn->config.keep_all);
	/* It lives without. */
	return r == -DCPI_ELIMIT ? 0 : r;
}

/* The code there is not known now, and the routine that stood there does not any more. */
static int lose(struct dyn_registry *reg, const struct wire_head *h, uint64_t addr, uint64_t len,
		const struct dyn_interval *m, int r)
{
	if ((r == -ENOMEM || r == -DCPI_ELIMIT) && h->flags & WIRE_ROUTINE_LISTED)
		reg->lifetimes.nr_lost_listed++;
	if (r < 0 && !(h->flags & WIRE_ROUTINE_LISTED)) {
		if (addr < REGISTRY_VADDR_MAX)
			dyn_lifetime_clear(&reg->lifetimes, addr, len, m);
		dyn_lifetime_lost(&reg->lifetimes, m);
	}
	return r;
}

static int lose_routine(struct dyn_registry *reg, const struct wire_routine *rec,
			const struct dyn_interval *m, int r)
{
	return lose(reg, &rec->head, rec->addr, rec->code_len, m, r);
}

/*
 * A source that tells no times, a line of a perf map or GDB's descriptor, comes late. Where no
 * other routine had the address before, it is the routine's from the beginning; but not in a child
 * that was forked before the last reading, which did not show it.
 */
static int timeless(struct dyn_registry *reg, const struct wire_routine_view *v,
		    const struct dyn_interval *m)
{
	struct dyn_lifetimes *t = &reg->lifetimes;
	uint64_t addr = v->rec->addr, len = v->rec->code_len;
	struct dyn_interval from = *m;

	if (!dyn_routine_overlap(&t->routines, t->routines.live, addr, addr + len) &&
	    !dyn_past_overlaps(t, addr, len))
		from.lo = dyn_lifetime_fork_before(t, m->lo);
	return lose_routine(reg, v->rec, &from, enter_routine(reg, v, &from));
}

/* Routines of an object share its number. */
static int routine(struct dyn_registry *reg, const struct wire_head *rec, struct dyn_interval *m)
{
	struct wire_routine_view v;
	int r = wire_routine_parse(rec, &v);

	if (r < 0)
		return r;
	m->seq = v.rec->seq;
	if (!m->seq || m->seq > DYN_SEQ_MAX)
		return -EINVAL;
	if (!(rec->flags & WIRE_ROUTINE_LISTED)) {
		if (m->seq < reg->lifetimes.last_seq)
			return -EINVAL;
		dyn_lifetime_reached(&reg->lifetimes, m, true);
		if (!v.code)
			dyn_lifetime_codeless(&reg->lifetimes, m->seq);
	}
	if (reg->kind == DYN_PERFMAP || reg->kind == DYN_GDB)
		return timeless(reg, &v, m);
	return lose_routine(reg, v.rec, m, enter_routine(reg, &v, m));
}

/* Its routines come behind it. */
static int object(struct dyn_registry *reg, const struct wire_object *rec,
		  const struct dyn_interval *m)
{
	if (!place_good(rec->addr, rec->code_len))
		return -EINVAL;
	return lose(reg, &rec->head, rec->addr, rec->code_len, m, enter_object(reg, rec, m));
}

/* ---- what goes or moves ---------------------------------------------------------------------- */

static int retire(struct dyn_registry *reg, const struct wire_retire *rec,
		  const struct dyn_interval *m)
{
	int r;

	if (!place_good(rec->addr, rec->code_len))
		return -EINVAL;
	r = dyn_lifetime_retire(&reg->lifetimes, rec->facility, rec->addr, rec->code_len,
				rec->handle, m);
	return r < 0 ? r : 0;
}

/* The record of the routine as it is at its new address; @old is NULL where it cannot be read. */
static struct wire_routine *moved(const struct wire_routine *old, const struct wire_move *rec)
{
	bool with_code = rec->head.flags & WIRE_ROUTINE_CODE;
	struct wire_routine_view v;
	struct wire_routine *new;
	size_t len, rest;
	uint8_t *p;

	if (!old || wire_routine_parse(&old->head, &v) < 0 || v.rec->code_len != rec->code_len)
		return NULL;
	len = wire_routine_len(v.rec->name_len, rec->code_len, with_code, v.rec->nr_lines,
			       v.rec->nr_inlines, v.files_len);
	len = wire_routine_frames_len(len, v.nr_frames);
	new = len ? calloc(1, len) : NULL;
	if (!new)
		return NULL;
	*new = *v.rec;
	new->head.len = (uint32_t)len;
	new->head.flags = (rec->head.flags &
			   (WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED | WIRE_ROUTINE_REUSES)) |
			  (old->head.flags & WIRE_ROUTINE_FRAMES);
	new->seq = rec->seq;
	new->addr = rec->to;
	p = mempcpy(new + 1, v.name, v.rec->name_len);
	if (with_code)
		p = mempcpy(p, rec + 1, rec->code_len);
	p = (uint8_t *)new + base_align_up((size_t)(p - (uint8_t *)new), 8);
	rest = (size_t)(v.files - (const uint8_t *)v.lines) + v.files_len;
	if (v.nr_frames)
		rest = (size_t)((const uint8_t *)(v.frames + v.nr_frames) -
				(const uint8_t *)v.lines);
	memcpy(p, v.lines, rest);
	return new;
}

/* One that is over its process's quota stays so. */
static int move_nameless(struct dyn_registry *reg, uint32_t facility, const struct wire_move *rec,
			 const struct dyn_interval *m)
{
	uint32_t index;
	int r = nameless(reg->facilities[facility], rec->to, rec->code_len, DYN_NAMELESS, &index);

	return r < 0 ? r
		     : dyn_lifetime_enter(&reg->lifetimes, index,
					  rec->head.flags & WIRE_ROUTINE_REUSES ? DYN_REUSES : 0,
					  m);
}

/* One that is not known moved in from among those that were missed: the list tells it. */
static int move(struct dyn_registry *reg, const struct wire_move *rec, const struct dyn_interval *m)
{
	struct dyn_lifetimes *t = &reg->lifetimes;
	uint32_t index = rec->handle ? dyn_lifetime_handle(t, rec->from, rec->handle)
				     : dyn_routine_living(&t->routines, rec->from);
	struct wire_routine *new = NULL;
	struct wire_routine_view v;
	int r = 1;

	if (!place_good(rec->to, rec->code_len))
		return -EINVAL;
	if (!(rec->head.flags & WIRE_ROUTINE_CODE))
		dyn_lifetime_codeless(t, rec->seq);
	if (index) {
		const struct dyn_routine old = *dyn_routine_get(&t->routines, index);

		if (!(old.flags & DYN_NAMELESS))
			new = moved(dyn_facility_record(reg->facilities[old.facility], &old), rec);
		dyn_lifetime_retire(t, old.facility, old.addr, 1, old.seq, m);
		if (old.flags & DYN_NAMELESS)
			r = move_nameless(reg, old.facility, rec, m);
		else if (new &&wire_routine_parse(&new->head, &v) == 0)
			r = enter_routine(reg, &v, m);
	}
	/* The routine that stands there now is none of those that stood there. */
	if (r) {
		dyn_lifetime_clear(t, rec->to, rec->code_len, m);
		dyn_lifetime_lost(t, m);
	}
	free(new);
	return r < 0 ? r : 0;
}

/* ---- one record ------------------------------------------------------------------------------ */

static int begin(struct dyn_registry *reg, uint64_t seq, struct dyn_interval *m)
{
	if (!seq || seq <= reg->lifetimes.last_seq || seq > DYN_SEQ_MAX)
		return -EINVAL;
	m->seq = seq;
	dyn_lifetime_reached(&reg->lifetimes, m, true);
	return 0;
}

int dyn_change_apply(struct dyn_registry *reg, const struct wire_head *h, struct dyn_interval *m)
{
	const struct wire_retire *gone = (const void *)h;
	const struct wire_object *obj = (const void *)h;
	const struct wire_listed *l = (const void *)h;
	const struct wire_move *mv = (const void *)h;
	int r;

	switch (h->type) {
	case WIRE_ROUTINE:
		return routine(reg, h, m);
	case WIRE_RETIRE:
		r = begin(reg, gone->seq, m);
		return r < 0 ? r : retire(reg, gone, m);
	case WIRE_MOVE:
		r = begin(reg, mv->seq, m);
		return r < 0 ? r : move(reg, mv, m);
	case WIRE_OBJECT:
		m->seq = obj->seq;
		r = h->flags & WIRE_ROUTINE_LISTED ? (m->seq ? 0 : -EINVAL)
						   : begin(reg, obj->seq, m);
		return r < 0 ? r : object(reg, obj, m);
	case WIRE_LISTED:
		m->seq = l->seq_before;
		dyn_lifetime_reached(&reg->lifetimes, m, false);
		dyn_lifetime_listed(&reg->lifetimes, l);
		return 0;
	default:
		return 0;
	}
}
