/* SPDX-License-Identifier: BSD-2-Clause */
/* sprofil and profil: ticks of all threads, counted in the tables of regions. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#include "sprofil_internal.h"

/* ---- regions: scale and elements, arithmetic alone ------------------------------------------- */

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

/* ---- on a tick ------------------------------------------------------------------------------- */

static int element_load(uint64_t vaddr, uint32_t element, uint64_t *value)
{
	unsigned char bytes[8] = { 0 };
	uint16_t half;
	uint32_t word;
	int ret = inprocess_copy_from(bytes, vaddr, element);

	if (ret < 0)
		return ret;
	memcpy(&half, bytes, sizeof(half));
	memcpy(&word, bytes, sizeof(word));
	memcpy(value, bytes, sizeof(*value));
	if (element < 8)
		*value = element == 2 ? half : word;
	return 0;
}

static int element_store(uint64_t vaddr, uint32_t element, uint64_t value)
{
	uint16_t half = (uint16_t)value;
	uint32_t word = (uint32_t)value;
	const void *from = element == 2 ? (void *)&half : element == 4 ? (void *)&word : &value;

	return inprocess_copy_to(vaddr, from, element);
}

static int element_add(uint64_t vaddr, uint32_t element, uint32_t nr)
{
	uint64_t old, new;
	int ret = element_load(vaddr, element, &old);

	if (ret < 0)
		return ret;
	new = sprofil_add(old, nr, element);
	return new == old ? 0 : element_store(vaddr, element, new);
}

static int on_tick(void *ctx, const struct inprocess_tick *tick)
{
	struct sprofil_table *table = ctx;
	uint64_t vaddr;
	int ret;

	if (!sprofil_table_find(table, tick->pc, &vaddr))
		return 0;
	inprocess_lock_take(&table->lock);
	ret = element_add(vaddr, table->element, tick->nr);
	inprocess_lock_drop(&table->lock);
	return ret == -EFAULT ? ret : 0;
}

/* Another thread of the parent may have held it. */
static void on_fork(void *ctx)
{
	struct sprofil_table *table = ctx;

	atomic_store(&table->lock.word, 0);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void table_free(struct sprofil_table *table)
{
	if (table)
		munmap(table, table->mapped_len);
}

static struct sprofil_table *table_new(size_t nr)
{
	struct sprofil_table *table;
	size_t len = sizeof(*table) + nr * sizeof(table->regions[0]);

	table = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		return NULL;
	table->mapped_len = len;
	table->client = (struct inprocess_client){ on_tick, on_fork, table };
	return table;
}

/* In pieces: the caller's array may be anywhere, so it is copied as a fault cannot be taken. */
static int table_read(struct sprofil_table *table, const struct prof *profp, size_t nr,
		      unsigned int flags)
{
	size_t len = nr * sizeof(*profp);
	struct prof *copy;
	int ret;

	copy = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return -ENOMEM;
	ret = inprocess_copy_from(copy, (uintptr_t)profp, len);
	if (!ret)
		ret = sprofil_table_fill(table, copy, nr, flags);
	munmap(copy, len);
	return ret;
}

static int tell_tick(struct timeval *tvp)
{
	uint64_t ns = inprocess_tick_ns();
	struct timeval tick = { .tv_sec = (time_t)(ns / 1000000000),
				.tv_usec = (suseconds_t)(ns % 1000000000 / 1000) };

	return tvp ? inprocess_copy_to((uintptr_t)tvp, &tick, sizeof(tick)) : 0;
}

static int table_set(struct sprofil_table *table)
{
	const struct inprocess_client *old = NULL;
	int ret = inprocess_set(table ? &table->client : NULL, SIGPROF, &old);

	if (old)
		table_free(old->ctx);
	return ret;
}

static int begin(const struct prof *profp, size_t nr, struct timeval *tvp, unsigned int flags)
{
	struct sprofil_table *table = table_new(nr);
	int ret;

	if (!table)
		return -ENOMEM;
	ret = table_read(table, profp, nr, flags);
	if (!ret)
		ret = tell_tick(tvp);
	if (!ret && (table->nr || table->has_overflow)) {
		ret = table_set(table);
		table = ret ? table : NULL;
	} else if (!ret) {
		ret = table_set(NULL);
	}
	table_free(table);
	return ret;
}

int sprofil_sprofil(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags)
{
	int ret;

	if (profcnt < 0 || profcnt > SPROFIL_MAX) {
		ret = -E2BIG;
	} else if (profcnt) {
		ret = begin(profp, (size_t)profcnt, tvp, flags);
	} else {
		ret = tell_tick(tvp);
		if (!ret)
			ret = table_set(NULL);
	}
	if (ret < 0)
		errno = -ret;
	return ret < 0 ? -1 : 0;
}

int sprofil_profil(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale)
{
	struct prof one = { buf, (unsigned int)bufsiz, (void *)offset, scale };

	if (bufsiz > UINT_MAX && scale > 1) {
		errno = EINVAL;
		return -1;
	}
	return sprofil_sprofil(&one, 1, NULL, PROF_USHORT);
}
