/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions with most samples, of whatever procedures and images. */
#ifndef DCPI_TOP_H
#define DCPI_TOP_H

#include "samples.h"

/* An address with samples. */
struct top_row {
	struct analysis_image *image;
	uint64_t off;	 /* as the profile has it */
	bool placed;	 /* the image was opened and has such an address: */
	uint64_t vaddr;	 /* this */
	char *procedure; /* or what stands for it */
	uint64_t into;	 /* bytes from its start on */
	char *text;	 /* instruction, or "(why there is none)"; NULL where not placed */
	char *file;	 /* NULL: no line */
	unsigned int line;
	uint64_t *count; /* by event */
};

struct top {
	struct top_row *v; /* by samples, most first; ties by the other events, image, offset */
	size_t nr;
	size_t nr_events;
	uint64_t *total, *others; /* by event: of all images meant; less what the rows have */
	size_t nr_others;	  /* addresses that are not among the rows */
};

/*
 * The @max addresses of @images with most samples of @event; addresses without any are left out.
 * Images that cannot be opened have rows too, and their state says why. Zero-initialize @out;
 * release it also on failure. 0 or -ENOMEM.
 */
int top_make(struct analysis *a, struct analysis_image *const *images, size_t nr_images,
	     size_t event, size_t max, struct top *out);
void top_release(struct top *t);

#endif
