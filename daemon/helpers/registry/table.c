/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of a registry (facilities, ranges) are read. */
#include <errno.h>
#include <stdlib.h>

#include "registry_internal.h"

static int put_facility(struct parse *p, uint32_t index, const struct wire_facility *f)
{
	struct wire_facility_rec *rec;
	int r;

	if (f->state == WIRE_FACILITY_FREE)
		return 0;
	if (f->state > WIRE_FACILITY_ENDED || !f->name_len || f->name_len > WIRE_FACILITY_NAME) {
		p->nr_bad++;
		return 0;
	}
	r = registry_record_new(p->out, WIRE_FACILITY, sizeof(*rec) + f->name_len, &rec);
	if (r < 0)
		return r;
	rec->index = index;
	rec->state = f->state;
	rec->name_len = f->name_len;
	rec->machine = p->h.machine;
	memcpy(rec + 1, f->name, f->name_len);
	p->state[index] = (uint8_t)f->state;
	return 0;
}

static int put_range(struct parse *p, uint32_t index, const struct wire_range *range)
{
	struct wire_range_rec *rec;
	int r;

	if (range->kind == WIRE_RANGE_NONE)
		return 0;
	if (range->kind > WIRE_RANGE_ARENA || !registry_facility_usable(p, range->facility) ||
	    !registry_vaddr_good(range->base, range->len)) {
		p->nr_bad++;
		return 0;
	}
	r = registry_record_new(p->out, WIRE_RANGE, sizeof(*rec), &rec);
	if (r < 0)
		return r;
	rec->index = index;
	rec->range = *range;
	rec->range.flags &= range->kind == WIRE_RANGE_ARENA ? 0 : WIRE_RANGE_OWNED;
	rec->range.reserved = 0;
	return 0;
}

/* Slot counts above the tables' sizes are lies; what the tables hold is read all the same. */
static uint32_t slots(struct parse *p, uint32_t nr, uint32_t max)
{
	if (nr <= max)
		return nr;
	p->nr_bad++;
	return max;
}

int registry_table_put(struct parse *p)
{
	uint32_t nr_facilities = slots(p, p->h.nr_facilities, WIRE_NR_FACILITIES);
	uint32_t nr_ranges = slots(p, p->h.nr_ranges, WIRE_NR_RANGES);
	union {
		struct wire_facility facility[WIRE_NR_FACILITIES];
		struct wire_range range[WIRE_NR_RANGES];
	} *t = malloc(sizeof(*t));
	int r = t ? 0 : -ENOMEM;

	if (r == 0)
		r = base_read_at(p->fd, p->h.facilities_off, t->facility,
				 nr_facilities * sizeof(t->facility[0]));
	for (uint32_t i = 0; r == 0 && i < nr_facilities; i++)
		r = put_facility(p, i, &t->facility[i]);
	if (r == 0)
		r = base_read_at(p->fd, p->h.ranges_off, t->range, nr_ranges * sizeof(t->range[0]));
	for (uint32_t i = 0; r == 0 && i < nr_ranges; i++)
		r = put_range(p, i, &t->range[i]);
	free(t);
	return r;
}
