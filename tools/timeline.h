/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of dcpitimeline and their slices, and how they are drawn. */
#ifndef DCPI_TIMELINE_H
#define DCPI_TIMELINE_H

#include "report.h"
#include "slices.h"

struct timeline_row {
	char *name, *image;		 /* as shown; @image NULL: the row is no procedure */
	size_t number;			 /* in slices.rows */
	const struct analysis_image *ai; /* its first image; NULL: the row is a workload */
	bool several;			 /* it has other images too */
};

struct timeline {
	struct analysis *a;
	const struct profdb_workloads *w;
	size_t event;
	const char *by; /* "image", "procedure", or the name of a key */
	struct slices slices;
	struct timeline_row *rows; /* most samples first */
	size_t nr, cap;
	size_t nr_shown; /* the others are summed up in a row */
};

/* Lines on the slices without samples, which the table marks by @sign, and on what the daemon noted
 * (timeline_notes.c); the notes as a list. */
void timeline_print_notes(const struct timeline *t, const char *sign, FILE *to);
struct json_object *timeline_json_notes(const struct timeline *t);

#endif
