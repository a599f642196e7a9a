/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of dcpitimeline and their slices, and how they are drawn. */
#ifndef DCPI_TIMELINE_H
#define DCPI_TIMELINE_H

#include "report.h"
#include "slices.h"

struct timeline_row {
	char *name, *image; /* as shown; @image NULL: the row is no procedure */
	size_t number;	    /* in slices.rows */
};

struct timeline {
	struct analysis *a;
	size_t event;
	const char *by; /* "image", "procedure", or the name of a key */
	struct slices slices;
	struct timeline_row *rows; /* most samples first */
	size_t nr, cap;
	size_t nr_shown; /* the others are summed up in a row */
};

/* Slices that find room in @columns columns of a terminal. */
size_t timeline_room(size_t columns);
/* The table: a bar for each row, of blocks or (not @utf8) of ASCII characters. 0 or -ENOMEM. */
int timeline_print(const struct timeline *t, bool utf8, FILE *to);
/* Samples of the rows that are not shown, by slice; their sum. Allocated; NULL: no memory. */
uint64_t *timeline_others(const struct timeline *t, uint64_t *sum);

#endif
