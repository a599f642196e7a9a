/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two halves of the checker share: declarations and statements, and expressions. */
#ifndef CALC_CHECK_H
#define CALC_CHECK_H

#include "calc_internal.h"

struct calc_variable {
	const char *name;
	struct calc_type type;
	struct calc_place place;
};

struct calc_checker {
	struct calc *c;
	struct calc_function *f; /* NULL: in a global variable's value */
	struct calc_variable variables[CALC_MAX_PARAMS + CALC_MAX_LOCALS];
	unsigned int nr_variables; /* that can be seen here */
	unsigned int nr_slots;
	unsigned int nr_loops;
};

static inline bool calc_is_number(struct calc_type type)
{
	return type.kind == CALC_INT || type.kind == CALC_DOUBLE;
}

static inline bool calc_is_array(struct calc_type type)
{
	return type.kind == CALC_INT_ARRAY || type.kind == CALC_DOUBLE_ARRAY;
}

static inline bool calc_is_pointer(struct calc_type type)
{
	return type.kind == CALC_INT_PTR || type.kind == CALC_DOUBLE_PTR;
}

/* Give @e and all below it their types. */
void calc_check_expr(struct calc_checker *k, struct calc_expr *e);
/* Make *@e a value of @want, by the one implicit conversion (int to double), or fail. */
void calc_check_convert(struct calc_checker *k, struct calc_expr **e, struct calc_type want);
/* The two sides of an arithmetic operator to their common type, which is returned. */
struct calc_type calc_check_arithmetic(struct calc_checker *k, struct calc_pos pos, enum calc_op op,
				       struct calc_expr **left, struct calc_expr **right);

#endif
