/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples summed by image, or by procedure: the rows of a report. */
#ifndef DCPI_REPORT_ROWS_H
#define DCPI_REPORT_ROWS_H

#include "samples.h"

/* The pseudo-images of one facility that have rows, of however many processes. */
struct analysis_facility {
	char *name;
	size_t nr_images;
};

/* Where a procedure's code stands: one for each code that it has. */
struct analysis_place {
	struct analysis_image *image;
	uint64_t vaddr;
	uint64_t hash, masked; /* of its bytes; of these without what moving changes */
};

struct analysis_row {
	const struct analysis_image *image; /* of several, the first */
	struct analysis_facility *facility; /* NULL: the row is of one image alone */
	size_t nr_images;		    /* whose samples are in it */
	size_t nr_processes;		    /* of those; 0: not known */
	char *procedure;     /* NULL: samples outside every procedure, or of a whole image */
	uint64_t vaddr, len; /* of the procedure; where it stands several times, of the first */
	bool several;	     /* it does */
	/* With @code only: what code it has, as far as the bytes are there. */
	struct analysis_place *places;
	size_t nr_places, cap_places;
	bool unread;			   /* some of it is not */
	const struct analysis_image *last; /* that was added */
	uint64_t *count;		   /* by event */
};

/*
 * Zero-initialize. Pseudo-images of one facility are one: their routines of equal name make one
 * row, whatever processes ran them, unless @apart is set before the first image is added.
 */
struct analysis_rows {
	struct analysis_row *v;
	size_t nr, cap;
	size_t nr_events;
	uint64_t *total; /* by event; always the sum of the rows */
	bool apart;
	bool code;		    /* set likewise: hash the procedures' code */
	struct base_map facilities; /* by name: struct analysis_facility */
	struct base_map by_name;    /* facility and procedure: index of the row + 1 */
	struct base_map counted;    /* row and file, of images that hold several processes */
};

/* Add one row for the image, or one for each of its procedures that has a sample. 0 or -ENOMEM. */
int analysis_rows_add_image(struct analysis_rows *rows, struct analysis *a,
			    struct analysis_image *ai);
int analysis_rows_add_procedures(struct analysis_rows *rows, struct analysis *a,
				 struct analysis_image *ai);
/* By samples of @event, most first; ties by the other events, then by names. */
void analysis_rows_sort(struct analysis_rows *rows, size_t event);
void analysis_rows_release(struct analysis_rows *rows);
/* Why a row has no procedure: "(no symbol)", "(image missing)", …; of a bucket "(idle)". */
const char *analysis_row_label(const struct analysis_row *row);
/* The image to show: where a facility has several, its name, else "hello[4711]", a path, "(idle)".
 */
const char *analysis_row_image(const struct analysis_row *row);

#endif
