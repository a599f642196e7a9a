/* SPDX-License-Identifier: BSD-2-Clause */
/* The common start of dcpi2bb, dcpi2pix and dcpifdo: an image, and how often its procedures ran. */
#ifndef DCPI_FEEDBACK_H
#define DCPI_FEEDBACK_H

#include "done.h"
#include "estimation.h"
#include "runs.h"
#include "select.h"

struct feedback {
	struct select sel; /* json as in done.h */
	struct base_opt_list xct, tab;
	struct estimation how; /* -conf_low, -conf_med, -conf_high */
	/* The operands and their results: */
	char **names; /* procedures; none: all */
	int nr_names;
	bool *used; /* indexed by name: whether it was found */
	const char *image;
	struct runs runs;
	runs_visit *visit;
	void *context; /* its */
};

/* Lines of an option table, for a static struct feedback @f. */
/* clang-format off */
#define FEEDBACK_OPTIONS(f)                                                                        \
	SELECT_OPTIONS_DB((f).sel),                                                                \
	SELECT_OPTION_LABEL((f).sel),                                                              \
	SELECT_OPTIONS_WORKLOAD((f).sel),                                                          \
	SELECT_OPTIONS_FILES((f).sel.files, (f).sel.maps),                                         \
	{ "event", BASE_OPT_STRING, &(f).sel.event, "EVENT",                                       \
	  "Estimate from samples of this event (default: the one that tells most).", 0, 0 },       \
	{ "xct", BASE_OPT_LIST, &(f).xct, "FILE",                                                  \
	  "Take the counts of dcpix; IMAGE is a file then, and no database is read, so that what " \
	  "chooses samples is refused. Repeatable: they are added up.", 0, 0 },                    \
	{ "tab", BASE_OPT_LIST, &(f).tab, "FILE",                                                  \
	  "The table that dcpix made beside them; needed for routines made at run time.", 0, 0 },  \
	DONE_OPTION((f).sel.json)
/* clang-format on */

/* 0 or -DCPI_EUSAGE with @err. Call after parsing. @usual: the confidence without an option. */
int feedback_check(struct feedback *f, enum freq_confidence usual, struct base_err *err);
/*
 * Visit the procedures that @what names: an image, then procedures of it; none: all that have
 * counts. Then @finish, while the image is open. An exit code, or negative with @err.
 */
int feedback_run(struct feedback *f, const char *prog, int nr, char **what, runs_visit *visit,
		 int (*finish)(void *context, struct feedback *f, struct base_err *err),
		 void *context, struct base_err *err);
/* "executions, counted": what the numbers are. */
void feedback_unit(const struct feedback *f, char *buf, size_t buf_len);
/* The report of the run: an object of done_json, and for samples the members of report_json. */
struct json_object *feedback_json(const struct feedback *f, const char *schema);

#endif
