/* SPDX-License-Identifier: BSD-2-Clause */
/* The procedures that a user names by a name or an address. */
#ifndef DCPI_REPORT_SEARCH_H
#define DCPI_REPORT_SEARCH_H

#include "samples.h"

/* A procedure that matches the user's text. */
struct analysis_found {
	struct analysis_image *image;
	char *name;
	uint64_t vaddr, len;
	uint64_t *count; /* indexed by event */
};

struct analysis_founds {
	struct analysis_found *v; /* most samples of the given event first */
	size_t nr, cap;
};

/*
 * Finds every procedure that @what names, by name or address, in the images that match @image
 * (NULL: in all images; then procedures without samples are dropped if one has samples). Where no
 * name is @what, those that fit it best (enum demangle_fit).
 * -DCPI_ENOSYMBOL with near matches in the hint, or -DCPI_ENOIMAGE: there is none. An image given
 * by a path is searched even if it has no samples.
 */
int analysis_find(struct analysis *a, const char *what, const char *image, size_t event,
		  struct analysis_founds *out, struct base_err *err);
/* Are all of them one routine of one facility, by name? */
bool analysis_founds_versions(const struct analysis_founds *f);
/* How many of such are the first one's code in several images, equal apart from operands that
 * change when code moves: they stand first then. */
size_t analysis_founds_alike(struct analysis *a, struct analysis_founds *f);
void analysis_founds_release(struct analysis_founds *f);

#endif
