/* SPDX-License-Identifier: BSD-2-Clause */
/* Folding: fold.c takes image after image, merge_map.c says where their offsets went. */
#ifndef DCPI_PSEUDOIMG_MERGE_INTERNAL_H
#define DCPI_PSEUDOIMG_MERGE_INTERNAL_H

#include "pseudoimg_internal.h"

/* Part of a file that is a job. */
struct merge_part {
	int fd;
	uint64_t start, len;
};

/* Ascending, disjoint once it is a map. */
struct merge_list {
	struct wire_moved *v;
	size_t nr, cap;
};

struct merge_known {
	uint8_t exact[20];
	uint64_t img_off;
};

struct merge {
	struct pseudoimg_sink out; /* the job that is made of all */
	struct merge_part base, image;
	struct wire_image *head; /* a copy of the first one's; NULL: none was taken yet */
	PSEUDOIMG_ARRAY(struct merge_known) known;
	uint32_t *table; /* index of these by hash: number + 1 */
	size_t cap;
	uint64_t seed;
	uint64_t vaddr, img_off, used; /* room for what is new, page aligned; bytes of it */
	bool has_gap, needs_gap;
	/* New places of the merged image's routines; and all its offsets. */
	struct merge_list moved, map;
	struct base_buf *maps; /* the answer */
	uint32_t nr_bad, nr_overlaps;
};

/* From the places of the routines, those of all offsets of the image: gaps go to the gap. */
int merge_map_make(struct merge *f, const struct pseudoimg_model *m);
/* An earlier build-id of it, and a place in it, as they are in the new image. */
int merge_map_replaces(struct merge *f, const struct wire_replaces *rec);
int merge_map_place(struct merge *f, const struct pseudoimg_model *m, const struct wire_place *rec);
/* Append the map to the answer. */
int merge_map_answer(struct merge *f);

#endif
