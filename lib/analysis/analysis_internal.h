/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DCPI_ANALYSIS_INTERNAL_H
#define DCPI_ANALYSIS_INTERNAL_H

#include "analysis.h"

/* Has the entry of @ai's profile samples of a chosen event? */
bool analysis_entry_wanted(const struct analysis_image *ai, const struct profdb_entry *e);
/* Add its chosen samples by event, to @total (may be NULL) as well. */
void analysis_entry_add(const struct analysis_image *ai, const struct profdb_entry *e,
			uint64_t *count, uint64_t *total);

#endif
