/* SPDX-License-Identifier: BSD-2-Clause */
/* The comparison of two sets of samples, procedure by procedure. */
#ifndef DCPI_COMPARE_DIFF_H
#define DCPI_COMPARE_DIFF_H

#include "rows.h"

enum analysis_code {
	ANALYSIS_CODE_NONE, /* no procedure */
	ANALYSIS_CODE_EQUAL,
	ANALYSIS_CODE_OPERANDS, /* equal except for operands that change when code moves */
	ANALYSIS_CODE_DIFFERS,
	ANALYSIS_CODE_ONLY_A, /* no samples in the other set */
	ANALYSIS_CODE_ONLY_B,
	ANALYSIS_CODE_UNKNOWN, /* bytes are missing */
};

/* The samples of one (image or facility, procedure) in two sets. */
struct analysis_diff_row {
	struct analysis_row *row[2]; /* the first row of that name; NULL: none in that set */
	uint64_t count[2];
	double share[2];   /* part of the set's samples, 0 to 1 */
	double difference; /* share[1] - share[0] */
	double error;	   /* standard error of the difference */
	double change;	   /* the difference, or 0 if it may be noise (see @bound) */
	enum analysis_code code;
	bool moved; /* its image has a different path in each set, and one base name */
};

struct analysis_diff {
	struct analysis_diff_row *v;
	size_t nr, cap;
	uint64_t total[2];
	/* A change is a difference of more standard errors than this: by noise alone, one
	 * comparison in a hundred has such a row. */
	double bound;
};

/* The image of @a that was opened last, which the caller closes. */
struct analysis_opened {
	struct analysis *a;
	const struct analysis_image *of;
	struct image *image;
};

/*
 * Compares the samples of @event[i] in @rows[i], which were gathered with @code and which the
 * caller keeps until analysis_diff_release. The result is sorted by size of change, then of
 * difference, then of share. Pseudo-images match by facility, other images by name; a file that is
 * in one set alone matches by base name if exactly one file of the other set does. Each of @rows
 * gets its row of the result (@compared). 0 or -ENOMEM.
 */
int analysis_diff_rows(struct analysis *const a[2], struct analysis_rows *const rows[2],
		       const size_t event[2], struct analysis_diff *out);
void analysis_diff_release(struct analysis_diff *d);
/* Opens the image, unless it is open, as its symbols cost more than the code of a procedure. NULL:
 * it cannot be read. */
struct image *analysis_opened_image(struct analysis_opened *o, struct analysis_image *ai);
/* The facility or image, without process, or the base name of a moved file; and the name of the
 * procedure or the text in its place. */
const char *analysis_diff_image(const struct analysis_diff_row *d);
const char *analysis_diff_label(const struct analysis_diff_row *d);

#endif
