/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool keeps what the hardware told of sampled instructions while the samples are on their way.
 */
#include <stdlib.h>

#include "counts.h"

/* Numbers begin at 1. Room for the number's return is made with it, so that cannot fail. */
static uint32_t make_number(struct insns *t)
{
	if (t->nr_free)
		return t->free[--t->nr_free];
	if (t->nr >= UINT32_MAX - 1 || base_grow(&t->v, &t->cap, t->nr + 1, sizeof(*t->v)) < 0 ||
	    base_grow(&t->free, &t->cap_free, t->nr + 1, sizeof(*t->free)) < 0)
		return 0;
	return (uint32_t)++t->nr;
}

uint32_t insns_keep(struct insns *t, const struct isample *insn)
{
	uint32_t number = insn ? make_number(t) : 0;

	if (number)
		t->v[number - 1] = *insn;
	return number;
}

const struct isample *insns_get(const struct insns *t, uint32_t number)
{
	return number ? &t->v[number - 1] : NULL;
}

void insns_put(struct insns *t, uint32_t number)
{
	if (number)
		t->free[t->nr_free++] = number;
}

void insns_release(struct insns *t)
{
	free(t->v);
	free(t->free);
	*t = (struct insns){ 0 };
}
