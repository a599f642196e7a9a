/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of dcpicat that prints files about all images: of call paths, and of workloads. */
#ifndef DCPI_TOOLS_CAT_WHOLE_H
#define DCPI_TOOLS_CAT_WHOLE_H

#include <json.h>

#include "profdb.h"

/* A copy that terminals and JSON can take: any other byte becomes \xHH. free(); NULL: no memory. */
char *cat_clean(const char *text);
struct json_object *cat_text_json(const char *text);

/* Images, and the tree: of each node the counts of events from @first to @end. 0 or -ENOMEM. */
int cat_callpaths_print(const struct profdb_callpaths *c, size_t first, size_t end);
/* The same, into @o. */
void cat_callpaths_json(const struct profdb_callpaths *c, size_t first, size_t end,
			struct json_object *o);

/* Images, workloads, and of each place and each minute the counts of events from @first to @end. */
void cat_workloads_print(const struct profdb_workloads *w, size_t first, size_t end);
/* The same, into @o. */
void cat_workloads_json(const struct profdb_workloads *w, size_t first, size_t end,
			struct json_object *o);

#endif
