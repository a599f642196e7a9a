/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpid checks the blocks and traces that dcpid-step sends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "step_wire.h"
#include "translator.h"

int step_trace_check(const void *message, size_t len)
{
	const struct step_trace *m = message;

	if (len < sizeof(*m) || m->type != STEP_TRACE || m->w.nr_words > VTRACE_NR_WORDS ||
	    m->w.nr_fixes > VTRACE_NR_FIXES || m->w.end >= VTRACE_NR_ENDS ||
	    m->w.has != (INSN_TRACE_VALUES | INSN_TRACE_STEPPED))
		return -DCPI_EFORMAT;
	if (!m->w.nr_words || !m->w.nr_insns || m->w.nr_insns > STEP_INSNS)
		return -DCPI_EFORMAT;
	return len == sizeof(*m) + insn_trace_words(&m->w) * sizeof(uint64_t) ? 0 : -DCPI_EFORMAT;
}

static size_t size_of_uops(const struct vtrace_block *b)
{
	return b->nr_uops * sizeof(struct vtrace_uop);
}

static bool is_block(const struct step_block *m, size_t len)
{
	const struct vtrace_block *b = &m->block;

	if (len < sizeof(*m) || m->type != STEP_BLOCK || b->nr_uops > VTRACE_BLOCK_UOPS ||
	    b->nr_insns > VTRACE_BLOCK_INSNS || b->len > VTRACE_BLOCK_BYTES ||
	    b->id < STEP_ID_FIRST || b->id >= STEP_ID_END)
		return false;
	return len == sizeof(*m) + size_of_uops(b) + b->nr_insns * sizeof(struct vtrace_insn);
}

int step_block_take(const void *message, size_t len, struct vtrace_code **out)
{
	const struct step_block *m = message;
	struct vtrace_code *c;
	size_t uops;

	*out = NULL;
	if (!is_block(m, len))
		return -DCPI_EFORMAT;
	uops = size_of_uops(&m->block);
	c = calloc(1, offsetof(struct vtrace_code, uops) + uops);
	if (!c)
		return -ENOMEM;
	c->block = m->block;
	memcpy(c->uops, m + 1, uops);
	memcpy(c->insns, (const char *)(m + 1) + uops, m->block.nr_insns * sizeof(*c->insns));
	/* Its code is what it says: nobody here can look at the program's. */
	if (!translator_block_is_sound(c)) {
		free(c);
		return -DCPI_EFORMAT;
	}
	*out = c;
	return 0;
}
