/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One procedure in two sets of samples, by basic block or by source line: by samples, and by what
 * dcpicalc tells of it (cycles, frequencies, stalls).
 */
#ifndef DCPI_COMPARE_H
#define DCPI_COMPARE_H

#include "calc.h"
#include "flow.h"
#include "listing.h"

/* ---- by samples ------------------------------------------------------------------------------ */

struct parts_row {
	uint64_t from, end; /* of a block: bytes from the procedure's start; both 0: in no block */
	const char *file;   /* of a line, or of a block's first instruction; NULL: none is known */
	unsigned int line;
	uint64_t count[2];
	double range; /* |a - b| / (a + b), 0 to 1 */
};

struct parts {
	struct parts_row *v; /* by range, largest first; ties by samples, then place */
	size_t nr, cap;
	bool by_line;
	uint64_t total[2]; /* always the sums of the rows */
};

/* Are the procedures' bytes the same, but for what moving changes? Then they have the same blocks.
 */
bool parts_same_code(const struct analysis_listing *a, const struct analysis_listing *b);
/*
 * Rows without samples in both sets are left out. Files are the listings' and must outlive the
 * rows; lines match by the file's base name, so that trees in two folders can be compared. Zero-
 * initialize @out; release it also on failure. By block: those of flow_build; -ENOMEM.
 */
int parts_compare(const struct analysis_listing *const l[2], const size_t event[2], bool by_line,
		  struct parts *out, struct base_err *err);
void parts_release(struct parts *p);

/* ---- by costs -------------------------------------------------------------------------------- */

enum compare_measure {
	COMPARE_CPI,	   /* units of time that an instruction took each time that it ran */
	COMPARE_FREQUENCY, /* executions, of the most often run instruction there */
	COMPARE_STALLS,	   /* of one execution; where executions are not known, all, in samples */
	COMPARE_STATIC,	   /* of these, those that no cause explains (no model of the machine tells
			    * what plain instructions wait for one another) */
	COMPARE_DYNAMIC,   /* and those that have causes: see enum stall_cause */
	COMPARE_NR,
};

/* What is known of a place in one set. */
struct compare_sum {
	double freq; /* of the most often run instruction */
	enum freq_confidence confidence;
	double runs, units;	     /* of the instructions whose frequencies are known: sums */
	double stalled, unexplained; /* samples */
};

struct compare_place {
	struct parts_row at; /* where, and samples */
	struct compare_sum sum[2];
};

struct compare_options {
	bool by_line;
	enum freq_confidence least; /* a frequency of less is not known */
	enum stall_outside outside;
};

struct compare {
	struct compare_place *v; /* each place once */
	size_t nr, cap;
	bool by_line;
	enum freq_confidence least;
	bool known[2], timed[2], absolute[2]; /* as struct calc_insns has them */
	bool apart; /* one set's time is in cycles, the other's in nanoseconds */
	double period[2];
	uint64_t windows[2]; /* that frequencies are from; 0: they are not */
	char *text[2];	     /* what they are, and from what; NULL: they are not known */
};

struct compare_row {
	const struct compare_place *place;
	bool known[2];
	double value[2], range; /* range: below 0 where not both are known */
};

/*
 * The procedures are parts[0] of @f; block names, files: as for parts_compare. Zero-initialize
 * @out; release it also on failure. Errors: those of calc_insns.
 */
int compare_procedures(const struct graph_flow *const f[2], const size_t event[2],
		       const struct compare_options *o, struct compare *out, struct base_err *err);
void compare_release(struct compare *c);

/* Why the measure cannot be told of both sets; NULL: it can. */
const char *compare_unknown(const struct compare *c, enum compare_measure m);
/* Are executions known in both sets? */
bool compare_absolute(const struct compare *c);
/*
 * By range, largest first, those without behind; ties by samples, then place. Places of which
 * nothing is known, or nothing but 0, are left out. The caller frees *@out. Number of rows,
 * -ENOMEM.
 */
int compare_rows(const struct compare *c, enum compare_measure m, struct compare_row **out);
/* "cpi", "frequency", "stalls", "static_stalls", "dynamic_stalls" */
const char *compare_name(enum compare_measure m);

#endif
