/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpidiff's second form: one procedure in two sets. */
#ifndef DCPI_DIFF_PROCEDURE_H
#define DCPI_DIFF_PROCEDURE_H

#include "compare.h"
#include "sets.h"

/* A further thing to compare, beside the measures of compare.h. */
#define DIFF_SAMPLES (1u << COMPARE_NR)
#define DIFF_ALL     ((1u << COMPARE_NR) - 1)

struct diff_procedure {
	const char *what;      /* its name, or an address in it */
	bool by_line;	       /* though its code is the same in both sets */
	unsigned int measures; /* 1 << enum compare_measure, DIFF_SAMPLES; 0: cpi, else samples */
	bool verbose;
	bool json, no_header;
	enum freq_confidence least; /* least confidence of the frequencies that are compared */
	enum stall_outside outside;
};

/* "cpi,stalls" into @measures. 0 or -DCPI_EUSAGE. */
int diff_measures_parse(const char *list, unsigned int *measures, struct base_err *err);

/* Compare and print; the sets are open. 0 or negative with @err. */
int diff_procedure(const struct diff_procedure *p, const struct set sets[2], const size_t event[2],
		   struct base_err *err);

#endif
