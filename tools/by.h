/* SPDX-License-Identifier: BSD-2-Clause */
/* A report of samples by what ran: dcpiprof -by. */
#ifndef DCPI_BY_H
#define DCPI_BY_H

#include "select.h"

struct by_options {
	const char *key;	/* comm, exe, …, label, host */
	const char *sort_event; /* NULL: the default */
	double keep;		/* percent of the samples */
	bool no_header, csl, no_idle;
};

/* Prints the report for the images that @what names (none: all). An exit code, or negative with
 * @err. */
int by_report(const char *prog, const struct select *sel, const struct by_options *o, int nr,
	      char **what, struct base_err *err);

/* The samples of the idle task, as the kernel of this image has it: a bucket of its own. */
bool by_is_idle(const struct analysis_image *ai);

#endif
