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

/* The number of an image of @a. */
uint32_t export_image_number(const struct analysis *a, const struct analysis_image *ai);

/* ---- threads.c ------------------------------------------------------------------------------- */

/* A thread, or all threads of a name where more was not kept. */
struct export_thread {
	uint32_t process, name; /* texts; 0: not known */
	uint64_t pid, tid;	/* at least 2^22 where they are made */
	bool main;		/* the first of its process */
	bool estimated;		/* that these samples are its own is not known */
	size_t first, nr;	/* in the parts */
};

struct export_threads {
	struct export_thread *v;
	size_t nr;
	size_t *parts; /* all parts, those of a thread one behind the other */
};

/* The threads of all parts, into *@out (zero), which is released with export_threads_release. 0 or
 * -ENOMEM. */
int export_threads(const struct export *x, struct export_threads *out);
void export_threads_release(struct export_threads *t);

/* json.c: a text as JSON has it; arrays of numbers. */
void json_text(FILE *to, const char *text);

#endif
