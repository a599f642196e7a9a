/* SPDX-License-Identifier: BSD-2-Clause */
/* How much procedures, or images, vary between several sets of samples. */
#ifndef DCPI_STATS_H
#define DCPI_STATS_H

#include "rows.h"

/* One set: rows that were gathered, kept by the caller as long as the stats. */
struct stats_set {
	struct analysis_rows *rows;
	size_t event;  /* whose counts are taken, times @factor */
	double factor; /* above 0 */
};

/* Of the counts in all sets; a set without samples counts as 0. */
struct stats_spread {
	double sum, mean, min, max;
	double deviation; /* standard deviation, of a sample: over nr_sets - 1 */
	double range;	  /* max - min */
	size_t nr;	  /* sets that have samples */
};

/* What the sets have under one name. */
struct stats_row {
	const char *name; /* procedure, what stands for it, or image */
	char **images;	  /* where it stands, each once; names are the sets' */
	size_t nr_images, cap_images;
	double *count; /* by set */
	struct stats_spread spread;
};

struct stats {
	struct stats_row *v; /* by range, largest first; ties by sum, then name */
	size_t nr, cap;
	size_t nr_sets;
	double *total;	     /* by set */
	double total_ranges; /* of all rows */
};

/*
 * Put the rows of all sets together by procedure (@by_image: by image), whatever image it stands
 * in: programs that were built anew, or under another path, are to be compared. Zero-initialize
 * @out; release it also on failure. 0 or -ENOMEM.
 */
int stats_make(const struct stats_set *sets, size_t nr_sets, bool by_image, struct stats *out);
void stats_release(struct stats *s);
/* Of @nr counts, @nr above 1. */
void stats_spread(const double *count, size_t nr, struct stats_spread *out);
/* Sort by range in parts of the row's sum instead. */
void stats_sort_normalized(struct stats *s);

#endif
