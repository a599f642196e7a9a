/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two halves of the code generator share: statements, and expressions. */
#ifndef CALC_GEN_H
#define CALC_GEN_H

#include "calc_internal.h"
#include "emit.h"

struct gen_trap {
	enum calc_trap why;
	struct calc_pos pos;
	emit_label label;
};

/* An "if": where its code stands in the usual layout, and which part of it ran seldom. */
struct gen_if {
	const struct calc_stmt *stmt;
	size_t test, body, other; /* offsets; @other: of what runs instead of the body */
	bool rare_body, rare_other;
};

/* Statements that stand behind all others. */
struct gen_rare {
	const struct calc_stmt *stmt;
	emit_label begin, done, break_to, continue_to;
};

struct gen {
	struct calc *c;
	struct calc_function *f;
	struct emit *e;
	struct calc_line *lines;
	size_t nr_lines, cap_lines;
	struct gen_trap *traps;
	size_t nr_traps, cap_traps;
	struct gen_if *ifs;
	size_t nr_ifs, cap_ifs;
	struct gen_rare *rares;
	size_t nr_rares, cap_rares;
	bool laid_out;			      /* @ifs say what is rare, else they are noted */
	unsigned int first_spill;	      /* slot */
	unsigned int nr_spilled, max_spilled; /* temporaries that now wait in the frame */
	emit_label break_to, continue_to;
};

static inline enum emit_class gen_class(struct calc_type type)
{
	return type.kind == CALC_DOUBLE ? EMIT_DOUBLE : EMIT_INT;
}

static inline struct emit_operand gen_temp(unsigned int temp)
{
	return (struct emit_operand){ EMIT_TEMP, temp };
}

static inline struct emit_operand gen_imm(int64_t value)
{
	return (struct emit_operand){ EMIT_IMM, value };
}

/* From here on the code is of @pos. */
void gen_mark(struct gen *g, struct calc_pos pos);
/* Where to jump for the run to end with this error. */
emit_label gen_trap(struct gen *g, enum calc_trap why, struct calc_pos pos);

/* The value of @e to temporary @d of its class; temporaries above @d are lost, all in a call. */
void gen_expr(struct gen *g, const struct calc_expr *e, unsigned int d);
/* Jump where @e is (not) 0; uses temporaries from @d on. */
void gen_jump(struct gen *g, const struct calc_expr *e, bool sense, emit_label to, unsigned int d);
/* Is @e something that instructions can take as it is? */
bool gen_direct(struct gen *g, const struct calc_expr *e, struct emit_operand *o);
/* Array and index of an element, checked, from temporary @d on; the index is in @index. */
void gen_element(struct gen *g, const struct calc_expr *e, unsigned int d,
		 struct emit_operand *index);
/* Temporary @dst = dst op right. */
void gen_arith(struct gen *g, struct calc_type type, enum calc_op op, unsigned int dst,
	       struct emit_operand right, struct calc_pos pos);
struct emit_operand gen_place(struct calc_place place);
/* Keep a temporary in the frame: returns the slot, which gen_unspill frees, last in, first out. */
struct emit_operand gen_spill(struct gen *g, enum emit_class cl, unsigned int temp,
			      struct calc_pos pos);
void gen_unspill(struct gen *g);
/* Call a helper with one argument, temporary 0, and @data. */
void gen_helper(struct gen *g, enum calc_helper helper, enum emit_class cl, int64_t data);

static inline int64_t gen_pack_pos(struct calc_pos pos)
{
	return (int64_t)((uint64_t)pos.col << 32 | (uint64_t)pos.line << 8);
}

#endif
