/* SPDX-License-Identifier: BSD-2-Clause */
/* The common part of dcpiwhatcg and dcpitopstalls: the stalls of the selected images. */
#ifndef DCPI_STALL_REPORT_H
#define DCPI_STALL_REPORT_H

#include "estimation.h"
#include "report.h"
#include "stalls.h"

/* Zero-initialize, but for options.max_insns and options.progress. */
struct stall_report {
	struct analysis *a;
	struct analysis_image **images; /* the images that the user selected */
	size_t nr_images;
	struct stalls_options options;
	struct stalls stalls;
};

/*
 * Make the report for the images named in @what (none: all). Release it also on failure. Errors:
 * -DCPI_EUSAGE (options), -ENOENT if no event tells time, those of report_open, choose_images and
 * stalls_add_image.
 */
int stall_report_make(struct stall_report *x, const struct select *sel, const struct estimation *e,
		      int nr, char **what, struct base_err *err);
void stall_report_release(struct stall_report *x);

double stall_report_percent(const struct stall_report *x,
			    double samples); /* share of all samples */
/* The unit of one execution's time: "cy", "ns", or "x" where counts are proportions. */
const char *stall_report_unit(const struct stall_report *x, bool absolute);
/* Database, event, what the counts are and which events limited causes. */
void stall_report_head(const struct stall_report *x, FILE *to);
/* The same for JSON: an object of report_json with the event, what counts are, and samples. */
struct json_object *stall_report_json(const struct stall_report *x, const char *schema);

#endif
