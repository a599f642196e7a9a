/* SPDX-License-Identifier: BSD-2-Clause */
/* Which procedures a user means by a name or an address. */
#ifndef DCPI_REPORT_SEARCH_H
#define DCPI_REPORT_SEARCH_H

#include "samples.h"

/* A procedure that the user may mean. */
struct analysis_found {
	struct analysis_image *image;
	char *name;
	uint64_t vaddr, len;
	uint64_t *count; /* by event */
};

struct analysis_founds {
	struct analysis_found *v; /* most samples (of the given event) first */
	size_t nr, cap;
};

/*
 * Every procedure that @what names, by name or by address, in the images that match @image (NULL:
 * all; then those without samples there are left out when one has samples). None: -DCPI_ENOSYMBOL
 * with near matches in the hint, or -DCPI_ENOIMAGE. An image given by a path that has no samples is
 * looked into all the same.
 */
int analysis_find(struct analysis *a, const char *what, const char *image, size_t event,
		  struct analysis_founds *out, struct base_err *err);
/* Is it one routine of one facility in several images, its code the same but for what moving
 * changes? */
bool analysis_founds_alike(struct analysis *a, const struct analysis_founds *f);
void analysis_founds_release(struct analysis_founds *f);

#endif
