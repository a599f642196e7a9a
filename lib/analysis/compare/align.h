/* SPDX-License-Identifier: BSD-2-Clause */
/* Which lines of two versions of a procedure are the same line. */
#ifndef DCPI_COMPARE_ALIGN_H
#define DCPI_COMPARE_ALIGN_H

#include "listing.h"

struct align;

/*
 * Matches the lines of each function, the procedure and what is inlined into it, and each file's
 * base name: by their text where both versions of the source are here, else by their distance from
 * the function's first line. One path leads to one version, so that it is text alone where the
 * paths differ, or the folders @source_path of the sets (image_source_path), in which their sources
 * are looked for. The listings outlive *@out, which the caller closes. 0 or -ENOMEM.
 */
int align_open(const struct analysis_listing *const l[2], const char *const source_path[2],
	       struct align **out);
void align_close(struct align *al);
/* The line in the other listing of a unit with a line of listing @set; 0: it has none. */
unsigned int align_other(const struct align *al, int set, const struct analysis_unit *u);
/* How functions were matched. */
size_t align_nr_by_text(const struct align *al);
size_t align_nr_by_distance(const struct align *al);

#endif
