/* SPDX-License-Identifier: BSD-2-Clause */
/* The variation of procedures, or images, between several sets of samples. */
#ifndef DCPI_STATS_H
#define DCPI_STATS_H

#include "rows.h"

/* One set of rows, which the caller keeps as long as the stats. */
struct stats_set {
	struct analysis_rows *rows;
	size_t event;  /* the event whose counts, times @factor, are used */
	double factor; /* above 0 */
};

/* Statistics of the counts in all sets; a set without samples counts as 0. */
struct stats_spread {
	double sum, mean, min, max;
	double deviation; /* standard deviation of a sample: over nr_sets - 1 */
	double range;	  /* max - min */
	size_t nr;	  /* number of sets with samples */
};

/* The counts under one name. */
struct stats_row {
	const char *name; /* procedure, the text in its place, or image */
	char **images;	  /* its images, each once; the sets own the names */
	size_t nr_images, cap_images;
	const struct base_id **ids; /* their build-ids, likewise */
	size_t nr_ids, cap_ids;
	double *count; /* indexed by set */
	struct stats_spread spread;
};

struct stats {
	struct stats_row *v; /* largest range first, or relative range; ties by sum, then name */
	size_t nr, cap;
	size_t nr_sets;
	double *total;	     /* indexed by set */
	double total_ranges; /* sum over all rows */
};

/*
 * Merges the rows of all sets by procedure (@by_image: by image), whatever its image, so that
 * programs that were rebuilt or moved can be compared. The caller zero-initializes @out and
 * releases it, also on failure. @normalized: sort by the range relative to the row's sum. 0 or
 * -ENOMEM.
 */
int stats_make(const struct stats_set *sets, size_t nr_sets, bool by_image, bool normalized,
	       struct stats *out);
void stats_release(struct stats *s);
/* Computes the statistics of @nr counts; @nr is above 1. */
void stats_spread(const double *count, size_t nr, struct stats_spread *out);

#endif
