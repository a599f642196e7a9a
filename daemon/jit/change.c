/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of what lives: which routine is registered, moves or goes; which of them a facility
 * keeps, and where they stand in its ELF. */
#include <errno.h>
#include <stdlib.h>

#include "jit_internal.h"

/* ---- capacity -------------------------------------------------------------------------------- */

/* Bytes that its process may still keep. */
static uint64_t capacity_left(const struct dyn_registry *reg)
{
	uint64_t quota = reg->dyn->config.process_quota, used = reg->store.used + reg->bytes;

	if (!quota)
		return UINT64_MAX;
	return used < quota ? quota - used : 0;
}

bool dyn_capacity_take(struct dyn_registry *reg, uint64_t len)
{
	if (len > capacity_left(reg) || len > DYN_REGISTRY_BYTES_MAX - reg->bytes ||
	    len > DYN_ALL_BYTES_MAX - reg->dyn->bytes ||
	    !budget_take(reg->dyn->config.budgets, reg->uid, BUDGET_CONTENTS, len,
			 DYN_ALL_BYTES_MAX))
		return false;
	reg->bytes += len;
	reg->dyn->bytes += len;
	return true;
}

void dyn_capacity_give_back(struct dyn_registry *reg, uint64_t len)
{
	reg->bytes -= len;
	reg->dyn->bytes -= len;
	budget_give_back(reg->dyn->config.budgets, reg->uid, BUDGET_CONTENTS, len);
}

/* Frames of a longer record are not asked for: all of it would be read for each table. */
enum { FRAMES_RECORD_MAX = 1 << 20 };

/* ---- which routines are kept ----------------------------------------------------------------- */

const struct wire_routine *dyn_facility_record(const struct dyn_facility *f,
					       const struct dyn_routine *r)
{
	struct dyn *d = f->registry->dyn;

	/* Other code may stand there now than when it was filled. */
	base_buf_clear(&d->trace.bytes);
	return dyn_spool_get(&d->spool, r->record, &d->trace, 1024);
}

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

	if (rec->head.len > capacity_left(f->registry))
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
	if (rec->head.len > capacity_left(f->registry))
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

/* ---- places ---------------------------------------------------------------------------------- */

uint64_t dyn_facility_elf(const struct dyn_routine *r)
{
	/* In step with its true address as far as a 16-byte block goes. */
	return r->place == DYN_PLACE_OWN ? r->addr
					 : PSEUDOIMG_MODULE + (r->place - 1) * 16ull + r->addr % 16;
}

int dyn_facility_place(struct dyn_facility *f, uint32_t index, bool space)
{
	struct dyn_lifetimes *t = &f->registry->lifetimes;
	struct dyn_routine *r = dyn_routine_get(&t->routines, index);
	uint32_t units = (uint32_t)((r->addr % 16 + r->len + 15) / 16);
	int err;

	if (r->place != DYN_PLACE_NONE || r->flags & DYN_NAMELESS)
		return 0;
	/* Routines that live are disjoint from it: only ended ones can have its address. */
	if (r->flags & DYN_LIVE &&
	    !dyn_routine_overlap(&t->routines, t->dead[f->index], r->addr, r->addr + r->len))
		r->place = DYN_PLACE_OWN;
	else if (!space)
		return 0;
	else if (units > DYN_PLACE_OWN - 1 - f->next_private)
		return -DCPI_ELIMIT;
	else
		r->place = f->next_private;
	/* Without a place it is as one that has no record. */
	err = f->registry->nr_runs < DYN_RUNS_MAX
		      ? dyn_facility_cover(f, dyn_facility_elf(r), r->len)
		      : -DCPI_ELIMIT;
	if (err < 0)
		r->place = DYN_PLACE_NONE;
	else if (r->place != DYN_PLACE_OWN)
		f->next_private += units;
	f->changed = true;
	return err;
}

int dyn_facility_unnamed(struct dyn_facility *f, uint64_t *off)
{
	uint32_t place = f->unnamed ? f->unnamed : f->next_private;
	uint64_t elf = PSEUDOIMG_MODULE + (place - 1) * 16ull;
	int r = 0;

	if (!f->unnamed) {
		if (place >= DYN_PLACE_OWN - 1)
			return -DCPI_ELIMIT;
		r = dyn_facility_cover(f, elf, 16);
		if (r < 0)
			return r;
		f->unnamed = f->next_private++;
		f->image->behind = true;
	}
	return dyn_facility_offset(f, elf, off);
}

