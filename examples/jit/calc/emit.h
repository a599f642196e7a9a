/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The emitter: one interface, behind it a back end for each machine (emit_x86_64.c,
 * emit_aarch64.c), of which the build takes one. gen.c walks the tree and calls these.
 *
 * The model: integers and doubles are computed in two rows of temporary registers, both numbered
 * from 0; the result of a routine is temporary 0. Nothing but the frame survives a call. One more
 * register holds the runtime's address throughout. A routine's arguments stand at the lowest
 * addresses of its caller's stack, one in each 8 bytes, which is where it finds its parameters.
 *
 * Nothing here fails: a routine that grows too large sets @failed, and what it emits is void.
 */
#ifndef CALC_EMIT_H
#define CALC_EMIT_H

#include "ast.h"

/* Temporaries 0 to EMIT_NR_TEMPS - 1 hold values; one more is for operands. */
#define EMIT_NR_TEMPS 6

enum emit_class {
	EMIT_INT,
	EMIT_DOUBLE,
};

enum emit_operand_kind {
	EMIT_TEMP,    /* temporary @value */
	EMIT_IMM,     /* the number @value; integers only */
	EMIT_SLOT,    /* frame slot @value */
	EMIT_PARAM,   /* parameter @value */
	EMIT_RUNTIME, /* what lies @value bytes into the runtime */
};

struct emit_operand {
	enum emit_operand_kind kind;
	int64_t value;
};

/* A place in the code that may be jumped to before it is known. */
typedef unsigned int emit_label;

struct emit_fixup {
	uint32_t at;
	emit_label label;
};

struct emit {
	uint8_t *buf;
	size_t len;
	size_t cap;
	bool failed;
	unsigned int nr_slots; /* of the frame; set before emit_prologue */
	uint32_t *labels;
	unsigned int nr_labels;
	struct emit_fixup *fixups;
	unsigned int nr_fixups;
};

/* emit.c: the buffer and the labels, the same for all machines. NULL: no memory. */
struct emit *emit_new(size_t cap);
void emit_free(struct emit *e);
void emit_reset(struct emit *e);
void emit_bytes(struct emit *e, const void *bytes, size_t len);
emit_label emit_label_new(struct emit *e);
void emit_label_bind(struct emit *e, emit_label label);
/* For back ends: the instruction at @at will be made to jump to the label. */
void emit_label_use(struct emit *e, uint32_t at, emit_label label);
/* Complete all jumps, once every label is bound. */
void emit_finish(struct emit *e);

/* The rest is each machine's. Make the jump at @at go to @target. */
void emit_patch(struct emit *e, uint32_t at, uint32_t target);

/* Begin a routine: make the frame; go to @overflow if the stack is at its end. */
void emit_prologue(struct emit *e, emit_label overflow);
/* Return; the result is in temporary 0. */
void emit_epilogue(struct emit *e);

void emit_load(struct emit *e, enum emit_class cl, unsigned int dst, struct emit_operand from);
/* @to is in memory. */
void emit_store(struct emit *e, enum emit_class cl, unsigned int src, struct emit_operand to);

/* dst = dst op right. @op: CALC_ADD, _SUB, _MUL; for doubles also _DIV. */
void emit_arith(struct emit *e, enum emit_class cl, enum calc_op op, unsigned int dst,
		struct emit_operand right);
/* Integers: dst = dst / right, or the remainder. Goes to @by_zero where right is 0. */
void emit_divide(struct emit *e, unsigned int dst, struct emit_operand right, bool remainder,
		 emit_label by_zero);
void emit_negate(struct emit *e, enum emit_class cl, unsigned int dst);
/* Double temporary @dst = integer @from. */
void emit_int_to_double(struct emit *e, unsigned int dst, struct emit_operand from);
/* Integer temporary @dst = double temporary @dst, towards 0; else to @does_not_fit. */
void emit_double_to_int(struct emit *e, unsigned int dst, emit_label does_not_fit);

/* Integer temporary @dst = (left op right), 0 or 1. @op: CALC_EQ to CALC_GE. @left may be @dst. */
void emit_compare(struct emit *e, enum emit_class cl, enum calc_op op, unsigned int dst,
		  unsigned int left, struct emit_operand right);
/* Jump where (left op right) is @sense; not a number compares as in C. */
void emit_compare_jump(struct emit *e, enum emit_class cl, enum calc_op op, bool sense,
		       unsigned int left, struct emit_operand right, emit_label to);
void emit_jump(struct emit *e, emit_label to);

/* Go to @outside unless @index is below the length that stands before array @base. */
void emit_check_index(struct emit *e, unsigned int base, struct emit_operand index,
		      emit_label outside);
/* Element @index of array @base; @index a temporary or a small number. @dst may be @base. */
void emit_load_element(struct emit *e, enum emit_class cl, unsigned int dst, unsigned int base,
		       struct emit_operand index);
void emit_store_element(struct emit *e, enum emit_class cl, unsigned int src, unsigned int base,
			struct emit_operand index);
/* Temporary @dst = the 8 bytes at @off from the address in integer temporary @base. */
void emit_load_at(struct emit *e, enum emit_class cl, unsigned int dst, unsigned int base, int off);

/* Room for @nr arguments, and giving it back; what is stored into it; in between, calls nest. */
void emit_args_begin(struct emit *e, unsigned int nr);
void emit_args_end(struct emit *e, unsigned int nr);
void emit_args_store(struct emit *e, enum emit_class cl, unsigned int src, unsigned int index);
/* Call the routine whose address lies @entry_off bytes into the runtime. */
void emit_call(struct emit *e, int entry_off);
/* Call helper(runtime, arguments, data), whose address lies @helper_off bytes into the runtime. */
void emit_call_helper(struct emit *e, int helper_off, struct emit_operand data);

/* Whole routines: calc_enter_int; and for each of @nr functions a stub that has it compiled. */
void emit_enter(struct emit *e);
void emit_lazy(struct emit *e, unsigned int nr, int resolve_off);
/* Where in these the stub of a function lies. */
size_t emit_lazy_off(unsigned int index);

#endif
