/* SPDX-License-Identifier: BSD-2-Clause */
/* The head and the foot of every report: where its numbers come from, and what is wrong there. */
#ifndef DCPI_REPORT_H
#define DCPI_REPORT_H

#include <json.h>

#include "samples.h"
#include "demangle.h"
#include "select.h"
#include "table.h"

/* A command's exit code for what it returned; below 0, @err is printed. */
int report_end(const struct base_cmd *cmd, int r, const struct base_err *err);
/* A command as a whole: its options are parsed, @check (NULL: nothing) looks at them and at how
 * many operands there are, and @run gets these. Returns the exit code. */
int report_command(const struct base_cmd *cmd, int (*check)(int nr, struct base_err *err),
		   int (*run)(int nr, char **words, struct base_err *err), int argc, char **argv);
/*
 * The main function of a command that is its options, those of @sel among them, and @run, which
 * gets the operands and returns an exit code or negative with @err.
 */
int report_main(const struct base_cmd *cmd, struct select *sel,
		int (*run)(int nr, char **what, struct base_err *err), int argc, char **argv);

/* Gather what @s selects (report_open.c). 0 or negative with @err. From here on SIGXFSZ is ignored,
 * and what is printed may go through a pager (terminal_begin). */
int report_open(const struct select *s, struct analysis **out, struct base_err *err);
struct analysis_row;
struct workloads;
/* The same, and the workloads of all that is chosen into @w (NULL: not wanted), which is released
 * also on failure. */
int report_open_workloads(const struct select *s, struct analysis **out, struct workloads *w,
			  struct base_err *err);

/* The epochs of @db that @s selects, as profdb_epoch_select; those of its time as a whole. */
int report_epochs(const struct select *s, struct profdb *db, char ***out, struct base_err *err);

/* A text from outside, fit for a terminal. */
void report_print_clean(FILE *to, const char *text);
/* A procedure's name, as it is shown (demangle_shown). */
void report_print_name(FILE *to, const char *linkage);

/* Database, epochs, platforms. One line each. */
void report_head(const struct analysis *a, FILE *to);
/* A line of the head, and a member of the object, that say what the kernel told of idle CPUs; none
 * where samples of some workloads, labels or callers alone are shown. */
void report_idle_head(struct analysis *a, FILE *to);
void report_idle_json(struct analysis *a, struct json_object *root);
/* "cpu-clock  12345 samples, one per 1000000 ns" for each event, with these sums; ", counted 50.0 %
 * of the time" behind it where it took turns with others. */
void report_events(const struct analysis *a, const uint64_t *sums, FILE *to);

/* Sums over all images, by event: fills @sums (ANALYSIS_NR_EVENTS) and returns it. */
const uint64_t *report_sums(const struct analysis *a, uint64_t *sums);

/* Seconds that a sample of @event in @ai (NULL: in all images, on the average) stands for, where
 * that is a clock or the tick; else 0. */
double report_seconds(const struct analysis *a, const struct analysis_image *ai, size_t event);
/* The line of a head that says so of @sum samples of @event; nothing of what is no clock. */
void report_seconds_line(const struct analysis *a, size_t event, uint64_t sum, FILE *to);
/* Does a sample of this event stand for time? */
bool report_is_clock(const char *event);
void report_event(const struct analysis_event *ev, uint64_t sum, FILE *to);

/* The same for JSON: an object with schema (NULL: it is a part of another), database, epochs,
 * platforms, events. */
struct json_object *report_json(const char *schema, const struct analysis *a, const uint64_t *sums);
/* {"cpu-clock": 12, …}; @count may be NULL for zeros. */
struct json_object *report_json_counts(const struct analysis *a, const uint64_t *count);
/* A cleaned copy (JSON text must be UTF-8); NULL gives null. */
struct json_object *report_json_text(const char *text);
/* Into @o its "procedure", as shown, and where the linker's name is another, that as "linkage". */
void report_json_procedure(struct json_object *o, const char *linkage);
/* Into @o the "build_id" of its image, or, of NULL and of an image without one, null. */
void report_json_build_id(struct json_object *o, const struct analysis_image *ai);
/* Into @o "build_id" with "a" and "b", those of a row in two sets; null: the set has no such row,
 * or several images in it. */
void report_json_build_ids(struct json_object *o, struct analysis_row *const row[2]);
/* The image's name as "image", and that. */
void report_json_image(struct json_object *o, const struct analysis_image *ai);
struct json_object *report_json_hex(uint64_t value);
/* To ten digits, without those that computing made. */
struct json_object *report_json_number(double value);
/* Its two parts: add "problems"; print and release. */
void report_json_problems(struct json_object *root, const struct analysis *a);
int report_json_put(struct json_object *root, FILE *to);
/* Add "problems", print with a newline, release. 0 or -ENOMEM; what @to refused, main() tells. */
int report_json_print(struct json_object *root, const struct analysis *a, FILE *to);

/*
 * Say on @to which profile files and images could not be read. Returns the exit code: failed where
 * something of the database itself is missing or damaged, as its samples or names are missing from
 * what was printed.
 */
int report_problems(const char *prog, const struct analysis *a, FILE *to);
/* Report the bad profile files alone, and the images whose procedures are guessed. */
int report_bad(const char *prog, const struct analysis *a, FILE *to);
/* Two cells of a table: samples and percent of @total, empty where there are none. */
void report_cells(struct table *t, uint64_t count, uint64_t total);
/* A column of text with one of the heads that tables of instructions and lines have: on a terminal
 * "pc" is never shortened, "instruction" and "text" are code, "image" is spare. */
void report_column(struct table *t, const char *head);
/* Per event heads: its name and "%". */
void report_columns(struct table *t, const struct analysis *a);

#endif
