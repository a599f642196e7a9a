/* SPDX-License-Identifier: BSD-2-Clause */
/* The routines of two sets of samples with their counts by replicate (host and epoch), as
 * lib/analysis/compare tests them. */
#ifndef DCPI_TOOLS_REGRESS_SETS_H
#define DCPI_TOOLS_REGRESS_SETS_H

#include "diff.h"
#include "regress.h"
#include "sets.h"

/* The state of a routine, beside its row of the test. */
enum regress_state {
	REGRESS_BOTH,	  /* it is in both sets, or could be */
	REGRESS_NEW,	  /* B's image has it, A's has not, or A has no such image */
	REGRESS_VANISHED, /* the other way */
	REGRESS_OTHER,	  /* no routine: (no symbol), (idle), … */
};

struct regress_routine {
	const char *renamed; /* the name it has in B, where its code alone matches; else NULL */
	size_t counts_as;    /* itself, or the routine that this one is in B by another name */
	enum regress_state state;
};

/* An instruction of a routine whose code is equal in both sets; beside its row of the test. */
struct regress_insn {
	size_t routine;
	uint64_t off; /* from the routine's start */
};

struct regress_insns {
	struct regress_insn *v; /* as test.v, which there is from regress_insns_test on */
	size_t cap, cap_counts;
	struct base_map by_place; /* routine and offset: index + 1 */
	uint64_t *counts;	  /* by instruction and replicate */
	struct regress test;
};

struct regress_routines {
	bool with_insns; /* the caller's: instructions are tested too, each kind at half the rate */
	struct analysis_diff diff; /* a renamed routine's row in B is moved to its row in A */
	struct regress_routine *v; /* as diff.v and test.v */
	struct regress test;
	uint64_t *counts; /* by routine and replicate */
	struct regress_insns insns;
};

/* Matches the routines of two gathered sets, and reads each replicate. @x->test has the rate. The
 * caller releases @x also on failure. 0 or negative with @err. */
int regress_routines_make(struct set sets[2], const size_t event[2], struct regress_routines *x,
			  struct base_err *err);
void regress_routines_release(struct regress_routines *x);

#endif
