/* SPDX-License-Identifier: BSD-2-Clause */
#include "dbgdyn_internal.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE 62u /* EM_X86_64 */
#elif defined(__aarch64__)
#define MACHINE 183u /* EM_AARCH64 */
#elif defined(__riscv)
#define MACHINE 243u /* EM_RISCV */
#else
#error "what ELF machine is this?"
#endif

#define FACILITIES_OFF ((size_t)WIRE_PAGE)
#define RANGES_OFF     (FACILITIES_OFF + WIRE_NR_FACILITIES * sizeof(struct wire_facility))
#define RING_OFF       (RANGES_OFF + WIRE_NR_RANGES * sizeof(struct wire_range))
static_assert(RING_OFF % WIRE_PAGE == 0, "the ring starts on a page");

/* The descriptor of the last registry opened: a fork's child, whose state is wiped, closes it. */
static struct dbgdyn_memory inherited = { .fd = -1 };

static uint64_t limit(int resource)
{
	struct rlimit l;

	if (getrlimit(resource, &l) < 0 || l.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return l.rlim_cur;
}

/*
 * A file longer than RLIMIT_FSIZE would kill the process (SIGXFSZ), and of a limited address space
 * we take a small part only. 0: even the smallest ring is too much.
 */
static size_t ring_len_allowed(void)
{
	uint64_t len = DBGDYN_RING_LEN, file = limit(RLIMIT_FSIZE), space = limit(RLIMIT_AS);

	if (space / 64 < len)
		len = space / 64 < DBGDYN_RING_MIN ? DBGDYN_RING_MIN : space / 64;
	if (file < RING_OFF + DBGDYN_RING_MIN)
		return 0;
	if (file - RING_OFF < len)
		len = file - RING_OFF;
	return (size_t)(len & ~(uint64_t)(WIRE_PAGE - 1));
}

static int open_memory(struct dbgdyn_memory *m, size_t *ring_len)
{
	for (*ring_len = ring_len_allowed(); *ring_len >= DBGDYN_RING_MIN;
	     *ring_len = *ring_len / 2 & ~(size_t)(WIRE_PAGE - 1))
		if (dbgdyn_memory_open(m, RING_OFF + *ring_len) == DBGDYN_OK)
			return DBGDYN_OK;
	return DBGDYN_ENOMEM;
}

/* Differs between processes, so that a context does not pass fork. 56 bits, never 0. */
static uint64_t make_generation(void)
{
	struct timespec now = { 0 };
	uint64_t v;

	clock_gettime(CLOCK_MONOTONIC, &now);
	v = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	v = (v ^ (uint64_t)getpid() << 40) * 0x9e3779b97f4a7c15ull;
	return v >> 8 | 1;
}

int dbgdyn_registry_open(struct dbgdyn_state *s)
{
	struct wire_registry *reg;
	size_t ring_len;

	if (s->generation)
		return DBGDYN_OK;
	if (dbgdyn_memory_same(inherited.fd, inherited.dev, inherited.ino))
		close(inherited.fd);
	inherited.fd = -1;
	if (open_memory(&s->memory, &ring_len) < 0)
		return DBGDYN_ENOMEM;
	inherited = s->memory;
	s->reg = reg = s->memory.base;
	s->facilities = (void *)((uint8_t *)reg + FACILITIES_OFF);
	s->ranges = (void *)((uint8_t *)reg + RANGES_OFF);
	s->ring = (uint8_t *)reg + RING_OFF;
	s->ring_len = ring_len;
	reg->version = WIRE_REGISTRY_VERSION;
	reg->header_len = WIRE_PAGE;
	reg->total_len = RING_OFF + ring_len;
	reg->facilities_off = FACILITIES_OFF;
	reg->ranges_off = RANGES_OFF;
	reg->ring_off = RING_OFF;
	reg->ring_len = ring_len;
	reg->machine = MACHINE;
	__atomic_store_n(&reg->magic, WIRE_REGISTRY_MAGIC, __ATOMIC_RELEASE);
	__atomic_store_n(&s->generation, make_generation(), __ATOMIC_RELEASE);
	return DBGDYN_OK;
}

bool dbgdyn_range_good(const void *base, size_t len)
{
	return base && len && (uintptr_t)base + len >= (uintptr_t)base;
}

int dbgdyn_range_add(struct dbgdyn_state *s, uint32_t facility, enum dbgdyn_kind kind,
		     const void *base, size_t len)
{
	struct wire_range *r = &s->ranges[s->nr_ranges];

	if (!len)
		return DBGDYN_OK;
	if (s->nr_ranges == WIRE_NR_RANGES)
		return DBGDYN_EFULL;
	r->facility = facility;
	r->base = (uintptr_t)base;
	r->len = len;
	r->flags = WIRE_RANGE_OWNED;
	__atomic_store_n(&r->kind, kind == DBGDYN_DST ? WIRE_RANGE_DST : WIRE_RANGE_CODE,
			 __ATOMIC_RELEASE);
	__atomic_store_n(&s->reg->nr_ranges, ++s->nr_ranges, __ATOMIC_RELEASE);
	return DBGDYN_OK;
}

int dbgdyn_facility_add(struct dbgdyn_state *s, const char *name, size_t name_len,
			const struct dbgdyn_options *opts, uint32_t *index)
{
	struct wire_facility *f = &s->facilities[s->nr_facilities];
	uint32_t nr_ranges = opts ? !!opts->code_len + !!opts->dst_len : 0;

	if (s->nr_facilities == WIRE_NR_FACILITIES || WIRE_NR_RANGES - s->nr_ranges < nr_ranges)
		return DBGDYN_EFULL;
	*index = s->nr_facilities;
	memcpy(f->name, name, name_len);
	f->name_len = (uint32_t)name_len;
	s->timeout_ms[*index] = opts && opts->timeout_ms ? opts->timeout_ms : DBGDYN_TIMEOUT_MS;
	__atomic_store_n(&f->state, WIRE_FACILITY_OPEN, __ATOMIC_RELEASE);
	__atomic_store_n(&s->reg->nr_facilities, ++s->nr_facilities, __ATOMIC_RELEASE);
	if (opts) {
		dbgdyn_range_add(s, *index, DBGDYN_CODE, opts->code_base, opts->code_len);
		dbgdyn_range_add(s, *index, DBGDYN_DST, opts->dst_base, opts->dst_len);
	}
	__atomic_store_n(&s->open[*index], 1, __ATOMIC_RELEASE);
	return DBGDYN_OK;
}

bool dbgdyn_attached(const struct dbgdyn_state *s)
{
	return __atomic_load_n(&s->reg->attached, __ATOMIC_ACQUIRE) != 0;
}
