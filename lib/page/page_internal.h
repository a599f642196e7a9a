/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a page's model. */
#ifndef DCPI_PAGE_INTERNAL_H
#define DCPI_PAGE_INTERNAL_H

#include "jwrite.h"
#include "page.h"
#include "rows.h"

struct page {
	struct analysis *a;
	const struct page_options *o;
	struct analysis_rows procedures, images;
	struct base_map
		image_of; /* indexed by facility or image: index of its row in @images + 1 */
	size_t nr_shown;  /* procedures that have a row of their own */
};

/* code.c: the listings of the hottest procedures, in about @size bytes. */
int page_code(struct page *p, struct jwrite *j, size_t size, struct base_err *err);

#endif
