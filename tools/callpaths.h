/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths for a report: read, restricted to what the user chose, and on how many it rests. */
#ifndef DCPI_CALLPATHS_H
#define DCPI_CALLPATHS_H

#include "callpath.h"
#include "report.h"

struct callpaths_options {
	const char *event;	     /* -s: whose samples are shown */
	struct base_opt_list images; /* -image: only paths through one of them */
	bool no_inline;
	bool full_names;
	bool no_header;
};

/* Lines of an option table, for a static struct callpaths_options @o. */
/* clang-format off */
#define CALLPATHS_OPTIONS(o)                                                                       \
	{ "s", BASE_OPT_STRING, &(o).event, "EVENT",                                               \
	  "Show this event's samples (default: cycles, else a clock, else the first).", 0, 0 },    \
	{ "image", BASE_OPT_LIST, &(o).images, "IMAGE",                                            \
	  "Only samples on paths through this image, such as a program. Repeatable: or this one.", \
	  0, 0 },                                                                                  \
	{ "no_inline", BASE_OPT_FLAG, &(o).no_inline, NULL,                                        \
	  "Count functions that were inlined as parts of the procedures that they are in.", 0, 0 },\
	{ "full_names", BASE_OPT_FLAG, &(o).full_names, NULL,                                      \
	  "Show long names of C++ and Rust with all that stands in brackets.", 0, 0 },             \
	{ "no_header", BASE_OPT_FLAG, &(o).no_header, NULL,                                        \
	  "Leave out the lines above the table.", 0, 0 }
/* clang-format on */

struct callpaths {
	struct analysis *a;
	struct callpath_tree *tree;
	size_t event;
	bool *wanted; /* by procedure: what the operands name; NULL: there are none */
	char **names; /* likewise: made short, where they were asked for */
	bool full_names;
};

/* The tree of what is in @a, in x->tree. -ENOENT, with a hint: there are no call paths of it. */
int callpaths_read(const struct select *sel, const struct callpath_how *how, struct callpaths *x,
		   struct base_err *err);
/* All of it: what @sel and @o choose, and the procedures that operands name. */
int callpaths_open(const struct select *sel, const struct callpaths_options *o,
		   const struct callpath_how *how, int nr, char **what, struct callpaths *out,
		   struct base_err *err);
/* Leaves in @a only the samples that s->callers called. Errors: no such procedure, no paths. */
int callpaths_restrict(const struct select *s, struct analysis *a, struct base_err *err);
void callpaths_close(struct callpaths *x);

/* Says what is wrong with the database, as report_problems; a report that failed (@r below 0) lacks
 * no names of images. */
int callpaths_problems(const char *prog, const struct callpaths *x, int r, FILE *to);

/* Samples of the event on all paths that are left. */
uint64_t callpaths_total(const struct callpaths *x);
/* The name of a procedure as the text shows it, which lives as long as @x: made short where it has
 * more than @len bytes. */
const char *callpaths_name(struct callpaths *x, uint32_t procedure, size_t len);
/* How many paths, and how they end: behind report_events. */
void callpaths_print(const struct callpaths *x, FILE *to);
/* The head of a report. */
void callpaths_head(const struct callpaths *x, FILE *to);
/* Into @root its "paths". */
void callpaths_json(const struct callpaths *x, struct json_object *root);
/* The head as an object. */
struct json_object *callpaths_json_head(const struct callpaths *x, const char *schema);
/* Into @o what a row says of a procedure. */
void callpaths_json_procedure(const struct callpath_procedure *p, struct json_object *o);

#endif
