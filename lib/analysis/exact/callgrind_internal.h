/* SPDX-License-Identifier: BSD-2-Clause */
/* A line of callgrind's, dump or log, while it is taken apart. */
#ifndef DCPI_CALLGRIND_INTERNAL_H
#define DCPI_CALLGRIND_INTERNAL_H

#include "callgrind.h"

struct callgrind_text {
	const char *at, *end;
};

/* Does it go on with that? Then it is passed. */
bool callgrind_starts(struct callgrind_text *t, const char *word);
/* The digits that come next, of which there must be one. 0 or -DCPI_EFORMAT. */
int callgrind_number(struct callgrind_text *t, unsigned int base, uint64_t *out);
/* The same, of 31 bits, decimal. */
int callgrind_pid(struct callgrind_text *t, uint32_t *out);

/* ---- summing (callgrind_sum.c, callgrind_end.c) --------------------------------------------- */

/* A file that callgrind names, or a pseudo-image. */
struct callgrind_object {
	char *path;
	struct image *img;     /* NULL: it cannot be read */
	struct exact_image *x; /* once something in it ran */
	bool foreign;	       /* a part of valgrind, no counts of it are kept */
	uint32_t pid;	       /* of a pseudo-image */
};

struct callgrind_sum {
	struct exact *e;
	struct base_map by_path;
	struct callgrind_object **objects;
	size_t nr_objects, cap_objects;
	struct callgrind_object **dynamic; /* pseudo-images, owned by these */
	size_t nr_dynamic, cap_dynamic;
	/* Of the dump being read: */
	struct callgrind_head head;
	const struct callgrind_maps *maps;
	struct exact_image *process; /* what is in no image */
	const char *last_name;	     /* as the parser has it: it is asked for again and again */
	struct callgrind_object *last_object; /* NULL: "???" */
};

#endif
