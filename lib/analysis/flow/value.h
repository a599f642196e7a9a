/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a register holds at a place, as far as it follows from the instructions before: a number, or
 * a multiple of something unknown (a node) and a number. Wraps at 64 bits; that code computes with
 * 32 is not followed, for a table's targets are checked against the procedure anyway.
 */
#ifndef DCPI_FLOW_VALUE_H
#define DCPI_FLOW_VALUE_H

#include "flow_internal.h"

enum { FLOW_NODES = 128 };

struct flow_value {
	uint64_t c;
	int node; /* -1: none, the value is c; -2: not known at all */
	int64_t scale;
	uint64_t max; /* of the node; UINT64_MAX: not known */
};

/* What a register was given by an instruction or held at the start of a block; or what is loaded.
 */
struct flow_node {
	bool load, at_start;
	uint8_t reg;
	uint32_t where; /* instruction or block */
	uint8_t size;
	bool sign;
	struct flow_value address;
};

struct flow_values {
	const struct flow_walk *w;
	const struct flow *f;
	struct flow_node nodes[FLOW_NODES]; /* no two are equal */
	int nr_nodes;
	long budget; /* steps; below 0: nothing more is found out */
};

/* Forget all, for the next jump. */
void flow_values_start(struct flow_values *v);

/* The instruction at index @i taken apart. */
void flow_value_op(struct flow_values *v, uint32_t i, struct insn_op *op);
enum insn_condition flow_value_condition(struct flow_values *v, uint32_t i, struct insn_op *op);
/* Where the indirect jump at @i, the last of block @b, leads. */
void flow_value_target(struct flow_values *v, uint32_t b, uint32_t i, struct flow_value *out);
/* What the comparison @op at @i in @b compares with which number. False: with none. */
bool flow_value_compared(struct flow_values *v, uint32_t b, uint32_t i, const struct insn_op *op,
			 struct flow_value *what, uint64_t *with, enum insn_condition *c);
/* A value at the start of @b, as it was at the end of @before. False: not known. */
bool flow_value_before(struct flow_values *v, uint32_t before, uint32_t b,
		       struct flow_value *value);
/* Did it come into being within that block? */
bool flow_value_made_in(const struct flow_values *v, const struct flow_value *value, uint32_t b);
/* Is a jump there, at the end of @b, a call of another procedure that is the last thing done? */
bool flow_value_is_routine(struct flow_values *v, uint32_t b, const struct flow_value *target);

#endif
