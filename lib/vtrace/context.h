/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In which procedures the instructions of a trace ran: return addresses, as calls of the trace
 * pushed them or as its returns, later, popped them. What neither tells is 0.
 */
#ifndef DCPI_VTRACE_CONTEXT_H
#define DCPI_VTRACE_CONTEXT_H

#include "insn_word.h"
#include "replay.h"

enum { VTRACE_CONTEXTS = 1024 }; /* instructions of a trace; behind them: 0 */

struct vtrace_frame {
	uint64_t ret;	 /* address; 0: not known */
	uint64_t slot;	 /* where the call pushed it; 0: it did not */
	uint16_t parent; /* context of the caller; 0: unknown */
	bool called;	 /* in this trace */
};

struct vtrace_contexts {
	enum vtrace_arch arch;
	uint32_t nr, nr_frames, nr_stores;
	uint16_t current;
	bool has_sp;
	uint64_t sp;
	uint16_t of[VTRACE_CONTEXTS]; /* frame of each instruction */
	struct vtrace_frame frames[2 * VTRACE_CONTEXTS + 2];
	struct {
		uint64_t addr, end;
	} stores[VTRACE_CONTEXTS]; /* counts for other instructions than calls */
};

void vtrace_contexts_init(struct vtrace_contexts *c, enum vtrace_arch arch);
/* The next instruction, of these operands. */
void vtrace_contexts_add(struct vtrace_contexts *c, const struct vtrace_entry *e,
			 const struct vtrace_operands *o);
/*
 * Contexts of the instruction added as the @index-th, from 0: return address of its procedure, and
 * of its caller.
 */
static inline void vtrace_contexts_get(const struct vtrace_contexts *c, uint32_t index,
				       uint64_t *c0, uint64_t *c1)
{
	const struct vtrace_frame *f = &c->frames[index < c->nr ? c->of[index] : 0];

	*c0 = f->ret;
	*c1 = f->ret ? c->frames[f->parent].ret : 0;
}

#endif
