/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JSON report of a command whose product is a file in a format of its own. One rule holds for
 * all of them: standard output carries JSON only. Output that would go there for want of a file's
 * name is not written, and output of programs that are run goes to standard error.
 */
#ifndef DCPI_DONE_H
#define DCPI_DONE_H

#include <json.h>

#include "exact.h"

/* A line of an option table, for a static bool @flag. */
/* clang-format off */
#define DONE_OPTION(flag)                                                                          \
	{ "json", BASE_OPT_FLAG, &(flag), NULL,                                                    \
	  "Tell as JSON what was done (dcpijson(5)). Standard output has nothing else then: what " \
	  "would go there is not written.", 0, 0 }
/* clang-format on */

/* An object with "schema", and "files", a list without any yet. */
struct json_object *done_json(const char *schema);
/* One more that was written; NULL: none. */
void done_file(struct json_object *root, const char *path);
/* "runs", "processes", "images" and "executed", the sum of these. */
void done_exact(struct json_object *root, const struct exact *e);
/* Prints and releases. 0, or -EIO with @err. */
int done_print(struct json_object *root, struct base_err *err);

#endif
