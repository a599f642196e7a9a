/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DCPI_FLOW_INTERNAL_H
#define DCPI_FLOW_INTERNAL_H

#include "flow.h"

/* ---- what an instruction computes (insn*.c) ------------------------------------------------ */

/*
 * As much of an instruction's meaning as finding the targets of an indirect jump takes:
 * @dst = extend(@a + extend_b(@b) * @scale + @disp), or what memory holds there, + @plus.
 */
struct flow_op {
	uint8_t dst; /* FLOW_NO_REGISTER: it writes none, or several */
	bool known;  /* the sum is what is written; else something else is */
	bool load;
	uint8_t a, b, plus; /* FLOW_NO_REGISTER: none */
	uint8_t scale;
	int64_t disp;
	uint8_t size; /* bytes that are loaded or kept; 8: all */
	bool sign;
	uint8_t b_size; /* bytes of @b that count */
	bool b_sign;
	uint64_t max; /* unsigned bound of the result, UINT64_MAX: none */
	/* A comparison of @a (or of what memory holds at the sum, with @load) with the number
	 * @value, or with register @b where @with_b. */
	bool compare, with_b;
	int64_t value;
};

/* When a conditional branch is taken, for unsigned numbers. */
enum flow_condition { FLOW_OTHER, FLOW_ABOVE, FLOW_ABOVE_EQUAL, FLOW_BELOW, FLOW_BELOW_EQUAL };

/* Also the operands of an indirect jump, as if it loaded register FLOW_TARGET. */
#define FLOW_TARGET 40
void flow_decode_op(struct flow_decoder *d, const uint8_t *code, size_t len, uint64_t vaddr,
		    struct flow_op *out);
/* RISC-V compares in the branch itself: then *op holds the comparison. */
enum flow_condition flow_decode_condition(struct flow_decoder *d, const uint8_t *code, size_t len,
					  struct flow_op *op);
/* Below 0: it takes stack; above 0: it gives it back. Calls and returns do neither. */
int flow_stack_move(struct flow_decoder *d, const uint8_t *code, size_t len);
/* Does the compiler say (notrack) that this indirect jump stays in the procedure? */
bool flow_jumps_within(const struct flow_decoder *d, const uint8_t *code, size_t len);

/* Registers that a call may change. */
uint64_t flow_call_writes(const struct flow_decoder *d);

/* ---- by machine ---------------------------------------------------------------------------- */

struct flow_x86;
int flow_x86_open(bool is_64, struct flow_x86 **out);
void flow_x86_close(struct flow_x86 *x);
/* False: no instruction. @out has vaddr set, all else zero and no registers. */
bool flow_x86_insn(struct flow_x86 *x, const uint8_t *code, size_t len, struct flow_insn *out);
void flow_x86_op(struct flow_x86 *x, const uint8_t *code, size_t len, uint64_t vaddr,
		 struct flow_op *out);
enum flow_condition flow_x86_condition(const uint8_t *code, size_t len);
/* The same for what is newer than capstone. 64 bits. */
bool flow_x86_new_insn(const uint8_t *code, size_t len, struct flow_insn *out);
/* Where it has the 4 bytes of an address that counts from no register, or from itself; 0: none. */
uint8_t flow_x86_new_place(const uint8_t *code, size_t len);
/* What flow_decode_flow wants of the most frequent ones; false: ask flow_x86_insn. 64 bits. */
bool flow_x86_quick(const uint8_t *code, size_t len, struct flow_insn *out);
int flow_x86_stack_move(const uint8_t *code, size_t len);

bool flow_aarch64_insn(uint32_t w, struct flow_insn *out);
void flow_aarch64_op(uint32_t w, uint64_t vaddr, struct flow_op *out);
enum flow_condition flow_aarch64_condition(uint32_t w);
int flow_aarch64_stack_move(uint32_t w);

bool flow_riscv_insn(const uint8_t *code, size_t len, struct flow_insn *out);
void flow_riscv_op(const uint8_t *code, size_t len, uint64_t vaddr, struct flow_op *out);
enum flow_condition flow_riscv_condition(const uint8_t *code, size_t len, struct flow_op *op);

/* ---- the code that is known so far (flow_walk.c) ------------------------------------------- */

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
	struct flow_decoder *d;
	const struct image_symbol *symbol;
	struct flow_part *parts;
	size_t nr_parts, cap_parts;
	struct flow_insn *insns; /* in the order of finding */
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
int flow_walk_on(struct flow_walk *w);
/* 1: what a table has leads to this procedure. */
int flow_walk_reaches(struct flow_walk *w, uint64_t vaddr);
/* Take up what nothing leads to. Returns whether there was any. */
int flow_walk_gaps(struct flow_walk *w);
struct flow_part *flow_walk_part(const struct flow_walk *w, uint64_t vaddr);
bool flow_never_returns(const struct flow_walk *w, const struct flow_insn *insn);
struct flow_jump *flow_walk_jump(const struct flow_walk *w, uint64_t vaddr);
/* Sorts the instructions. */
int flow_walk_sort(struct flow_walk *w);

/* Blocks and edges (flow_graph.c), then classes (flow_class.c). */
int flow_graph_make(const struct flow_walk *w, struct flow *f);
/* The edges that only a finished graph needs: entries of what may be led to from elsewhere, exits
 * of loops without. Then the lists by block. */
int flow_graph_finish(const struct flow_walk *w, struct flow *f);
void flow_graph_release(struct flow *f);
int flow_classes_find(struct flow *f);

/* Try each indirect jump whose targets are not known (flow_table.c). Returns how many were found.
 */
int flow_tables_find(struct flow_walk *w, const struct flow *f);

#endif
