/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One procedure in two sets of samples, by what dcpicalc tells of it: cycles, frequencies, stalls;
 * by basic block or by source line.
 */
#ifndef DCPI_COMPARE_H
#define DCPI_COMPARE_H

#include "calc.h"
#include "parts.h"

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
