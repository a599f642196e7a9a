/* SPDX-License-Identifier: BSD-2-Clause */
#include "sprofil_internal.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

/* ---- on a tick ----------------------------------------------------------------------------- */

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

/* ---- calls --------------------------------------------------------------------------------- */

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
