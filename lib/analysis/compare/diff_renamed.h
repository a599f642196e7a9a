/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DCPI_DIFF_RENAMED_H
#define DCPI_DIFF_RENAMED_H

#include "diff.h"

/*
 * Make one row of those that are in one set alone, in images of one name but other build-ids, where
 * their readable names are equal and neither image has a procedure of the other's name for the
 * linker. 0 or -ENOMEM.
 */
int analysis_diff_renamed(struct analysis_diff *d, struct analysis *const a[2]);
/* diff.c: @to has the code of both. 0 or -ENOMEM. */
int analysis_row_join_places(struct analysis_row *to, const struct analysis_row *from);

#endif
