/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Check of the helper's answers. They are untrusted, since the code that it read may have taken it
 * over.
 */
#include <string.h>

#include "translator.h"

/* The bytes of a block behind its code, which must not hold anything. */
static bool is_zero(const uint8_t *p, size_t len)
{
	while (len && !*p)
		p++, len--;
	return !len;
}

/* It lies within the code that was sent, and holds the same bytes. */
static bool is_of_code(const struct translator_request *q, const uint8_t *code,
		       const struct vtrace_code *c)
{
	const struct vtrace_block *b = &c->block;
	uint64_t off = b->pc - q->base;
	struct vtrace_place place;

	return b->pc >= q->base && off < q->len && b->len <= q->len - off &&
	       memcmp(code + off, b->code, b->len) == 0 &&
	       vtrace_place_of(b->pc, code + off, q->len - off, &place) &&
	       memcmp(&place, &c->place, sizeof(place)) == 0;
}

static bool uops_are_sound(const struct vtrace_code *c)
{
	const struct vtrace_block *b = &c->block;

	if (!b->nr_uops || b->nr_uops > VTRACE_BLOCK_UOPS)
		return false;
	for (size_t i = 0; i < b->nr_uops; i++)
		if (!vtrace_uop_is_sound(&c->uops[i]))
			return false;
	return c->uops[b->nr_uops - 1].marks & VTRACE_LAST;
}

/* Where the micro-ops of the instruction behind the one at @first begin. */
static size_t behind(const struct vtrace_code *c, size_t first)
{
	while (first < c->block.nr_uops && !(c->uops[first].marks & VTRACE_LAST))
		first++;
	return first + 1;
}

/* One after the other they make up the block, and their micro-ops the block's. */
static bool insns_are_sound(const struct vtrace_code *c)
{
	const struct vtrace_block *b = &c->block;
	size_t off = 0, first = 0;

	if (!b->nr_insns || b->nr_insns > VTRACE_BLOCK_INSNS)
		return false;
	for (size_t i = 0; i < b->nr_insns; i++) {
		const struct vtrace_insn *n = &c->insns[i];

		if (n->offset != off || !n->len || n->class >= VTRACE_NR_CLASSES ||
		    n->first != first || first >= b->nr_uops)
			return false;
		off += n->len;
		first = behind(c, first);
	}
	return off == b->len && first == b->nr_uops;
}

bool translator_block_is_sound(const struct vtrace_code *c)
{
	const struct vtrace_block *b = &c->block;

	return b->len && b->len <= VTRACE_BLOCK_BYTES &&
	       is_zero(b->code + b->len, VTRACE_BLOCK_BYTES - b->len) && uops_are_sound(c) &&
	       insns_are_sound(c) && c->nr_successors <= 2;
}

int translator_check(const struct translator_request *q, const uint8_t *code, const void *answer,
		     size_t len, const struct vtrace_code **blocks)
{
	const struct translator_answer *a = answer;
	const struct vtrace_code *c = (const void *)(a + 1);

	if (len < sizeof(*a) || !a->nr || a->nr > TRANSLATOR_BLOCKS ||
	    len != sizeof(*a) + a->nr * sizeof(*c) || c->block.pc != q->pc)
		return -DCPI_EHELPER;
	for (size_t i = 0; i < a->nr; i++)
		if (!translator_block_is_sound(&c[i]) || !is_of_code(q, code, &c[i]))
			return -DCPI_EHELPER;
	*blocks = c;
	return (int)a->nr;
}
