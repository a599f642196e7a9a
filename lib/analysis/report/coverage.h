/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source lines of a procedure that ran, as far as samples tell. A sampled instruction ran, and
 * so did its whole block, every block that runs equally often, and every block on all paths to it.
 * Nothing is known of the others: a line that is reported as missed may have run.
 */
#ifndef DCPI_COVERAGE_H
#define DCPI_COVERAGE_H

#include "samples.h"

/* A line that has code in the procedure. */
struct coverage_line {
	uint32_t file; /* index in files */
	unsigned int line;
	bool ran;    /* some of its code ran */
	bool missed; /* some of its code did not run, as far as is known */
};

struct coverage {
	struct coverage_line *v; /* ascending by file and line */
	size_t nr, cap;
	char **files; /* in the order of the code */
	size_t nr_files, cap_files;
	bool any_ran; /* some block ran, with lines or without */
	bool no_code; /* the procedure's bytes are not in the image */
};

/*
 * Computes the coverage of the procedure into @out, which the caller zero-initializes and releases,
 * also on failure. @sampled: the @nr addresses of the image with samples, ascending. Only code
 * between the symbol's ends counts. 0 or, with @err, -ENOMEM or -DCPI_EUNSUPPORTED (machine).
 */
int coverage_make(struct image *img, const struct image_symbol *symbol, const uint64_t *sampled,
		  size_t nr, struct coverage *out, struct base_err *err);
void coverage_release(struct coverage *c);

#endif
