/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Live code by address: chains of the nodes that begin in one granule, at the level whose granules
 * are as long as the node's code or longer. So a node that overlaps an address begins in the
 * address's granule of some level, or in the granule before. Distant granules may share a chain.
 */
#include "dbgdyn_internal.h"

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

void dbgdyn_live_remove(struct dbgdyn_state *s, const struct dbgdyn_node *n)
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

uint32_t dbgdyn_live_take_of(struct dbgdyn_state *s, uint32_t facility, uint64_t addr, uint64_t len)
{
	return take(s, &(struct search){ .addr = addr, .end = addr + len, .facility = facility });
}
