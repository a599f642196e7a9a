/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code by its address: the words of generations and bits of used addresses, which the sampler
 * reads; what lives there; and the calls by which it moves and ends.
 */
#include "dbgdyn_internal.h"

/* ---- what the sampler must know of addresses ------------------------------------------------- */

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

/* With the lock held: whether something was ever registered nearby, at the granularity of words. */
static bool used_find(const struct dbgdyn_state *s, uint64_t addr, uint64_t len)
{
	uint64_t first = addr >> WIRE_BLOCK_SHIFT, nr = blocks_of(addr, len);

	for (uint64_t i = 0; i < nr && i < s->nr_words; i++)
		if (block_used(s, first + i))
			return true;
	return false;
}

/* Move the words of those addresses where it was. */
static void used_move(struct dbgdyn_state *s, uint64_t addr, uint64_t len, uint64_t seq)
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

/* ---- what lives ------------------------------------------------------------------------------ */

/*
 * Live code is in chains of the nodes that begin in one granule, at the level whose granules
 * are as long as the node's code or longer. So a node that overlaps an address begins in the
 * address's granule of some level, or in the granule before. Distant granules may share a chain.
 */
static const uint8_t shifts[DBGDYN_NR_LEVELS] = { 8, 12, 16, 20, 24, 30 };
static_assert(DBGDYN_OBJECT_MAX <= 1u << 30, "the highest level holds what is longest");

static int level_of(uint32_t code_len)
{
	int level = 0;

	while (code_len > 1u << shifts[level])
		level++;
	return level;
}

static uint32_t *chain_of(struct dbgdyn_state *s, int level, uint64_t granule)
{
	return &s->live[level][granule & (s->nr_live_chains[level] - 1)];
}

void dbgdyn_live_add(struct dbgdyn_state *s, struct dbgdyn_node *n)
{
	int level = level_of(n->code_len);
	uint32_t *chain = chain_of(s, level, n->addr >> shifts[level]);

	n->next = *chain;
	*chain = (uint32_t)(n - s->nodes) + 1;
	s->nr_live[level]++;
}

static void live_remove(struct dbgdyn_state *s, const struct dbgdyn_node *n)
{
	int level = level_of(n->code_len);
	uint32_t *link = chain_of(s, level, n->addr >> shifts[level]);

	for (; *link; link = &s->nodes[*link - 1].next)
		if (&s->nodes[*link - 1] == n) {
			*link = n->next;
			s->nr_live[level]--;
			return;
		}
}

/* The search: [addr, end), and, unless it is -1, of @facility and beginning there. */
struct search {
	uint64_t addr, end;
	int64_t facility;
	uint32_t found;
};

static bool matches(const struct search *q, const struct dbgdyn_node *n)
{
	if (n->addr >= q->end || n->addr + n->code_len <= q->addr)
		return false;
	return q->facility < 0 || (n->facility == q->facility && n->addr >= q->addr);
}

static void take_chain(struct dbgdyn_state *s, int level, uint64_t granule, struct search *q)
{
	uint32_t *link = chain_of(s, level, granule);

	while (*link) {
		uint32_t i = *link;
		struct dbgdyn_node *n = &s->nodes[i - 1];

		if (!matches(q, n)) {
			link = &n->next;
			continue;
		}
		*link = n->next;
		n->next = q->found;
		q->found = i;
		s->nr_live[level]--;
	}
}

static uint32_t take(struct dbgdyn_state *s, struct search *q)
{
	for (int level = 0; level < DBGDYN_NR_LEVELS; level++) {
		uint64_t first = q->addr >> shifts[level], last = (q->end - 1) >> shifts[level];

		if (!s->nr_live[level])
			continue;
		first -= first > 0;
		/* Further on come the same chains again. */
		if (last - first >= s->nr_live_chains[level])
			last = first + s->nr_live_chains[level] - 1;
		for (uint64_t g = first; g <= last && s->nr_live[level]; g++)
			take_chain(s, level, g, q);
	}
	return q->found;
}

uint32_t dbgdyn_live_take(struct dbgdyn_state *s, uint64_t addr, uint64_t len)
{
	return take(s, &(struct search){ .addr = addr, .end = addr + len, .facility = -1 });
}

/* The same for those of @facility that begin there. */
static uint32_t live_take_of(struct dbgdyn_state *s, uint32_t facility, uint64_t addr, uint64_t len)
{
	return take(s, &(struct search){ .addr = addr, .end = addr + len, .facility = facility });
}

/* ---- moves ----------------------------------------------------------------------------------- */

static void tell_move(struct dbgdyn_change *c, const struct dbgdyn_node *n, uint64_t to,
		      uint16_t flags)
{
	size_t code_len = n->code_len, len = (sizeof(struct wire_move) + code_len + 7) & ~(size_t)7;
	struct wire_move *m;

	if (!c->asked)
		return;
	m = dbgdyn_change_reserve(c, len);
	if (!m) {
		code_len = 0;
		len = sizeof(*m);
		m = dbgdyn_change_reserve(c, len);
	}
	if (!m) {
		dbgdyn_change_turn(c, len);
		return;
	}
	if (code_len)
		flags |= WIRE_ROUTINE_CODE;
	memset((uint8_t *)m + len - 8, 0, 8); /* padding */
	*m = (struct wire_move){ .head = { (uint32_t)len, WIRE_MOVE, flags },
				 .facility = c->facility,
				 .seq = c->seq,
				 .handle = n->seq,
				 .from = n->addr,
				 .to = to,
				 .code_len = n->code_len };
	memcpy(m + 1, (const void *)(uintptr_t)to, code_len);
	dbgdyn_change_tell(c, len);
}

