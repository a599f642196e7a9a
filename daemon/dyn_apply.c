/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "dyn_internal.h"
#include "registry.h"

static int apply_facility(struct dyn_registry *reg, const struct wire_facility_rec *rec)
{
	struct dyn_facility *f;

	if (rec->index >= WIRE_NR_FACILITIES || !rec->name_len ||
	    rec->name_len > WIRE_FACILITY_NAME)
		return -EINVAL;
	f = reg->facilities[rec->index];
	if (!f) {
		int r = dyn_facility_new(reg, rec, &reg->facilities[rec->index]);

		if (r == 0)
			reg->dyn->stats.facilities++;
		return r;
	}
	/* A slot keeps its facility. */
	if (f->name_len != rec->name_len || memcmp(f->name, rec + 1, rec->name_len) != 0)
		return -EINVAL;
	return 0;
}

static struct dyn_facility *facility_at(const struct dyn_registry *reg, uint32_t index)
{
	return index < WIRE_NR_FACILITIES ? reg->facilities[index] : NULL;
}

static int apply_range(struct dyn_registry *reg, const struct wire_range_rec *rec, uint64_t lo,
		       uint64_t hi)
{
	struct dyn_facility *f = facility_at(reg, rec->range.facility);
	struct dyn_range *range;
	size_t nr = reg->nr_ranges;
	int r;

	if (rec->index >= WIRE_NR_RANGES || !f || !rec->range.len ||
	    rec->range.base >= REGISTRY_VADDR_MAX ||
	    rec->range.len > REGISTRY_VADDR_MAX - rec->range.base ||
	    (rec->range.kind != WIRE_RANGE_CODE && rec->range.kind != WIRE_RANGE_DST &&
	     rec->range.kind != WIRE_RANGE_ARENA))
		return -EINVAL;
	if (rec->index >= nr) {
		r = base_grow(&reg->ranges, &reg->cap_ranges, rec->index + 1u,
			      sizeof(*reg->ranges));
		if (r < 0)
			return r;
		memset(reg->ranges + nr, 0, (rec->index + 1u - nr) * sizeof(*reg->ranges));
		reg->nr_ranges = rec->index + 1u;
	}
	range = &reg->ranges[rec->index];
	if (range->known)
		return memcmp(&range->range, &rec->range, sizeof(rec->range)) ? -EINVAL : 0;
	if (rec->range.kind == WIRE_RANGE_CODE) {
		r = dyn_facility_cover(f, rec->range.base, rec->range.len);
		if (r < 0)
			return r;
		f->owned_changed = true;
	}
	range->range = rec->range;
	range->lo = lo > reg->made_ns ? lo : reg->made_ns;
	range->hi = hi;
	range->known = true;
	return 0;
}

static int enter_hole(struct dyn_registry *reg, uint32_t facility, uint64_t addr, uint64_t end,
		      unsigned int flags, const struct dyn_moment *m)
{
	uint32_t index;
	int r = 0;

	if (addr < end)
		r = dyn_facility_hole(reg->facilities[facility], addr, end - addr, &index);
	if (r == 0 && addr < end)
		r = dyn_tenant_enter(&reg->tenants, index, flags, m);
	return r;
}

/* A routine of an object: what stands beside it is the object still. */
static int cut_hole(struct dyn_registry *reg, uint64_t addr, uint64_t len, unsigned int flags,
		    const struct dyn_moment *m)
{
	struct dyn_tenants *t = &reg->tenants;
	uint32_t i;
	int r = 0;

	while (r == 0 && (i = dyn_tenant_take_hole(t, addr, len, m->seq))) {
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

int dyn_apply_object(struct dyn_registry *reg, const struct wire_object *rec,
		     const struct dyn_moment *m)
{
	unsigned int flags = (rec->head.flags & WIRE_ROUTINE_REUSES ? DYN_REUSES : 0) |
			     (rec->head.flags & WIRE_ROUTINE_LISTED ? DYN_LISTED : 0);
	struct dyn_tenants *t = &reg->tenants;

	if (!facility_at(reg, rec->facility) || rec->code_len > UINT32_MAX || m->seq == UINT64_MAX)
		return -EINVAL;
	if (flags & DYN_LISTED && (dyn_tenant_knows_object(t, rec->addr, rec->code_len, m->seq) ||
				   dyn_tenant_is_older(t, rec->addr, rec->code_len, m->seq)))
		return 0;
	return enter_hole(reg, rec->facility, rec->addr, rec->addr + rec->code_len, flags, m);
}

int dyn_apply_routine(struct dyn_registry *reg, const struct wire_routine_view *v,
		      const struct dyn_moment *m)
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
	    (index = dyn_tenant_known(&reg->tenants, v->rec->addr, v->rec->code_len, m->seq)))
		return v->code ? dyn_facility_complete(f, index, v->rec) : 0;
	/* It was dropped when it came first; its code is not told again. */
	if (flags & DYN_LISTED && m->seq <= reg->place.known_seq && !v->code)
		return 0;
	if (flags & DYN_LISTED &&
	    dyn_tenant_is_older(&reg->tenants, v->rec->addr, v->rec->code_len, m->seq))
		return 0;
	r = dyn_facility_routine(f, v, &index);
	/* Somebody lives there all the same. */
	if (r < 0)
		r = dyn_facility_nameless(f, v->rec->addr, v->rec->code_len, &index);
	if (r == 0)
		r = cut_hole(reg, v->rec->addr, v->rec->code_len, flags, m);
	if (r == 0)
		r = dyn_tenant_enter(&reg->tenants, index, flags, m);
	if (r < 0)
		return r;
	r = dyn_facility_place(f, index, reg->dyn->config.keep_all);
	/* It lives without. */
	return r == -DCPI_ELIMIT ? 0 : r;
}

