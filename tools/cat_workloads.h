/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of dcpicat that prints the images, workloads and samples of a file of workloads. */
#ifndef DCPI_TOOLS_CAT_WORKLOADS_H
#define DCPI_TOOLS_CAT_WORKLOADS_H

#include <json.h>

#include "profdb.h"

/* Images, workloads, and of each place and each minute the counts of events from @first to @end. */
void cat_workloads_print(const struct profdb_workloads *w, size_t first, size_t end);
/* The same, into @o. */
void cat_workloads_json(const struct profdb_workloads *w, size_t first, size_t end,
			struct json_object *o);

#endif
