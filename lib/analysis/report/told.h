/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instruction samples (isample.h) are added up as the columns that a user has asked for: by image,
 * by procedure, by instruction, or between two offsets.
 */
#ifndef DCPI_REPORT_TOLD_H
#define DCPI_REPORT_TOLD_H

#include "isample.h"
#include "listing.h"
#include "samples.h"
#include "search.h"

/* NAN: the hardware does not tell it of these samples. */
double told_value(const struct isample_columns *c, const struct told_values *v, size_t column);
/* Adds the samples of @ai at offsets from @from up to @to, the last one included. */
void told_add(const struct isample_columns *c, const struct analysis_image *ai, uint64_t from,
	      uint64_t to, struct told_values *v);

/* Adds those of a listing at the address of a unit; @u NULL: all. */
void told_add_unit(const struct isample_columns *c, const struct analysis_listing *l,
		   const struct analysis_unit *u, struct told_values *v);
/* Adds those of one entry of @ai's profile, where its event is chosen and its place known. */
void told_add_entry(const struct isample_columns *c, const struct analysis_image *ai,
		    const struct profdb_insn *m, struct told_values *v);
/* Adds the values of some samples to those of others. */
void told_join(const struct isample_columns *c, const struct told_values *v,
	       struct told_values *to);

/* How much of the samples of an event of the analysis is told of. */
struct told_event {
	uint64_t told;
	uint64_t roomless; /* samples of which it was told, but profiles had no room for that */
};

struct told_event told_event(const struct analysis *a, size_t event);

enum told_by { TOLD_BY_IMAGE, TOLD_BY_PROCEDURE, TOLD_BY_INSN };

struct told_row {
	struct analysis_image *image;
	char *procedure;    /* or what stands for it; of an image NULL */
	uint64_t vaddr;	    /* the address of the instruction, or the procedure */
	uint64_t off, into; /* where the instruction lies in its image, and in its procedure */
	bool placed;	    /* the image has that address */
	char *text;	    /* the instruction, or "" */
	char *file;	    /* its source line, or NULL */
	unsigned int line;
	struct told_values values;
};

/* Zero-initialize. */
struct told_rows {
	struct told_row *v;
	size_t nr, cap;
	struct told_values total; /* the sum of all rows */
};

/* Adds the rows of an image; @in (may be NULL): only instructions of these procedures. 0, -ENOMEM.
 */
int told_rows_add(struct told_rows *rows, const struct isample_columns *c, struct analysis *a,
		  struct analysis_image *ai, enum told_by by, const struct analysis_founds *in);
/* Sorts by the first column, highest first; values that are not told come last. */
void told_rows_sort(struct told_rows *rows, const struct isample_columns *c);
/* The sum of all from @first on into *@out. */
void told_rows_others(const struct told_rows *rows, const struct isample_columns *c, size_t first,
		      struct told_values *out);
void told_rows_release(struct told_rows *rows);

#endif
