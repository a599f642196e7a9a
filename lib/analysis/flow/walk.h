/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of a procedure as far as it is known, shared by flow.c and tables.c. */
#ifndef DCPI_FLOW_WALK_H
#define DCPI_FLOW_WALK_H

#include "flow.h"

/* A contiguous range of the procedure's code. */
struct flow_part {
	uint64_t vaddr, len;
	uint8_t *code;
	uint32_t *owner; /* indexed by byte: index + 1 of the instruction that covers it */
	uint8_t *mark;	 /* indexed by byte: bits of enum flow_mark */
	bool swept;	 /* FLOW_IN_ROW is set for its bytes */
};

enum flow_mark {
	FLOW_LEADER = 1,    /* a block begins here */
	FLOW_FROM_AWAY = 2, /* entered from outside, as far as is known */
	FLOW_IN_ROW = 8,    /* an instruction of the linear disassembly begins here */
	FLOW_NO_CODE = 4,   /* a table, or nothing that decodes */
};

/* An indirect jump. */
struct flow_jump {
	uint64_t vaddr;
	uint64_t *targets; /* distinct */
	size_t nr_targets, cap_targets;
	bool found;	/* the targets are complete */
	bool tail_call; /* it is a tail call of another procedure */
};

struct flow_walk {
	const struct flow_source *source;
	struct insn_decoder *d;
	const struct image_symbol *symbol;
	struct flow_part *parts;
	size_t nr_parts, cap_parts;
	struct insn *insns; /* in the order of discovery; sorted by flow.c */
	size_t nr_insns, cap_insns;
	uint64_t *todo;
	size_t nr_todo, cap_todo;
	struct flow_jump *jumps;
	size_t nr_jumps, cap_jumps;
	uint64_t not_cold; /* the last procedure that proved to be no cold part */
	bool overlapping, cut;
};

/* Adds a target for the next walk, with @marks. Returns 1, 0 if @vaddr is not part of the
 * procedure, or negative. */
int flow_walk_add(struct flow_walk *w, uint64_t vaddr, uint8_t marks);
/* Can a table entry @vaddr be a target in this procedure? 1, 0 or negative; a cold part is
 * added. */
int flow_walk_reaches(struct flow_walk *w, uint64_t vaddr);
static inline struct flow_part *flow_walk_part(const struct flow_walk *w, uint64_t vaddr)
{
	for (size_t i = 0; i < w->nr_parts; i++)
		if (vaddr - w->parts[i].vaddr < w->parts[i].len)
			return &w->parts[i];
	return NULL;
}

#endif
