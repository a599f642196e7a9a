/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions, or source lines, with the most samples in all procedures and images. */
#ifndef DCPI_TOP_H
#define DCPI_TOP_H

#include "samples.h"

/* An address, or a source line, with samples. */
struct top_row {
	struct analysis_image *image;
	uint64_t off;	 /* offset as in the profile */
	bool placed;	 /* the image was opened and has the address */
	uint64_t vaddr;	 /* the address, if @placed */
	char *procedure; /* or the text in its place; of a line the one with its hottest address */
	size_t nr_procedures; /* of a line: number of procedures that have samples of it */
	uint64_t hottest;     /* of a line: samples of that address */
	uint64_t into;	      /* offset from its start in bytes */
	char *text;	      /* the instruction, or "(reason for its absence)"; NULL: not placed */
	char *file;	      /* NULL: no line */
	unsigned int line;
	char *program;	 /* of a line: the one that ran all its code (image_program), or NULL */
	bool trusted;	 /* of a line: all images that it is of are (image_source_trusted) */
	uint64_t *count; /* indexed by event */
};

struct top {
	struct top_row *v; /* most samples first; ties by the other events, image, offset */
	size_t nr;
	size_t nr_events;
	uint64_t *total,
		*others;  /* indexed by event: sums of the images; sums outside of the rows */
	size_t nr_others; /* number of addresses or lines outside of the rows */
};

/*
 * Finds the @max addresses of @images with the most samples of @event; addresses without any are
 * left out. Images that cannot be opened have rows too, and their state has the reason. The caller
 * zero-initializes @out and releases it, also on failure. 0 or -ENOMEM.
 */
int top_make(struct analysis *a, struct analysis_image *const *images, size_t nr_images,
	     size_t event, size_t max, struct top *out);
/*
 * The same for source lines. Lines of one name in two images are two, but for pseudo-images of one
 * facility; what has no line is a row for each procedure.
 */
int top_make_lines(struct analysis *a, struct analysis_image *const *images, size_t nr_images,
		   size_t event, size_t max, struct top *out);
void top_release(struct top *t);

#endif
