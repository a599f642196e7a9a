/* SPDX-License-Identifier: BSD-2-Clause */
/* Which lines of a function have the same text in two versions of its source. */
#ifndef DCPI_COMPARE_TEXTS_H
#define DCPI_COMPARE_TEXTS_H

#include "listing.h"

/* The lines of a function, in a file of a listing. */
struct texts_part {
	uint32_t file; /* index in the listing's files */
	unsigned int first, last;
};

/* The sources of both listings; each is read once. */
struct texts;

/*
 * @source_path (image_source_path): the folders of the sets in which their sources are looked for.
 * NULL: no memory. The listings and paths outlive the texts, which the caller closes.
 */
struct texts *texts_open(const struct analysis_listing *const l[2],
			 const char *const source_path[2]);
void texts_close(struct texts *t);
/*
 * Sets other[set] to an array with the line of the other version for each line from the first one
 * to the last, 0: none. The caller frees both. 0; -ENOENT: the sources are not both here, or are
 * one file, which is one version's at most; -E2BIG: too much differs, in this function or in those
 * before it; or -ENOMEM.
 */
int texts_match(struct texts *t, const struct texts_part part[2], unsigned int *other[2]);

#endif
