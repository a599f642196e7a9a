/* SPDX-License-Identifier: BSD-2-Clause */
/* The routines of a file, as its symbols tell where they begin and end. */
#ifndef DCPI_IMAGE_ROUTINES_H
#define DCPI_IMAGE_ROUTINES_H

#include "image_internal.h"

struct image_routine {
	uint64_t vaddr, len;
};

struct image_routines {
	struct image_routine *v; /* ascending, disjoint */
	size_t nr, cap;
};

/* Symbols of functions that have a length; none is no error. 0, -ENOMEM, or -DCPI_ELIMIT. */
int image_routines_read(struct image_routines *r, const struct image_elf *f);
/* The index of the first one that begins at @vaddr or behind it. */
size_t image_routines_find(const struct image_routines *r, uint64_t vaddr);
void image_routines_release(struct image_routines *r);

#endif
