/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of dcpicat that prints files about all images: of call paths, and of workloads. */
#ifndef DCPI_TOOLS_CAT_WHOLE_H
#define DCPI_TOOLS_CAT_WHOLE_H

#include <json.h>

#include "profdb.h"

/* A copy that terminals and JSON can take: any other byte becomes \xHH. free(); NULL: no memory. */
char *cat_clean(const char *text);
struct json_object *cat_text_json(const char *text);

/* A kind of such files. */
enum { CAT_NR_WHOLES = 2 };
extern const struct cat_whole {
	const char *name; /* of the list of them in JSON */
	/* Negative: the file is of no such kind. */
	int (*parse)(const struct base_buf *bytes, void **out);
	const struct profdb_profile *(*header)(const void *file);
	/* All that it has, with the counts of events from @first to @end. 0 or -ENOMEM. */
	int (*print)(const void *file, size_t first, size_t end);
	/* The same, into @o. */
	void (*json)(const void *file, size_t first, size_t end, struct json_object *o);
	void (*free)(void *file);
} cat_wholes[CAT_NR_WHOLES];

#endif
