/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DCPI_DIFF_MOVED_H
#define DCPI_DIFF_MOVED_H

#include "rows.h"

/* Zero-initialize. Its keys are copies. */
struct diff_moved {
	struct base_map paths[2]; /* of files with samples, by set */
	struct base_map alone[2]; /* base name: the one path that is not in the other set */
};

/* Find the files that are in one set alone, under a base name that one file has in each. 0 or
 * -ENOMEM; release it in any case. */
int diff_moved_find(struct diff_moved *m, struct analysis_rows *const rows[2],
		    const size_t event[2]);
/* The row's file is taken for one of the other set, by its base name. */
bool diff_moved_is(const struct diff_moved *m, const struct analysis_row *row);
void diff_moved_release(struct diff_moved *m);

#endif
