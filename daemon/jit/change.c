/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of what lives: who is registered, moves or goes. */
#include <errno.h>
#include <stdlib.h>

#include "jit_internal.h"

static bool place_good(uint64_t addr, uint64_t len)
{
	return len && addr < REGISTRY_VADDR_MAX && len <= REGISTRY_VADDR_MAX - addr;
}

/* ---- who comes ------------------------------------------------------------------------------- */

static struct dyn_facility *facility_at(const struct dyn_registry *reg, uint32_t index)
{
	return index < WIRE_NR_FACILITIES ? reg->facilities[index] : NULL;
}

static int enter_hole(struct dyn_registry *reg, uint32_t facility, uint64_t addr, uint64_t end,
		      unsigned int flags, const struct dyn_interval *m)
{
	uint32_t index;
	int r = 0;

	if (addr < end)
		r = dyn_facility_hole(reg->facilities[facility], addr, end - addr, &index);
	if (r == 0 && addr < end)
		r = dyn_lifetime_enter(&reg->lifetimes, index, flags, m);
	return r;
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
		return v->code ? dyn_facility_complete(f, index, v->rec) : 0;
	/* It was dropped when it came first; its code is not told again. */
	if (flags & DYN_LISTED && m->seq <= reg->place.known_seq && !v->code)
		return 0;
	if (flags & DYN_LISTED &&
	    dyn_lifetime_is_older(&reg->lifetimes, v->rec->addr, v->rec->code_len, m->seq))
		return 0;
	r = dyn_facility_routine(f, v, &index);
	/* A routine lives there all the same. */
	if (r < 0)
		r = dyn_facility_nameless(f, v->rec->addr, v->rec->code_len, &index);
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

/* ---- who goes or moves ----------------------------------------------------------------------- */

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
	int r = dyn_facility_nameless(reg->facilities[facility], rec->to, rec->code_len, &index);

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