/* ---- what is in the image -------------------------------------------------------------------- */

/* While the database is full only what must be. */
static bool keeps_all(const struct dyn_facility *f)
{
	const struct dyn *d = f->registry->dyn;

	return d->config.keep_all && !dyn_is_full(d, f->registry->uid);
}

bool dyn_facility_is_included(const struct dyn_facility *f, const struct dyn_routine *r, bool full)
{
	unsigned int flags = DYN_SAMPLED | DYN_WRITTEN | (full ? DYN_LIVE : 0);

	return r->record && r->facility == f->index && r->place != DYN_PLACE_NONE &&
	       (keeps_all(f) || r->flags & flags);
}

void dyn_facility_written(struct dyn_facility *f, bool full)
{
	const struct dyn_routines *t = &f->registry->lifetimes.routines;

	for (uint32_t i = 1; i <= t->last; i++) {
		struct dyn_routine *r = dyn_routine_get(t, i);

		if (dyn_facility_is_included(f, r, full))
			r->flags |= DYN_WRITTEN;
	}
	f->image->behind = f->owned_changed = false;
	if (full || keeps_all(f))
		f->changed = false;
}

bool dyn_facility_is_behind(const struct dyn_facility *f, bool full)
{
	if (f->image->behind || f->writing || f->joining)
		return true;
	return !f->registry->dyn->full &&
	       (f->owned_changed || (f->changed && (full || keeps_all(f))));
}

/* ---- what is dropped ------------------------------------------------------------------------- */

static void drop(struct dyn_registry *reg, uint32_t index)
{
	struct dyn_lifetimes *t = &reg->lifetimes;
	struct dyn_routine *r = dyn_routine_get(&t->routines, index);
	struct dyn_facility *f = reg->facilities[r->facility];
	const struct wire_routine *rec = dyn_facility_record(f, r);

	if (!rec)
		return;
	dyn_spool_drop(&reg->dyn->spool, &reg->store, r->record, rec->head.len);
	r->record = 0;
	f->nr_routines--;
	reg->dyn->stats.routines--;
	/* An offset that was on disk once is given to no other routine. */
	if (r->place == DYN_PLACE_OWN && r->flags & DYN_WRITTEN)
		return;
	if (r->place == DYN_PLACE_OWN)
		dyn_routine_remove(&t->routines, &t->dead[r->facility], index);
	dyn_routine_drop(&t->routines, index);
}

/* Segments of which little is left are emptied. */
static void compact(struct dyn_registry *reg)
{
	const struct dyn_routines *t = &reg->lifetimes.routines;
	struct dyn_spool *spool = &reg->dyn->spool;

	if (!dyn_spool_is_sparse(&reg->store))
		return;
	for (uint32_t i = 1; i <= t->last; i++) {
		struct dyn_routine *r = dyn_routine_get(t, i);
		const struct wire_routine *rec;
		uint32_t record;

		if (!r->record || !dyn_spool_in_sparse(spool, r->record))
			continue;
		rec = dyn_facility_record(reg->facilities[r->facility], r);
		if (!rec || dyn_spool_put(spool, &reg->store, &rec->head, &record) < 0)
			return;
		dyn_spool_drop(spool, &reg->store, r->record, rec->head.len);
		r->record = record;
	}
}

void dyn_facility_drop_unused(struct dyn_registry *reg)
{
	struct dyn_lifetimes *t = &reg->lifetimes;

	for (size_t i = 0; i < t->nr_unused; i++) {
		const struct dyn_routine *r = dyn_routine_get(&t->routines, t->unused[i]);

		/* It may have come back, or be dropped already. */
		if (r->nr_past || r->flags & (DYN_LIVE | DYN_SAMPLED))
			continue;
		if (r->flags & DYN_NAMELESS)
			dyn_routine_drop(&t->routines, t->unused[i]);
		else if (r->record && !reg->dyn->config.keep_all)
			drop(reg, t->unused[i]);
	}
	t->nr_unused = 0;
	compact(reg);
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

	if (!facility_at(reg, rec->facility) || rec->code_len > UINT32_MAX || m->seq == UINT64_MAX)
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
	if (!m->seq || m->seq == UINT64_MAX)
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
	if (!seq || seq <= reg->lifetimes.last_seq || seq == UINT64_MAX)
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
