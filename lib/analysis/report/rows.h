/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a report: samples summed by image or by procedure. */
#ifndef DCPI_REPORT_ROWS_H
#define DCPI_REPORT_ROWS_H

#include "isample.h"
#include "samples.h"

/* The pseudo-images of one facility that have rows, of any number of processes. */
struct analysis_facility {
	char *name;
	size_t nr_images;
};

/* The place of a procedure's code, one for each distinct code. */
struct analysis_place {
	struct analysis_image *image;
	uint64_t vaddr;
	uint64_t hash, masked; /* hash of its bytes, and of its bytes without operands that change
				  when code moves */
};

/* Sums of some samples in columns of instruction samples; indexed by column. */
struct told_values {
	struct isample_value of[ISAMPLE_NR_COLUMNS], by[ISAMPLE_NR_COLUMNS];
	uint64_t count; /* samples of which anything is told */
};

struct analysis_row {
	struct analysis_image *image;	    /* the first of several */
	struct analysis_facility *facility; /* NULL: the row is of one image alone */
	size_t nr_images;		    /* number of images whose samples it has */
	size_t nr_processes;		    /* number of their processes; 0: not known */
	char *procedure; /* NULL: samples outside every procedure, or of a whole image */
	char *inlined;	 /* with @inlined: what these samples are in was put into the procedure, by
			    the linker's name if it has one; NULL: they are in its own code */
	uint64_t vaddr, len; /* the procedure; the first place of several */
	bool several;	     /* the procedure has several places */
	/* With @code only: the distinct codes, as far as bytes are available. */
	struct analysis_place *places;
	size_t nr_places, cap_places;
	bool unread;			   /* some of the code is not available */
	const struct analysis_image *last; /* the image that was added last */
	uint64_t *count;		   /* indexed by event */
	uint64_t *total; /* the caller's, allocated: samples with it on their call path, by event */
	struct told_values *told; /* with @columns: their values; NULL: nothing is told */
	/* After analysis_diff_rows: the row that it counts with, NULL if that is itself, and the
	 * index + 1 of their row of the comparison; 0: none. */
	struct analysis_row *merged;
	size_t compared;
};

/*
 * The rows; the caller zero-initializes them. Pseudo-images of one facility count as one image:
 * their routines of equal name make one row, whatever the processes, unless @apart is set before
 * the first image is added.
 */
struct analysis_rows {
	struct analysis_row *v;
	size_t nr, cap;
	size_t nr_events;
	uint64_t *total; /* indexed by event; always the sum of the rows */
	bool apart;
	bool inlined; /* set before the first image: rows for what is inlined */
	bool code;    /* set before the first image too: hash the procedures' code */
	const struct isample_columns *columns; /* likewise: add up these; NULL: none */
	struct base_map facilities;	       /* name to struct analysis_facility */
	struct base_map by_name;	       /* facility and procedure: index of the row + 1 */
	struct base_map counted; /* row and file, for images that hold several processes */
};

/* Add one row for the image, or one for each of its procedures with samples. 0 or -ENOMEM. */
int analysis_rows_add_image(struct analysis_rows *rows, struct analysis *a,
			    struct analysis_image *ai);
int analysis_rows_add_procedures(struct analysis_rows *rows, struct analysis *a,
				 struct analysis_image *ai);
/* Adds a row without samples, of an opened image: its procedure @symbol, or what is in none. */
int analysis_rows_add_unsampled(struct analysis_rows *rows, struct analysis *a,
				struct analysis_image *ai, const struct image_symbol *symbol);
/* Sorts by samples of @event, most first; ties by the other events, then by names. With
 * @by_total the totals come before all these. */
void analysis_rows_sort(struct analysis_rows *rows, size_t event, bool by_total);
void analysis_rows_release(struct analysis_rows *rows);
/* Stands between a procedure and what is inlined into it: "main (inlined f)". */
#define ANALYSIS_ROW_INLINED " (inlined "
/* The text in place of the procedure: "(no symbol)", "(image missing)", …; for a bucket
 * "(idle)". */
const char *analysis_row_label(const struct analysis_row *row);
/* The name of the image: the facility's name if it has several images, else "hello[4711]", a
 * path, or "(idle)". */
const char *analysis_row_image(const struct analysis_row *row);

#endif
