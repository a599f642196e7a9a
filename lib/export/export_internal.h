/* SPDX-License-Identifier: BSD-2-Clause */
/* How the stacks of an export are made, and the JSON that several formats share. */
#ifndef DCPI_EXPORT_INTERNAL_H
#define DCPI_EXPORT_INTERNAL_H

#include "callpath.h"
#include "export.h"

/* The number of a text, which is made so. 0 or -ENOMEM. */
int export_text(struct export *x, const char *text, uint32_t *out);

/*
 * places.c: the number of the place at an offset of image @image; then all of them are read from
 * their images, and @procedures (by place, of @t; may be NULL) gets their procedures. Marks of ends
 * are places too. 0 or negative.
 */
int places_find(struct export *x, uint32_t image, uint64_t off, uint32_t *out);
int places_read(struct export *x, struct analysis *a, const struct callpath_tree *t,
		uint32_t *procedures);
int places_mark(struct export *x, const char *name, uint32_t *out);

/* divide.c: the sampled instructions with their callers. */
struct divide {
	struct export *x;
	const struct callpath_tree *t;
	const struct profdb_callpaths *paths;
	const uint32_t *place;	   /* indexed by node of the paths */
	const uint32_t *procedure; /* indexed by place */
	uint64_t *due;		   /* [node * nr_events + event]: samples on its path */
	uint64_t *left;		   /* [place * nr_events + event]: samples without a path so far */
};
/* Samples that the tree has for the path of each node, by event, into d->due. */
int divide_due(struct divide *d);
int divide_make(struct divide *d);
/* @n samples of a stack more. 0 or -ENOMEM. */
int export_add(struct export *x, uint32_t place, uint32_t caller, size_t event, uint64_t n);

/* json.c: a text as JSON has it; arrays of numbers. */
void json_text(FILE *to, const char *text);

#endif
