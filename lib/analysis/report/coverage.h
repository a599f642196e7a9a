/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which source lines of a procedure ran, as far as samples tell. A sampled instruction ran, and
 * with it its whole block, every block that runs equally often, and every block that all ways to it
 * lead through. Of the rest nothing is known: what is called missed may have run.
 */
#ifndef DCPI_COVERAGE_H
#define DCPI_COVERAGE_H

#include "samples.h"

/* A line that the procedure has code of. */
struct coverage_line {
	uint32_t file; /* index in files */
	unsigned int line;
	bool ran;    /* some of its code did */
	bool missed; /* some of its code did not, as far as is known */
};

struct coverage {
	struct coverage_line *v; /* ascending by file and line */
	size_t nr, cap;
	char **files; /* in the order of the code */
	size_t nr_files, cap_files;
	bool any_ran; /* of its blocks, with lines or without */
	bool no_code; /* there are no bytes of it */
};

/*
 * @sampled: the @nr addresses of the image with samples, ascending. Only code between the symbol's
 * ends counts. Zero-initialize @out; release it also on failure. 0, -ENOMEM, -DCPI_EUNSUPPORTED
 * (machine) with @err.
 */
int coverage_make(struct image *img, const struct image_symbol *symbol, const uint64_t *sampled,
		  size_t nr, struct coverage *out, struct base_err *err);
void coverage_release(struct coverage *c);
/* Those addresses, of a profile's entries with chosen samples. free(*out). 0 or -ENOMEM. */
int coverage_sampled(const struct analysis_image *ai, const struct image *img, uint64_t **out,
		     size_t *nr);

#endif
