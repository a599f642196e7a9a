/* SPDX-License-Identifier: BSD-2-Clause */
/* One procedure in two sets of samples, compared by basic block or by source line. */
#ifndef DCPI_PARTS_H
#define DCPI_PARTS_H

#include "flow.h"
#include "listing.h"

struct parts_row {
	uint64_t from, end; /* of a block: bytes from the procedure's start; both 0: in no block */
	const char *file;   /* of a line, or of a block's first instruction; NULL: none is known */
	unsigned int line;
	uint64_t count[2];
	double range; /* |a - b| / (a + b), 0 to 1 */
};

struct parts {
	struct parts_row *v; /* by range, largest first; ties by samples, then place */
	size_t nr, cap;
	bool by_line;
	uint64_t total[2]; /* always the sums of the rows */
};

/* Are the procedures' bytes the same, but for what moving changes? Then they have the same blocks.
 */
bool parts_same_code(const struct analysis_listing *a, const struct analysis_listing *b);
/*
 * Rows without samples in both sets are left out. Files are the listings' and must outlive the
 * rows; lines match by the file's base name, so that trees in two folders can be compared. Zero-
 * initialize @out; release it also on failure. By block: those of flow_build; -ENOMEM.
 */
int parts_compare(const struct analysis_listing *const l[2], const size_t event[2], bool by_line,
		  struct parts *out, struct base_err *err);
void parts_release(struct parts *p);

/* Into @row the block over @off from the start of the procedure @first, whose graph @f is; left as
 * it is where there is none. */
void parts_name_block(const struct flow *f, const struct analysis_listing *first, uint64_t off,
		      struct parts_row *row);
/* Order of places: of source lines (by the file's base name), or of blocks. */
int parts_by_place(const struct parts_row *a, const struct parts_row *b, bool by_line);

#endif
