/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions, scale and elements: arithmetic alone. */
#include "sprofil_internal.h"

#include <errno.h>

enum { POINT = 16, OVERFLOW_SCALE = 2 };

static uint32_t element_size(unsigned int flags)
{
	switch (flags) {
	case PROF_USHORT:
		return 2;
	case PROF_UINT:
		return 4;
	case PROF_UINT64:
		return 8;
	default:
		return 0;
	}
}

static uint64_t vaddr(const void *p)
{
	return (uintptr_t)p;
}

static bool is_overflow(const struct prof *entry)
{
	return !entry->pr_offset && entry->pr_scale == OVERFLOW_SCALE;
}

/* The regions' order is that of the array: ascending, none begins in the one before. */
static int region_add(struct sprofil_table *table, const struct prof *entry)
{
	struct sprofil_region *r = &table->regions[table->nr];
	uint64_t fixed = (uint64_t)entry->pr_size << POINT; /* below 2^48 */

	r->start = vaddr(entry->pr_offset);
	r->base = vaddr(entry->pr_base);
	r->scale = entry->pr_scale;
	/* The first distance whose product is beyond the array. */
	r->len = (fixed + r->scale - 1) / r->scale;
	if (table->nr && (r->start < r[-1].start || r->start - r[-1].start < r[-1].len))
		return -EINVAL;
	table->nr++;
	return 0;
}

static int entry_add(struct sprofil_table *table, const struct prof *entry)
{
	/* (2^46 * pr_scale) / 65536 */
	uint64_t limit = ((uint64_t)1 << (46 - POINT)) * entry->pr_scale;

	if (!entry->pr_size || entry->pr_size > limit || entry->pr_size % table->element)
		return -EINVAL;
	if (table->has_overflow) /* it has to be the last */
		return -EINVAL;
	if (!is_overflow(entry))
		return region_add(table, entry);
	if (entry->pr_size != table->element)
		return -EINVAL;
	table->has_overflow = true;
	table->overflow = vaddr(entry->pr_base);
	return 0;
}

int sprofil_table_fill(struct sprofil_table *table, const struct prof *entries, size_t nr,
		       unsigned int flags)
{
	table->nr = 0;
	table->has_overflow = false;
	table->element = element_size(flags);
	if (!table->element)
		return -EINVAL;
	for (size_t i = 0; i < nr; i++) {
		if (entries[i].pr_scale > 1 && entry_add(table, &entries[i]) < 0)
			return -EINVAL;
	}
	return 0;
}

static const struct sprofil_region *region_at(const struct sprofil_table *table, uint64_t pc)
{
	size_t low = 0, high = table->nr; /* the last that starts at or below pc is below high */

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (table->regions[mid].start <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? &table->regions[low - 1] : NULL;
}

bool sprofil_table_find(const struct sprofil_table *table, uint64_t pc, uint64_t *element)
{
	const struct sprofil_region *r = region_at(table, pc);
	uint64_t offset;

	if (!r || pc - r->start >= r->len) {
		*element = table->overflow;
		return table->has_overflow;
	}
	/* Inside the region the product is below pr_size << 16: 64 bits are enough. */
	offset = ((pc - r->start) * r->scale) >> POINT;
	*element = r->base + (offset & ~(uint64_t)(table->element - 1));
	return true;
}

uint64_t sprofil_add(uint64_t value, uint32_t nr, uint32_t element)
{
	uint64_t max = element == 8 ? UINT64_MAX : ((uint64_t)1 << (8 * element)) - 1;

	return nr > max - value ? max : value + nr;
}
