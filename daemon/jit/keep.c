/* SPDX-License-Identifier: BSD-2-Clause */
/* Which routines of a facility are kept, and where they stand in its ELF. */
#include <errno.h>
#include <stdlib.h>

#include "jit_internal.h"

/* Frames of a longer record are not asked for: all of it would be read for each table. */
enum { FRAMES_RECORD_MAX = 1 << 20 };

/* ---- records --------------------------------------------------------------------------------- */

const struct wire_routine *dyn_facility_record(const struct dyn_facility *f,
					       const struct dyn_routine *r)
{
	struct dyn *d = f->registry->dyn;

	/* What stood there when it was filled need not be what stands there now. */
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

int dyn_facility_routine(struct dyn_facility *f, const struct wire_routine_view *v, uint32_t *index)
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

int dyn_facility_complete(struct dyn_facility *f, uint32_t index, const struct wire_routine *rec)
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

int dyn_facility_nameless(struct dyn_facility *f, uint64_t addr, uint64_t len, uint32_t *index)
{
	return nameless(f, addr, len, DYN_NAMELESS, index);
}

int dyn_facility_hole(struct dyn_facility *f, uint64_t addr, uint64_t len, uint32_t *index)
{
	f->registry->lifetimes.has_holes = true;
	return nameless(f, addr, len, DYN_NAMELESS | DYN_HOLE, index);
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
	/* Who lives is disjoint from it: only the dead can have its address. */
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

	return d->config.keep_all && !d->full;
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
	if (f->image->behind)
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
	/* An offset once on disk is nobody else's. */
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
