/* SPDX-License-Identifier: BSD-2-Clause */
/* How the stacks of an export are made, and the JSON that several formats share. */
#ifndef DCPI_EXPORT_INTERNAL_H
#define DCPI_EXPORT_INTERNAL_H

#include "callpath.h"
#include "export.h"

/* The number of a text, which is made so. 0 or -ENOMEM. */
int export_text(struct export *x, const char *text, uint32_t *out);

/* The number of an image of @a. */
static inline uint32_t export_image_number(const struct analysis *a,
					   const struct analysis_image *ai)
{
	uint32_t i = 0;

	while (i < a->nr_images && a->images[i] != ai)
		i++;
	return i;
}

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
