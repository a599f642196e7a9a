/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an image's code wants to be, and how much of it there is: DCPI's text_start and text_size.
 */
#ifndef DCPI_IMAGE_TEXT_H
#define DCPI_IMAGE_TEXT_H

#include "profdb.h"

struct image_text {
	uint64_t start; /* of offset 0: an address in the image's ELF is this and the offset */
	uint64_t size;	/* bytes of code */
};

/* Of the program or library that @p is of, as far as a file with its identity is where image_open
 * looks for it. False: none is, or it has no code. */
bool image_text_find(const struct profdb_profile *p, struct image_text *out);

#endif
