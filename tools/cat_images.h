/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of dcpicat that files of call paths and of workloads have in common. */
#ifndef DCPI_TOOLS_CAT_IMAGES_H
#define DCPI_TOOLS_CAT_IMAGES_H

#include <json.h>

#include "profdb.h"

/* A copy that terminals and JSON can take: any other byte becomes \xHH. free(); NULL: no memory. */
char *cat_clean(const char *text);
struct json_object *cat_text_json(const char *text);

/* A line, or an object. */
void cat_image_print(const struct profdb_image_ref *i, size_t number);
struct json_object *cat_image_json(const struct profdb_image_ref *i);
/* Some event from @first to @end has samples. */
bool cat_counts_any(const uint64_t *count, size_t first, size_t end);
/* Counts of events from @first to @end: the rest of a line, or an array. */
void cat_counts_print(const uint64_t *count, size_t first, size_t end);
struct json_object *cat_counts_json(const uint64_t *count, size_t first, size_t end);

#endif
