/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of what lives, beside a routine's registration. */
#include <errno.h>
#include <stdlib.h>

#include "dyn_internal.h"

static bool place_good(uint64_t addr, uint64_t len)
{
	return len && addr < REGISTRY_VADDR_MAX && len <= REGISTRY_VADDR_MAX - addr;
}

static int retire(struct dyn_registry *reg, const struct wire_retire *rec,
		  const struct dyn_moment *m)
{
	int r;

	if (!place_good(rec->addr, rec->code_len))
		return -EINVAL;
	r = dyn_tenant_retire(&reg->tenants, rec->facility, rec->addr, rec->code_len, rec->handle,
			      m);
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
	new = len ? calloc(1, len) : NULL;
	if (!new)
		return NULL;
	*new = *v.rec;
	new->head.len = (uint32_t)len;
	new->head.flags =
		rec->head.flags &(WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED | WIRE_ROUTINE_REUSES);
	new->seq = rec->seq;
	new->addr = rec->to;
	p = mempcpy(new + 1, v.name, v.rec->name_len);
	if (with_code)
		p = mempcpy(p, rec + 1, rec->code_len);
	p = (uint8_t *)new + base_align_up((size_t)(p - (uint8_t *)new), 8);
	rest = (size_t)(v.files - (const uint8_t *)v.lines) + v.files_len;
	memcpy(p, v.lines, rest);
	return new;
}

/* One that is over its process's quota stays so. */
static int move_nameless(struct dyn_registry *reg, uint32_t facility, const struct wire_move *rec,
			 const struct dyn_moment *m)
{
	uint32_t index;
	int r = dyn_facility_nameless(reg->facilities[facility], rec->to, rec->code_len, &index);

	return r < 0 ? r
		     : dyn_tenant_enter(&reg->tenants, index,
					rec->head.flags & WIRE_ROUTINE_REUSES ? DYN_REUSES : 0, m);
}

/* One that is not known moved in from among those that were missed: the list tells it. */
static int move(struct dyn_registry *reg, const struct wire_move *rec, const struct dyn_moment *m)
{
	struct dyn_tenants *t = &reg->tenants;
	uint32_t index = rec->handle ? dyn_tenant_handle(t, rec->from, rec->handle)
				     : dyn_routine_living(&t->routines, rec->from);
	struct wire_routine *new = NULL;
	struct wire_routine_view v;
	int r = 1;

	if (!place_good(rec->to, rec->code_len))
		return -EINVAL;
	if (!(rec->head.flags & WIRE_ROUTINE_CODE))
		dyn_tenant_codeless(t, rec->seq);
	if (index) {
		const struct dyn_routine old = *dyn_routine_get(&t->routines, index);

		if (!(old.flags & DYN_NAMELESS))
			new = moved(dyn_facility_record(reg->facilities[old.facility], &old), rec);
		dyn_tenant_retire(t, old.facility, old.addr, 1, old.seq, m);
		if (old.flags & DYN_NAMELESS)
			r = move_nameless(reg, old.facility, rec, m);
		else if (new &&wire_routine_parse(&new->head, &v) == 0)
			r = dyn_apply_routine(reg, &v, m);
	}
	/* Whoever it is that stands there now, it is nobody who stood there. */
	if (r) {
		dyn_tenant_clear(t, rec->to, rec->code_len, m);
		dyn_tenant_lost(t, m);
	}
	free(new);
	return r < 0 ? r : 0;
}

/* Its routines come behind it. */
static int object(struct dyn_registry *reg, const struct wire_object *rec,
		  const struct dyn_moment *m)
{
	int r;

	if (!place_good(rec->addr, rec->code_len))
		return -EINVAL;
	r = dyn_apply_object(reg, rec, m);
	if ((r == -ENOMEM || r == -DCPI_ELIMIT) && rec->head.flags & WIRE_ROUTINE_LISTED)
		reg->tenants.nr_lost_listed++;
	/* What stands there now is not known, but who stood there does not any more. */
	if (r < 0 && !(rec->head.flags & WIRE_ROUTINE_LISTED)) {
		dyn_tenant_clear(&reg->tenants, rec->addr, rec->code_len, m);
		dyn_tenant_lost(&reg->tenants, m);
	}
	return r;
}

static int begin(struct dyn_registry *reg, uint64_t seq, struct dyn_moment *m)
{
	if (!seq || seq <= reg->tenants.last_seq || seq == UINT64_MAX)
		return -EINVAL;
	m->seq = seq;
	dyn_tenant_reached(&reg->tenants, m, true);
	return 0;
}

int dyn_change_apply(struct dyn_registry *reg, const struct wire_head *h, struct dyn_moment *m)
{
	const struct wire_retire *gone = (const void *)h;
	const struct wire_object *obj = (const void *)h;
	const struct wire_listed *l = (const void *)h;
	const struct wire_move *mv = (const void *)h;
	int r;

	switch (h->type) {
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
		dyn_tenant_reached(&reg->tenants, m, false);
		dyn_tenant_listed(&reg->tenants, l);
		return 0;
	default:
		return 0;
	}
}
