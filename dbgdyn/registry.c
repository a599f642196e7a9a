/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry: laid out, made, opened in a child of fork, closed; the ranges of its facilities. */
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "dbgdyn_internal.h"

/* ---- the layout ------------------------------------------------------------------------------ */

#define FIXED                                                                                      \
	(WIRE_PAGE + WIRE_NR_FACILITIES * sizeof(struct wire_facility) +                           \
	 WIRE_NR_RANGES * sizeof(struct wire_range))
static_assert(FIXED % WIRE_PAGE == 0, "what follows starts on a page");

#define WORDS_LEN   ((size_t)WIRE_NR_WORDS * sizeof(uint32_t))
#define TOTAL_MAX   (FIXED + WORDS_LEN + DBGDYN_RING_LEN + DBGDYN_HEAP_LEN)
#define SPACE_SHARE 16 /* the part of limited memory that we take at most */

static uint64_t limit(int resource)
{
	struct rlimit l;

	if (getrlimit(resource, &l) < 0 || l.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return l.rlim_cur;
}

static size_t whole_pages(size_t len)
{
	return len & ~(size_t)(WIRE_PAGE - 1);
}

static size_t least(uint64_t a, uint64_t b)
{
	return (size_t)(a < b ? a : b);
}

/* Take only a small part of a limited address space or of private memory. */
static size_t dbgdyn_layout_space(void)
{
	uint64_t space = limit(RLIMIT_AS), data = limit(RLIMIT_DATA);

	space = space < data ? space : data;
	if (space != UINT64_MAX)
		space = FIXED + space / SPACE_SHARE;
	return least(space, TOTAL_MAX);
}

/* A file longer than RLIMIT_FSIZE would kill the process (SIGXFSZ). */
size_t dbgdyn_layout_allowed(void)
{
	return least(limit(RLIMIT_FSIZE), dbgdyn_layout_space());
}

/* A power of two. */
static uint32_t nodes_for(size_t heap_len)
{
	size_t wanted = heap_len / (2 * WIRE_SLOT_ALIGN), n = 32;

	while (n < wanted)
		n *= 2;
	return (uint32_t)n;
}

/* Whole pages. */
static size_t area_for(const struct dbgdyn_layout *l)
{
	/* Bits of 16 bytes; chains at all levels are less than two for each node and 64 a level. */
	return whole_pages((size_t)l->nr_words * 32 +
			   DBGDYN_NR_ARENAS * sizeof(struct dbgdyn_arena) +
			   (size_t)l->nr_nodes * sizeof(struct dbgdyn_node) +
			   (2 * (size_t)l->nr_nodes + 64 * DBGDYN_NR_LEVELS) * sizeof(uint32_t) +
			   WIRE_PAGE - 1);
}

bool dbgdyn_layout_make(struct dbgdyn_layout *l, size_t total_len)
{
	size_t words_len = WORDS_LEN, rest;

	if (total_len < FIXED + DBGDYN_WORDS_MIN * 4 + DBGDYN_RING_MIN + WIRE_PAGE)
		return false;
	rest = least(total_len, TOTAL_MAX) - FIXED;
	while (words_len > rest / 8 && words_len > DBGDYN_WORDS_MIN * 4)
		words_len /= 2;
	rest -= words_len;
	*l = (struct dbgdyn_layout){ .words_off = FIXED, .nr_words = (uint32_t)(words_len / 4) };
	l->ring_len = whole_pages(least(rest / 4, DBGDYN_RING_LEN));
	if (l->ring_len < DBGDYN_RING_MIN)
		l->ring_len = DBGDYN_RING_MIN;
	l->heap_len = whole_pages(least(rest - l->ring_len, DBGDYN_HEAP_LEN));
	l->ring_off = FIXED + words_len;
	l->heap_off = l->ring_off + l->ring_len;
	l->total_len = l->heap_off + l->heap_len;
	l->nr_nodes = nodes_for(l->heap_len);
	l->area_len = area_for(l);
	return true;
}

/* ---- the registry ---------------------------------------------------------------------------- */

/* The descriptor of the last registry opened: a fork's child, whose state is wiped, closes it. */
static struct dbgdyn_memory inherited = { .fd = -1 };
/* Fork copies it, and does not wipe it. */
static _Alignas(16) struct wire_inherited inherited_code;

/*
 * Differs between processes, so that a context does not pass fork. 56 bits, never 0. The registry's
 * inode number is of no other one that lives; a clock would cost a page fault or two.
 */
static uint64_t make_generation(const struct dbgdyn_state *s)
{
	uint64_t v = (uint64_t)s->memory.ino ^ (uint64_t)s->pid << 40 ^ (uintptr_t)s->reg;

	return v * 0x9e3779b97f4a7c15ull >> 8 | 1;
}

/* The private area: what came with the state where that is large enough, else one of its own. */
static void *area_take(struct dbgdyn_state *s, const struct dbgdyn_layout *l)
{
	bool wiped;

	if (!s->area_len || s->area_len < l->area_len)
		return dbgdyn_memory_page(l->area_len, &wiped);
	return (uint8_t *)s - s->area_len;
}

static void memory_close(struct dbgdyn_memory *m)
{
	munmap(m->base, m->len);
	close(m->fd);
}

/* Map @fd, which is taken, with a private area beside it. */
static int open_both(struct dbgdyn_state *s, const struct dbgdyn_layout *l, int fd, void **area)
{
	int r = fd < 0 ? DBGDYN_ENOMEM : dbgdyn_memory_map(&s->memory, fd, l->total_len);

	if (r < 0)
		return r;
	/* Only what another process made can be in use already. */
	if (((struct wire_registry *)s->memory.base)->magic)
		r = DBGDYN_EINVAL;
	else if (!(*area = area_take(s, l)))
		r = DBGDYN_ENOMEM;
	if (r < 0)
		memory_close(&s->memory);
	return r;
}

/* Open a registry that another process made for us, as far as our address space allows. */
static int open_given(struct dbgdyn_state *s, int given, struct dbgdyn_layout *l, void **area)
{
	size_t len = 0, space = dbgdyn_layout_space();
	int fd = dbgdyn_memory_accept(given, &len);

	if (fd >= 0 && !dbgdyn_layout_make(l, len < space ? len : space)) {
		close(fd);
		fd = -1;
	}
	return fd < 0 ? DBGDYN_EINVAL : open_both(s, l, fd, area);
}

static int open_memory(struct dbgdyn_state *s, struct dbgdyn_layout *l, void **area)
{
	size_t allowed = s->allowed_len ? s->allowed_len : dbgdyn_layout_allowed();

	/* A later begin may find other limits. */
	s->allowed_len = 0;
	for (size_t len = allowed; dbgdyn_layout_make(l, len); len /= 2)
		if (open_both(s, l, dbgdyn_memory_make(l->total_len), area) == DBGDYN_OK)
			return DBGDYN_OK;
	return DBGDYN_ENOMEM;
}

/* Divide the private area. */
static void area_init(struct dbgdyn_state *s, const struct dbgdyn_layout *l, uint8_t *area)
{
	s->used = (void *)area;
	area += (size_t)l->nr_words * 32;
	s->arenas = (void *)area;
	area += DBGDYN_NR_ARENAS * sizeof(struct dbgdyn_arena);
	s->nodes = (void *)area;
	s->nr_nodes = l->nr_nodes;
	area += (size_t)l->nr_nodes * sizeof(struct dbgdyn_node);
	for (int i = 0; i < DBGDYN_NR_LEVELS; i++) {
		uint32_t nr = l->nr_nodes >> 2 * i;

		s->nr_live_chains[i] = nr < 64 ? 64 : nr;
		s->live[i] = (void *)area;
		area += s->nr_live_chains[i] * sizeof(uint32_t);
	}
}

static void state_init(struct dbgdyn_state *s, const struct dbgdyn_layout *l)
{
	uint8_t *base = s->memory.base;

	s->pid = (uint32_t)getpid();
	s->reg = s->memory.base;
	s->facilities = (void *)(base + WIRE_PAGE);
	s->ranges = (void *)(s->facilities + WIRE_NR_FACILITIES);
	s->words = (void *)(base + l->words_off);
	s->nr_words = l->nr_words;
	s->ring = base + l->ring_off;
	s->ring_len = l->ring_len;
	s->heap = base + l->heap_off;
	s->heap_len = l->heap_len;
}

static void header_init(const struct dbgdyn_state *s, const struct dbgdyn_layout *l,
			uint64_t number)
{
	struct wire_registry *reg = s->reg;
	uintptr_t base = (uintptr_t)reg;

	reg->version = WIRE_REGISTRY_VERSION;
	reg->header_len = WIRE_PAGE;
	reg->total_len = l->total_len;
	reg->facilities_off = (uintptr_t)s->facilities - base;
	reg->ranges_off = (uintptr_t)s->ranges - base;
	reg->ring_off = l->ring_off;
	reg->ring_len = l->ring_len;
	reg->machine = DBGDYN_MACHINE;
	reg->nr_words = l->nr_words;
	reg->words_off = l->words_off;
	reg->words_addr = (uintptr_t)s->words;
	reg->seq_addr = (uintptr_t)&reg->seq;
	reg->number = number;
	reg->inherited_addr = (uintptr_t)&inherited_code;
	reg->inherited = inherited_code;
	reg->heap_off = l->heap_off;
	reg->heap_len = l->heap_len;
	__atomic_store_n(&reg->magic, WIRE_REGISTRY_MAGIC, __ATOMIC_RELEASE);
}

void dbgdyn_inherited_announce(uint64_t seq)
{
	__atomic_store_n(&inherited_code.seq, seq, __ATOMIC_RELEASE);
}

int dbgdyn_registry_open(struct dbgdyn_state *s, const struct dbgdyn_options *opts)
{
	struct dbgdyn_layout l;
	uint64_t number;
	void *area;
	int r;

	if (s->generation)
		return DBGDYN_OK;
	if (dbgdyn_memory_same(inherited.fd, inherited.dev, inherited.ino))
		close(inherited.fd);
	inherited.fd = -1;
	if (opts && opts->flags & DBGDYN_REGISTRY_FD)
		r = open_given(s, opts->registry_fd, &l, &area);
	else
		r = open_memory(s, &l, &area);
	if (r < 0)
		return r;
	inherited = s->memory;
	s->all_used = inherited_code.registry != 0;
	state_init(s, &l);
	area_init(s, &l, area);
	number = make_generation(s);
	header_init(s, &l, number);
	dbgdyn_inherited_announce(0);
	__atomic_store_n(&inherited_code.registry, number, __ATOMIC_RELEASE);
	__atomic_store_n(&s->generation, number, __ATOMIC_RELEASE);
	return DBGDYN_OK;
}

bool dbgdyn_range_good(const void *base, size_t len)
{
	return base && len && (uintptr_t)base + len >= (uintptr_t)base;
}

int dbgdyn_range_add(struct dbgdyn_state *s, uint32_t facility, enum wire_range_kind kind,
		     uint64_t base, uint64_t len)
{
	struct wire_range *r = &s->ranges[s->nr_ranges];

	if (!len)
		return DBGDYN_OK;
	if (s->nr_ranges == WIRE_NR_RANGES)
		return DBGDYN_EFULL;
	r->facility = facility;
	r->base = base;
	r->len = len;
	r->flags = kind == WIRE_RANGE_ARENA ? 0 : WIRE_RANGE_OWNED;
	__atomic_store_n(&r->kind, (uint32_t)kind, __ATOMIC_RELEASE);
	__atomic_store_n(&s->reg->nr_ranges, ++s->nr_ranges, __ATOMIC_RELEASE);
	return DBGDYN_OK;
}

bool dbgdyn_attached(const struct dbgdyn_state *s)
{
	return __atomic_load_n(&s->reg->attached, __ATOMIC_ACQUIRE) != 0;
}