/* The slot's record from now on: the same at another place. */
static void list_move(struct dbgdyn_change *c, struct dbgdyn_node *n, uint64_t to, uint16_t flags)
{
	struct wire_routine *rec = dbgdyn_slot_begin(c->s, n);

	rec->head.flags = flags | (rec->head.flags & WIRE_ROUTINE_FRAMES);
	rec->seq = c->seq;
	rec->addr = to;
	dbgdyn_slot_end(c->s, n);
	dbgdyn_words_move(c->s, n->addr, n->code_len, c->seq);
	n->addr = to;
	n->seq = c->seq;
	dbgdyn_live_add(c->s, n);
}

static void move(struct dbgdyn_change *c, struct dbgdyn_node *n, uint64_t to)
{
	struct dbgdyn_state *s = c->s;
	uint16_t flags = 0;
	uint32_t replaced;

	dbgdyn_change_number(c);
	live_remove(s, n);
	replaced = dbgdyn_live_take(s, to, n->code_len);
	if (dbgdyn_used_mark(s, to, n->code_len))
		flags = WIRE_ROUTINE_REUSES;
	c->bell = dbgdyn_arena_tell(s, c->facility, to, n->code_len) && c->asked;
	tell_move(c, n, to, flags);
	dbgdyn_change_close(c, replaced);
	list_move(c, n, to, flags);
	if (flags)
		dbgdyn_words_move(s, to, n->code_len, c->seq);
}

/* 1 where a doorbell is due. */
static int routine_move(struct dbgdyn_state *s, uint32_t facility, uint64_t handle,
			const void *code)
{
	struct dbgdyn_change c;
	struct dbgdyn_node *n;
	int result = dbgdyn_change_begin(&c, s, facility);

	if (result < 0)
		return result;
	n = dbgdyn_handle_find(s, facility, handle, &result);
	if (n && (n->type != WIRE_ROUTINE || n->sibling || !dbgdyn_range_good(code, n->code_len)))
		result = DBGDYN_EINVAL;
	if (result < 0) {
		dbgdyn_unlock(s);
		return result;
	}
	move(&c, n, (uintptr_t)code);
	return dbgdyn_change_commit(&c);
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* @handle 0: what begins in [addr, addr + len). */
static void tell_end(struct dbgdyn_change *c, uint64_t handle, uint64_t addr, uint64_t len)
{
	struct wire_retire *rec = dbgdyn_change_reserve(c, sizeof(*rec));

	if (!rec)
		return;
	*rec = (struct wire_retire){ .head = { sizeof(*rec), WIRE_RETIRE, 0 },
				     .facility = c->facility,
				     .seq = c->seq,
				     .handle = handle,
				     .addr = addr,
				     .code_len = len };
	dbgdyn_change_tell(c, sizeof(*rec));
}

/* 1 where a doorbell is due. */
static int routine_retire(struct dbgdyn_state *s, uint32_t facility, uint64_t handle)
{
	struct dbgdyn_change c;
	struct dbgdyn_node *n;
	int result = dbgdyn_change_begin(&c, s, facility);

	if (result < 0)
		return result;
	n = dbgdyn_handle_find(s, facility, handle, &result);
	if (!n) {
		dbgdyn_unlock(s);
		return result;
	}
	while (n) {
		struct dbgdyn_node *more = n->sibling ? &s->nodes[n->sibling - 1] : NULL;

		dbgdyn_change_number(&c);
		live_remove(s, n);
		tell_end(&c, n->seq, n->addr, n->code_len);
		n->next = 0;
		dbgdyn_change_close(&c, (uint32_t)(n - s->nodes) + 1);
		n = more;
	}
	return dbgdyn_change_commit(&c);
}

/* 1 where a doorbell is due. */
static int code_retire(struct dbgdyn_state *s, uint32_t facility, const void *code, size_t len)
{
	struct dbgdyn_change c;
	uint32_t chain;
	bool unlisted;
	int result;

	if (!dbgdyn_range_good(code, len))
		return DBGDYN_EINVAL;
	result = dbgdyn_change_begin(&c, s, facility);
	if (result < 0)
		return result;
	chain = live_take_of(s, facility, (uintptr_t)code, len);
	/* Code that did not fit into the heap may be at any address that was ever used. */
	unlisted = s->nr_unlisted && used_find(s, (uintptr_t)code, len);
	if (!chain && !unlisted) {
		dbgdyn_unlock(s);
		return DBGDYN_OK;
	}
	dbgdyn_change_number(&c);
	tell_end(&c, 0, (uintptr_t)code, len);
	dbgdyn_change_close(&c, chain);
	if (unlisted) {
		used_move(s, (uintptr_t)code, len, c.seq);
		if (!c.announced)
			dbgdyn_dropped(s);
	}
	return dbgdyn_change_commit(&c);
}

int dbgdyn_retire(dbgdyn_context context, dbgdyn_handle handle)
{
	uint32_t index;
	struct dbgdyn_state *s = dbgdyn_context_find(context.id, &index);

	return s ? dbgdyn_changed(s, routine_retire(s, index, handle.id)) : DBGDYN_EREFUSED;
}

int dbgdyn_retire_code(dbgdyn_context context, const void *code, size_t len)
{
	uint32_t index;
	struct dbgdyn_state *s = dbgdyn_context_find(context.id, &index);

	return s ? dbgdyn_changed(s, code_retire(s, index, code, len)) : DBGDYN_EREFUSED;
}

int dbgdyn_move(dbgdyn_context context, dbgdyn_handle handle, const void *code)
{
	uint32_t index;
	struct dbgdyn_state *s = dbgdyn_context_find(context.id, &index);

	return s ? dbgdyn_changed(s, routine_move(s, index, handle.id, code)) : DBGDYN_EREFUSED;
}
