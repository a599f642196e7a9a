/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The comparison of one procedure in two sets of samples, by basic block or by source line: by
 * samples, and by the results of calc.h (cycles, frequencies, stalls).
 */
#ifndef DCPI_COMPARE_H
#define DCPI_COMPARE_H

#include <stdlib.h>
#include <string.h>

#include "align.h"
#include "calc.h"
#include "flow.h"
#include "listing.h"

/* ---- by samples ------------------------------------------------------------------------------ */

struct parts_row {
	uint64_t from, end; /* a block: bytes from the procedure's start; both 0: in no block */
	const char *
		file; /* the line's file, or that of a block's first instruction; NULL: not known */
	/* In each version; 0: the line is not in that version of the procedure. Of a block A's. */
	unsigned int line[2];
	uint64_t count[2];
	double range; /* |a - b| / (a + b), 0 to 1 */
};

struct parts {
	struct parts_row *v; /* largest range first; ties by samples, then place */
	size_t nr, cap;
	bool by_line;
	uint64_t total[2]; /* always the sums of the rows */
};

/* Are the procedures' bytes the same, apart from operands that change when code moves? Then they
 * have the same blocks. */
bool parts_same_code(const struct analysis_listing *a, const struct analysis_listing *b);
/*
 * Compares the samples of the listings by block or line. Rows without samples in both sets are left
 * out. The listings own the files and must outlive the rows; lines match by the file's base name,
 * so that trees in two folders can be compared, and as @align has it (NULL: by number). The caller
 * zero-initializes @out and releases it, also on failure. 0, -ENOMEM, or by block errors of
 * flow_build.
 */
int parts_compare(const struct analysis_listing *const l[2], const size_t event[2], bool by_line,
		  const struct align *align, struct parts *out, struct base_err *err);
static inline void parts_release(struct parts *p)
{
	free(p->v);
	memset(p, 0, sizeof(*p));
}

/* ---- by costs -------------------------------------------------------------------------------- */

enum compare_measure {
	COMPARE_CPI,	   /* units of time of an instruction for each execution */
	COMPARE_FREQUENCY, /* executions of the most frequent instruction there */
	COMPARE_STALLS,	   /* stalls of one execution; if executions are not known, all stalls in
			      samples */
	COMPARE_STATIC,	   /* the part of the stalls without a known cause (there is no model of how
			      plain instructions wait for one another) */
	COMPARE_DYNAMIC,   /* the part with causes: see enum stall_cause */
	COMPARE_NR,
};

/* The results for a place in one set. */
struct compare_sum {
	double freq; /* frequency of the most frequent instruction */
	enum freq_confidence confidence;
	double runs, units;	     /* sums over the instructions with known frequencies */
	double stalled, unexplained; /* samples */
};

struct compare_place {
	struct parts_row at; /* the place and its samples */
	struct compare_sum sum[2];
};

struct compare_options {
	bool by_line;
	const struct align *align;  /* of lines; NULL: by number */
	enum freq_confidence least; /* a frequency with less confidence is not known */
	enum stall_outside outside;
};

struct compare {
	struct compare_place *v; /* each place once */
	size_t nr, cap;
	bool by_line;
	const struct align *align;
	enum freq_confidence least;
	bool known[2], timed[2], absolute[2]; /* as in struct calc_insns */
	bool apart; /* one set's time is in cycles, the other's in nanoseconds */
	double period[2];
	uint64_t traces[2]; /* number of traces behind the frequencies; 0: they are not from traces
			     */
	char *text[2]; /* description of the frequencies and their source; NULL: they are not known
			*/
};

struct compare_row {
	const struct compare_place *place;
	bool known[2];
	double value[2], range; /* range below 0: one of the values is not known */
};

/*
 * Compares the procedures parts[0] of @f; block names and files as for parts_compare. The caller
 * zero-initializes @out and releases it, also on failure. Errors: those of calc_insns.
 */
int compare_procedures(const struct graph_flow *const f[2], const size_t event[2],
		       const struct compare_options *o, struct compare *out, struct base_err *err);
void compare_release(struct compare *c);

/* Are executions known in both sets? */
static inline bool compare_absolute(const struct compare *c)
{
	return c->absolute[0] && c->absolute[1];
}

/*
 * Makes the rows of a measure: largest range first, unknown ranges last; ties by samples, then
 * place. Places whose values are unknown or 0 are left out. The caller frees *@out. Returns the
 * number of rows, or -ENOMEM.
 */
int compare_rows(const struct compare *c, enum compare_measure m, struct compare_row **out);

#endif
