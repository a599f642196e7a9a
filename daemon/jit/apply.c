/* SPDX-License-Identifier: BSD-2-Clause */
/* What a reading brought, by records; those that change what lives go on to change.c. */
#include <errno.h>
#include <stdlib.h>

#include "jit_internal.h"
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

static int apply_range(struct dyn_registry *reg, const struct wire_range_rec *rec, uint64_t lo,
		       uint64_t hi)
{
	uint32_t facility = rec->range.facility;
	struct dyn_facility *f = facility < WIRE_NR_FACILITIES ? reg->facilities[facility] : NULL;
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
		      const struct dyn_poll *when)
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
	if (fresh->len > old->len && !dyn_capacity_take(reg, fresh->len - old->len))
		return -DCPI_ELIMIT;
	if (fresh->len < old->len)
		dyn_capacity_give_back(reg, old->len - fresh->len);
	base_buf_release(old);
	*old = *fresh;
	*fresh = (struct base_buf){ 0 };
	reg->facilities[range->range.facility]->owned_changed = true;
	return 0;
}

int dyn_apply_contents(struct dyn_registry *reg, struct dyn_range *range, const void *data,
		       size_t len, const struct dyn_poll *when)
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
		       const struct dyn_poll *when)
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
static void apply_time(struct dyn_registry *reg, const struct wire_time *t, struct dyn_interval *m,
		       const struct dyn_poll *trace)
{
	uint64_t time_ns = t->time_ns < trace->hi ? t->time_ns : trace->hi;

	m->lo = time_ns ? time_ns : trace->lo;
	m->hi = time_ns ? time_ns : trace->hi;
	if (time_ns > reg->announced_ns)
		reg->announced_ns = time_ns;
}

int dyn_apply(struct dyn_registry *reg, const void *data, size_t len, uint64_t lo, uint64_t hi)
{
	struct dyn_interval m = { .lo = lo, .hi = hi };
	const struct dyn_poll when = { hi, hi }, trace = { lo, hi };
	const struct wire_head *h;
	size_t pos = 0;
	int bad = 0;

	reg->nr_changes++;
	reg->lifetimes.nr_misses = 0;
	reg->lifetimes.reading = trace;
	while ((h = wire_next(data, len, &pos))) {
		int r = wire_check(h);

		if (r == 0 && h->type == WIRE_FACILITY)
			r = apply_facility(reg, (const void *)h);
		else if (r == 0 && h->type == WIRE_RANGE)
			r = apply_range(reg, (const void *)h, lo, hi);
		else if (r == 0 && h->type == WIRE_BYTES)
			r = apply_bytes(reg, (const void *)h, &when);
		else if (r == 0 && h->type == WIRE_TIME)
			apply_time(reg, (const void *)h, &m, &trace);
		else if (r == 0)
			r = dyn_change_apply(reg, h, &m);
		if (r == -ENOMEM || r == -DCPI_ELIMIT || r == -EDQUOT)
			reg->dyn->stats.records_dropped++;
		else if (r < 0)
			bad++;
	}
	m.seq = reg->lifetimes.last_seq;
	dyn_lifetime_sweep(&reg->lifetimes, &m);
	return bad + (pos != len);
}