/* What stands there now is not known, but who stood there does not any more. */
static int lose_routine(struct dyn_registry *reg, const struct wire_routine *rec,
			const struct dyn_moment *m, int r)
{
	if ((r == -ENOMEM || r == -DCPI_ELIMIT) && rec->head.flags & WIRE_ROUTINE_LISTED)
		reg->tenants.nr_lost_listed++;
	if (r < 0 && !(rec->head.flags & WIRE_ROUTINE_LISTED)) {
		if (rec->addr < REGISTRY_VADDR_MAX)
			dyn_tenant_clear(&reg->tenants, rec->addr, rec->code_len, m);
		dyn_tenant_lost(&reg->tenants, m);
	}
	return r;
}

/*
 * What tells no times, a line of a perf map or GDB's descriptor, comes late. Where nobody else had
 * the address before, it is the routine's from the beginning; but not in a child that was forked
 * before the last reading, which did not show it.
 */
static int apply_timeless(struct dyn_registry *reg, const struct wire_routine_view *v,
			  const struct dyn_moment *m)
{
	struct dyn_tenants *t = &reg->tenants;
	uint64_t addr = v->rec->addr, len = v->rec->code_len;
	struct dyn_moment from = *m;

	if (!dyn_routine_overlap(&t->routines, t->routines.live, addr, addr + len) &&
	    !dyn_past_overlaps(t, addr, len))
		from.lo = dyn_tenant_heir_before(t, m->lo);
	return lose_routine(reg, v->rec, &from, dyn_apply_routine(reg, v, &from));
}

/* Those of an object share its number. */
static int apply_routine(struct dyn_registry *reg, const struct wire_head *rec,
			 struct dyn_moment *m)
{
	struct wire_routine_view v;
	int r = wire_routine_parse(rec, &v);

	if (r < 0)
		return r;
	m->seq = v.rec->seq;
	if (!m->seq || m->seq == UINT64_MAX)
		return -EINVAL;
	if (!(rec->flags & WIRE_ROUTINE_LISTED)) {
		if (m->seq < reg->tenants.last_seq)
			return -EINVAL;
		dyn_tenant_reached(&reg->tenants, m, true);
		if (!v.code)
			dyn_tenant_codeless(&reg->tenants, m->seq);
	}
	if (reg->kind == DYN_PERFMAP || reg->kind == DYN_GDB)
		return apply_timeless(reg, &v, m);
	return lose_routine(reg, v.rec, m, dyn_apply_routine(reg, &v, m));
}

/* ---- contents of owned ranges -------------------------------------------------------------- */

/* Records become one array from the range's base on. */
static int flatten(const struct wire_range *range, const void *data, size_t len,
		   struct base_buf *flat)
{
	const struct wire_head *h;

	WIRE_FOR_EACH (h, data, len, pos) {
		const struct wire_bytes *b = (const void *)h;
		uint64_t off = b->vaddr - range->base, end = off + b->bytes_len;

		if (h->type != WIRE_BYTES || wire_check(h) < 0 || b->vaddr < range->base ||
		    off > range->len || b->bytes_len > range->len - off)
			return -EINVAL;
		if (end > DYN_REGISTRY_BYTES_MAX)
			return -DCPI_ELIMIT;
		if (end > flat->len) {
			int r = base_buf_extend(flat, (size_t)end - flat->len, NULL);

			if (r < 0)
				return r;
		}
		if (b->bytes_len)
			memcpy(flat->data + off, b + 1, b->bytes_len);
	}
	return 0;
}

static int put_back(struct base_buf *to, size_t at, const uint8_t *old, size_t len)
{
	int r = at + len > to->len ? base_buf_extend(to, at + len - to->len, NULL) : 0;

	if (r == 0)
		memcpy(to->data + at, old, len);
	return r;
}

