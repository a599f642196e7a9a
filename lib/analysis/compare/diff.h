/* SPDX-License-Identifier: BSD-2-Clause */
/* Two sets of samples compared, procedure by procedure. */
#ifndef DCPI_COMPARE_DIFF_H
#define DCPI_COMPARE_DIFF_H

#include "rows.h"

enum analysis_code {
	ANALYSIS_CODE_NONE, /* no procedure */
	ANALYSIS_CODE_EQUAL,
	ANALYSIS_CODE_OPERANDS, /* equal but for what moving changes */
	ANALYSIS_CODE_DIFFERS,
	ANALYSIS_CODE_ONLY_A, /* no samples in the other set */
	ANALYSIS_CODE_ONLY_B,
	ANALYSIS_CODE_UNKNOWN, /* bytes are missing */
};

/* What two sets have of one (image or facility, procedure). */
struct analysis_diff_row {
	struct analysis_row *row[2]; /* the first of that name; NULL: none in that set */
	uint64_t count[2];
	double share[2];   /* of the set's samples, 0 to 1 */
	double difference; /* share[1] - share[0] */
	double error;	   /* its standard error */
	double change;	   /* difference, or 0 where chance may have made it (see @bound) */
	enum analysis_code code;
	bool moved; /* its image has another path in each set, and one base name */
};

struct analysis_diff {
	struct analysis_diff_row *v;
	size_t nr, cap;
	uint64_t total[2];
	/* Standard errors that a difference must exceed to be a change: beyond that lies, by chance
	 * alone, some row of one comparison in a hundred. */
	double bound;
};

/*
 * Compare the samples of @event[i] in @rows[i], which were gathered with @code and are kept by the
 * caller until analysis_diff_release. Sorted by size of change, then of difference, then of share.
 * Pseudo-images match by facility, others by name, a file that is in one set alone by its base name
 * where one file of the other set is so, too. 0 or -ENOMEM.
 */
int analysis_diff_rows(struct analysis *const a[2], struct analysis_rows *const rows[2],
		       const size_t event[2], struct analysis_diff *out);
void analysis_diff_release(struct analysis_diff *d);
/* The facility or image, without process, or the base name of one that moved; and what stands for
 * the procedure. */
const char *analysis_diff_image(const struct analysis_diff_row *d);
const char *analysis_diff_label(const struct analysis_diff_row *d);
/* "equal", "bytes differ only in operands", ... */
const char *analysis_code_text(enum analysis_code code);

#endif
