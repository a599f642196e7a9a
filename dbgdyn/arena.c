/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of generations and bits of used addresses, which the sampler reads. */
#include "dbgdyn_internal.h"

/* No process has code beyond. */
#define VADDR_MAX  (1ull << 62)
#define USED_SHIFT 4 /* bytes of code to a bit: 16 */
#define PAGE_WORDS (WIRE_PAGE / sizeof(uint32_t))
/* Masks of 64 bits each, for the addresses of a word. */
#define BLOCK_MASKS (1u << (WIRE_BLOCK_SHIFT - USED_SHIFT - 6))

static uint64_t blocks_of(uint64_t addr, uint64_t len)
{
	return ((addr + len - 1) >> WIRE_BLOCK_SHIFT) - (addr >> WIRE_BLOCK_SHIFT) + 1;
}

void dbgdyn_words_move(struct dbgdyn_state *s, uint64_t addr, uint64_t len, uint64_t seq)
{
	uint64_t first = addr >> WIRE_BLOCK_SHIFT, nr = blocks_of(addr, len);

	if (nr > s->nr_words)
		nr = s->nr_words;
	for (uint64_t i = 0; i < nr; i++)
		__atomic_store_n(&s->words[(first + i) & (s->nr_words - 1)], (uint32_t)seq,
				 __ATOMIC_RELEASE);
}

/* The sampler reads in an interrupt, where a page that is not there cannot be brought. */
static void words_touch(const struct dbgdyn_state *s, uint64_t addr, uint64_t len)
{
	uint64_t first = addr >> WIRE_BLOCK_SHIFT, nr = blocks_of(addr, len);

	if (nr > s->nr_words)
		nr = s->nr_words;
	for (uint64_t i = 0; i < nr; i += PAGE_WORDS)
		(void)__atomic_load_n(&s->words[(first + i) & (s->nr_words - 1)], __ATOMIC_RELAXED);
	(void)__atomic_load_n(&s->words[(first + nr - 1) & (s->nr_words - 1)], __ATOMIC_RELAXED);
}

bool dbgdyn_used_mark(struct dbgdyn_state *s, uint64_t addr, uint64_t len)
{
	uint64_t nr_bits = (uint64_t)s->nr_words << (WIRE_BLOCK_SHIFT - USED_SHIFT);
	uint64_t bit = addr >> USED_SHIFT, nr = ((addr + len - 1) >> USED_SHIFT) - bit + 1;
	uint64_t before = 0;

	if (s->all_used)
		return true;
	for (nr = nr < nr_bits ? nr : nr_bits; nr;) {
		uint64_t at = bit & (nr_bits - 1), off = at % 64;
		uint64_t here = nr < 64 - off ? nr : 64 - off;
		uint64_t mask = (here == 64 ? UINT64_MAX : (1ull << here) - 1) << off;

		before |= s->used[at / 64] & mask;
		s->used[at / 64] |= mask;
		bit += here;
		nr -= here;
	}
	return before != 0;
}

/* Whether something was ever registered in this block, or in one that shares its word. */
static bool block_used(const struct dbgdyn_state *s, uint64_t block)
{
	const uint64_t *used = &s->used[(block & (s->nr_words - 1)) * BLOCK_MASKS];
	uint64_t any = s->all_used;

	for (unsigned int i = 0; i < BLOCK_MASKS; i++)
		any |= used[i];
	return any != 0;
}

bool dbgdyn_used_find(const struct dbgdyn_state *s, uint64_t addr, uint64_t len)
{
	uint64_t first = addr >> WIRE_BLOCK_SHIFT, nr = blocks_of(addr, len);

	for (uint64_t i = 0; i < nr && i < s->nr_words; i++)
		if (block_used(s, first + i))
			return true;
	return false;
}

void dbgdyn_used_move(struct dbgdyn_state *s, uint64_t addr, uint64_t len, uint64_t seq)
{
	uint64_t first = addr >> WIRE_BLOCK_SHIFT, nr = blocks_of(addr, len);

	for (uint64_t i = 0; i < nr && i < s->nr_words; i++)
		if (block_used(s, first + i))
			dbgdyn_words_move(s, (first + i) << WIRE_BLOCK_SHIFT, 1, seq);
}

/* How many begin at or below @addr. */
static uint32_t arenas_below(const struct dbgdyn_state *s, uint64_t addr)
{
	uint32_t low = 0, high = s->nr_arenas;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (s->arenas[mid].base <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint64_t grown(uint64_t len, uint64_t neighbour)
{
	uint64_t twice = neighbour < DBGDYN_ARENA_MAX / 2 ? neighbour * 2 : DBGDYN_ARENA_MAX;

	return len > twice ? len : twice;
}

/*
 * An arena for [addr, end), of which nothing is told: between neighbours @at - 1 and @at. What adds
 * to a neighbour is made twice as long as that, so that code growing on and on stays a few ranges.
 */
static struct dbgdyn_arena arena_plan(const struct dbgdyn_state *s, uint32_t at, uint64_t addr,
				      uint64_t end)
{
	const uint64_t mask = DBGDYN_ARENA_LEN - 1;
	uint64_t low = at ? s->arenas[at - 1].end : 0;
	uint64_t high = at < s->nr_arenas ? s->arenas[at].base : VADDR_MAX;
	struct dbgdyn_arena a = { addr & ~mask, (end + mask) & ~mask };

	if (a.base <= low && at)
		a.end = low + grown(a.end - low, low - s->arenas[at - 1].base);
	else if (a.end >= high && at < s->nr_arenas)
		a.base = high - grown(high - a.base, s->arenas[at].end - high);
	/* Above it by an underflow. */
	if (a.base < low || a.base > addr)
		a.base = low;
	if (a.end > high)
		a.end = high;
	return a;
}

static bool arena_add(struct dbgdyn_state *s, uint32_t facility, uint32_t at, uint64_t addr,
		      uint64_t end)
{
	struct dbgdyn_arena a = arena_plan(s, at, addr, end);

	if (s->nr_arenas == DBGDYN_NR_ARENAS ||
	    dbgdyn_range_add(s, facility, WIRE_RANGE_ARENA, a.base, a.end - a.base) < 0) {
		s->arenas_full = 1;
		return false;
	}
	memmove(&s->arenas[at + 1], &s->arenas[at], (s->nr_arenas - at) * sizeof(a));
	s->arenas[at] = a;
	s->nr_arenas++;
	s->last_arena = at;
	return true;
}

bool dbgdyn_arena_tell(struct dbgdyn_state *s, uint32_t facility, uint64_t addr, uint64_t len)
{
	uint64_t end = addr + len;
	const struct dbgdyn_arena *last = &s->arenas[s->last_arena];
	bool news = false;

	words_touch(s, addr, len);
	if (end > VADDR_MAX)
		return false;
	if (last->base <= addr && end <= last->end)
		return false;
	while (addr < end && !s->arenas_full) {
		uint32_t at = arenas_below(s, addr);

		if (at && addr < s->arenas[at - 1].end) {
			s->last_arena = at - 1;
			addr = s->arenas[at - 1].end;
			continue;
		}
		news |= arena_add(s, facility, at, addr, end);
	}
	return news;
}