/* What was read first is what the image shows. */
static int keep_first(struct dyn_registry *reg, struct dyn_range *range, struct base_buf *fresh,
		      const struct dyn_reading *when)
{
	const struct base_buf *old = &range->contents;
	bool code = range->range.kind == WIRE_RANGE_CODE;
	int r = 0;

	if (!code && dyn_patch_is_change(old->data, old->len, fresh->data, fresh->len)) {
		/* Unmapped memory has changed nothing. */
		reg->nr_bad += fresh->len && !range->refused;
		range->refused |= fresh->len > 0;
		return put_back(fresh, 0, old->data, old->len);
	}
	for (size_t at = 0, len; code && r == 0 && at < old->len; at += len) {
		uint64_t vaddr = range->range.base + at, rest = WIRE_PAGE - vaddr % WIRE_PAGE;
		size_t have = at < fresh->len ? fresh->len - at : 0;

		len = rest < old->len - at ? rest : old->len - at;
		const struct dyn_page page = { .old = old->data + at,
					       .new = have ? fresh->data + at : NULL,
					       .old_len = len,
					       .new_len = have < rest ? have : rest };

		r = dyn_patch_page(reg, range, vaddr, &page, when);
		if (r > 0)
			r = put_back(fresh, at, old->data + at, len);
	}
	return r;
}

static bool equal(const struct base_buf *a, const struct base_buf *b)
{
	return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

static int replace(struct dyn_registry *reg, struct dyn_range *range, struct base_buf *fresh)
{
	struct base_buf *old = &range->contents;

	if (equal(old, fresh))
		return 0;
	if (fresh->len > old->len && !dyn_room_take(reg, fresh->len - old->len))
		return -DCPI_ELIMIT;
	if (fresh->len < old->len)
		dyn_room_give_back(reg, old->len - fresh->len);
	base_buf_release(old);
	*old = *fresh;
	*fresh = (struct base_buf){ 0 };
	reg->facilities[range->range.facility]->owned_changed = true;
	return 0;
}

int dyn_apply_contents(struct dyn_registry *reg, struct dyn_range *range, const void *data,
		       size_t len, const struct dyn_reading *when)
{
	struct base_buf fresh = { 0 };
	int r = flatten(&range->range, data, len, &fresh);

	reg->nr_changes++;
	if (r == 0)
		r = keep_first(reg, range, &fresh, when);
	if (r == 0)
		r = replace(reg, range, &fresh);
	if (r == 0) {
		range->seen_ns = when->lo;
		range->read = true;
	}
	if (r == -DCPI_ELIMIT && !range->limited) {
		range->limited = true;
		reg->dyn->stats.records_dropped++;
	}
	base_buf_release(&fresh);
	return r;
}

/* From a recorded stream: the range is found by what the record says of it. */
static int apply_bytes(struct dyn_registry *reg, const struct wire_bytes *b,
		       const struct dyn_reading *when)
{
	for (size_t i = 0; i < reg->nr_ranges; i++) {
		struct dyn_range *range = &reg->ranges[i];

		if (range->known && range->range.base == b->range_base &&
		    range->range.len == b->range_len && range->range.kind == b->kind &&
		    range->range.facility == b->facility)
			return dyn_apply_contents(reg, range, b, b->head.len, when);
	}
	return -EINVAL;
}

/* Changes with a time of their own happened just then, but not after they were read. */
static void apply_time(struct dyn_registry *reg, const struct wire_time *t, struct dyn_moment *m,
		       const struct dyn_reading *window)
{
	uint64_t time_ns = t->time_ns < window->hi ? t->time_ns : window->hi;

	m->lo = time_ns ? time_ns : window->lo;
	m->hi = time_ns ? time_ns : window->hi;
	if (time_ns > reg->told_ns)
		reg->told_ns = time_ns;
}

int dyn_apply(struct dyn_registry *reg, const void *data, size_t len, uint64_t lo, uint64_t hi)
{
	struct dyn_moment m = { .lo = lo, .hi = hi };
	const struct dyn_reading when = { hi, hi }, window = { lo, hi };
	const struct wire_head *h;
	size_t pos = 0;
	int bad = 0;

	reg->nr_changes++;
	reg->tenants.nr_misses = 0;
	while ((h = wire_next(data, len, &pos))) {
		int r = wire_check(h);

		if (r == 0 && h->type == WIRE_FACILITY)
			r = apply_facility(reg, (const void *)h);
		else if (r == 0 && h->type == WIRE_RANGE)
			r = apply_range(reg, (const void *)h, lo, hi);
		else if (r == 0 && h->type == WIRE_ROUTINE)
			r = apply_routine(reg, h, &m);
		else if (r == 0 && h->type == WIRE_BYTES)
			r = apply_bytes(reg, (const void *)h, &when);
		else if (r == 0 && h->type == WIRE_TIME)
			apply_time(reg, (const void *)h, &m, &window);
		else if (r == 0)
			r = dyn_change_apply(reg, h, &m);
		if (r == -ENOMEM || r == -DCPI_ELIMIT || r == -EDQUOT)
			reg->dyn->stats.records_dropped++;
		else if (r < 0)
			bad++;
	}
	m.seq = reg->tenants.last_seq;
	dyn_tenant_sweep(&reg->tenants, &m);
	return bad + (pos != len);
}
