/* SPDX-License-Identifier: BSD-2-Clause */
/* How large a registry may be, and where its parts stand. */
#include "dbgdyn_internal.h"

#include <sys/resource.h>

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
size_t dbgdyn_layout_space(void)
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

static size_t area_for(const struct dbgdyn_layout *l)
{
	/* Bits of 16 bytes; chains at all levels are less than two for each node and 64 a level. */
	return (size_t)l->nr_words * 32 + DBGDYN_NR_ARENAS * sizeof(struct dbgdyn_arena) +
	       (size_t)l->nr_nodes * sizeof(struct dbgdyn_node) +
	       (2 * (size_t)l->nr_nodes + 64 * DBGDYN_NR_LEVELS) * sizeof(uint32_t);
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
