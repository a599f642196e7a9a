/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples over time: rows, and the slices of a window that their minutes are in (slices.c). */
#ifndef DCPI_SLICES_H
#define DCPI_SLICES_H

#include "workload.h"

#define SLICES_MAX 100000
/* The row of samples that are not to be counted. */
#define SLICES_NO_ROW SIZE_MAX

struct slices_row {
	uint64_t *count; /* indexed by slice */
	uint64_t sum;
};

struct slices {
	/* set by the caller */
	int64_t begin; /* UTC seconds at which the first slice begins: a whole minute */
	int64_t span;  /* seconds of each: whole minutes */
	size_t nr;     /* 1 to SLICES_MAX */

	/* zero-initialized, filled by slices_make */
	struct slices_row *rows;
	size_t nr_rows, cap_rows;
	uint64_t *total; /* indexed by slice: sum of the rows */
	uint64_t sum;	 /* samples of all */
	bool *recorded;	 /* indexed by slice: any workload has samples in it */
};

/* First second of the first minute that has samples of anything within the filter's time, and the
 * end of the last one. False: there are none. */
bool slices_extent(const struct profdb_workloads *w, const struct workload_filter *f,
		   int64_t *first, int64_t *end);
/*
 * A span of whole minutes, as people divide hours and days, with which [@since, @until) has at most
 * @max slices, and their begin, where one of the local day begins.
 */
int64_t slices_span(int64_t since, int64_t until, size_t max);
int64_t slices_begin(int64_t since, int64_t span);

/*
 * Divides the samples of @event (of @a) that the filter chooses among rows and slices; those of
 * other times are left out. @row_of gives the row of an offset of image @image of @w, a number or
 * SLICES_NO_ROW. What the minutes have of a block is divided among its rows in proportion to the
 * workload's counts; each slice keeps its sum, and what one had too little of, the next gets. 0,
 * -ENOMEM, or what @row_of returns below 0.
 */
int slices_make(struct analysis *a, const struct profdb_workloads *w,
		const struct workload_filter *f, size_t event,
		int (*row_of)(void *ctx, uint32_t workload, uint32_t image, uint64_t off,
			      size_t *row),
		void *ctx, struct slices *s);
void slices_release(struct slices *s);

#endif
