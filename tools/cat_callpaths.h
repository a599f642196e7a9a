/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of dcpicat that prints the images, frames and samples of a file of call paths. */
#ifndef DCPI_TOOLS_CAT_CALLPATHS_H
#define DCPI_TOOLS_CAT_CALLPATHS_H

#include <json.h>

#include "profdb.h"

/* Images, and the tree: of each node the counts of events from @first to @end. 0 or -ENOMEM. */
int cat_callpaths_print(const struct profdb_callpaths *c, size_t first, size_t end);
/* The same, into @o. */
void cat_callpaths_json(const struct profdb_callpaths *c, size_t first, size_t end,
			struct json_object *o);

#endif
