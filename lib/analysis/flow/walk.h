/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of a procedure that is known so far, and how it was come to. */
#ifndef DCPI_FLOW_WALK_H
#define DCPI_FLOW_WALK_H

#include "flow.h"

/* A stretch of the procedure. */
struct flow_part {
	uint64_t vaddr, len;
	uint8_t *code;
	uint32_t *owner; /* by byte: number + 1 of the instruction that it is part of */
	uint8_t *mark;	 /* by byte: of enum flow_mark */
	bool swept;	 /* FLOW_IN_ROW was set */
};

enum flow_mark {
	FLOW_LEADER = 1,    /* a block begins here */
	FLOW_FROM_AWAY = 2, /* reached from outside, as far as is known */
	FLOW_IN_ROW = 8,    /* an instruction begins here, if one follows on the other */
	FLOW_NO_CODE = 4,   /* a table, or nothing that decodes */
};

/* An indirect jump. */
struct flow_jump {
	uint64_t vaddr;
	uint64_t *targets; /* distinct */
	size_t nr_targets, cap_targets;
	bool found;	/* these are all */
	bool tail_call; /* it leads to another procedure */
};

struct flow_walk {
	const struct flow_source *source;
	struct insn_decoder *d;
	const struct image_symbol *symbol;
	struct flow_part *parts;
	size_t nr_parts, cap_parts;
	struct insn *insns; /* in the order of finding */
	size_t nr_insns, cap_insns;
	uint64_t *todo;
	size_t nr_todo, cap_todo;
	struct flow_jump *jumps;
	size_t nr_jumps, cap_jumps;
	uint64_t not_cold; /* the last procedure that was found to be one of its own */
	bool overlapping, cut;
};

int flow_walk_open(struct flow_walk *w);
void flow_walk_release(struct flow_walk *w);
/* What is called or jumped to there becomes known by flow_walk_on; @marks are added. Returns 1, or
 * 0 where it is no part of the procedure. */
int flow_walk_add(struct flow_walk *w, uint64_t vaddr, uint8_t marks);
/* Follows every way that is known, then sorts the instructions. */
int flow_walk_on(struct flow_walk *w);
/* 1: what a table has leads to this procedure. */
int flow_walk_reaches(struct flow_walk *w, uint64_t vaddr);
/* Take up what nothing leads to. Returns whether there was any. */
int flow_walk_gaps(struct flow_walk *w);
struct flow_part *flow_walk_part(const struct flow_walk *w, uint64_t vaddr);
bool flow_never_returns(const struct flow_walk *w, const struct insn *insn);
struct flow_jump *flow_walk_jump(const struct flow_walk *w, uint64_t vaddr);

#endif
