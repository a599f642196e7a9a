/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of a jitdump file whose routine has not been written yet are remembered here. */
#include "jitdump_internal.h"

static void remove_at(struct jitdump_pending *p, size_t i)
{
	p->nr--;
	memmove(p->v + i, p->v + i + 1, (p->nr - i) * sizeof(p->v[0]));
}

static bool is_old(const struct jitdump_lines_at *lines, uint64_t off)
{
	return off - (lines->off + lines->len) > JITDUMP_PENDING_LEN;
}

static void remove_old(struct jitdump_pending *p, uint64_t off)
{
	for (size_t i = 0; i < p->nr;)
		if (is_old(&p->v[i], off))
			remove_at(p, i);
		else
			i++;
}

static size_t find(const struct jitdump_pending *p, uint64_t addr)
{
	size_t i = 0;

	while (i < p->nr && p->v[i].addr != addr)
		i++;
	return i;
}

struct jitdump_lines_at jitdump_pending_find(struct jitdump_pending *p, uint64_t addr, uint64_t off)
{
	size_t i;

	remove_old(p, off);
	i = find(p, addr);
	return i < p->nr ? p->v[i] : (struct jitdump_lines_at){ 0 };
}

void jitdump_pending_remove(struct jitdump_pending *p, uint64_t addr)
{
	size_t i = find(p, addr);

	if (i < p->nr)
		remove_at(p, i);
}

/*
 * Whether lines are dropped depends on those behind them alone, so that a reading that goes on from
 * the first of them finds the same ones.
 */
void jitdump_pending_add(struct jitdump_pending *p, const struct jitdump_lines_at *lines)
{
	remove_old(p, lines->off);
	jitdump_pending_remove(p, lines->addr);
	if (p->nr == JITDUMP_NR_PENDING)
		remove_at(p, 0);
	p->v[p->nr++] = *lines;
}

uint64_t jitdump_pending_first(struct jitdump_pending *p, uint64_t off)
{
	remove_old(p, off);
	return p->nr ? p->v[0].off : 0;
}
