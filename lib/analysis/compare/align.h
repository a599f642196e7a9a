/* SPDX-License-Identifier: BSD-2-Clause */
/* Which lines of two versions of a procedure are the same line. */
#ifndef DCPI_COMPARE_ALIGN_H
#define DCPI_COMPARE_ALIGN_H

#include "listing.h"

struct align;

/*
 * Matches lines by their instructions where @same_code. Else it does within each function, the
 * procedure and what is inlined into it, and each file's base name: by text where both versions of
 * the source are here and not too much differs, else by distance from the function's first line.
 * One file is one version's, so that it is text alone where the paths, or the folders @source_path
 * of the sets (image_source_path), in which their sources are looked for, lead to two. The listings
 * outlive *@out, which the caller closes. 0 or -ENOMEM.
 */
int align_open(const struct analysis_listing *const l[2], bool same_code,
	       const char *const source_path[2], struct align **out);
void align_close(struct align *al);
/* Has each instruction of code that is the same the same line in both? */
bool align_same_lines(const struct analysis_listing *const l[2]);
/* The line in the other listing of a unit with a line of listing @set; 0: it has none. */
unsigned int align_other(const struct align *al, int set, const struct analysis_unit *u);
/* Says in words what lines match by. */
const char *align_text(const struct align *al);

#endif
