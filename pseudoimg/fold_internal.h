/* SPDX-License-Identifier: BSD-2-Clause */
/* Folding: fold.c takes image after image, fold_map.c says where their offsets went. */
#ifndef DCPI_PSEUDOIMG_FOLD_INTERNAL_H
#define DCPI_PSEUDOIMG_FOLD_INTERNAL_H

#include "pseudoimg_internal.h"

/* Part of a file that is a job. */
struct fold_part {
	int fd;
	uint64_t start, len;
};

/* Ascending, disjoint once it is a map. */
struct fold_list {
	struct wire_moved *v;
	size_t nr, cap;
};

struct fold_known {
	uint8_t exact[20];
	uint64_t img_off;
};

struct fold {
	struct pseudoimg_sink out; /* the job that is made of all */
	struct fold_part base, image;
	struct wire_image *head; /* a copy of the first one's; NULL: none was taken yet */
	PSEUDOIMG_ARRAY(struct fold_known) known;
	uint32_t *table; /* of these, by hash: index + 1 */
	size_t cap;
	uint64_t seed;
	uint64_t vaddr, img_off, used; /* room for what is new, page aligned; bytes of it */
	bool has_gap, needs_gap;
	/* Of the image that is being folded: where its routines went; and all its offsets. */
	struct fold_list moved, map;
	struct base_buf *maps; /* the answer */
	uint32_t nr_bad, nr_overlaps;
};

/* From the places of the routines, those of all offsets of the image: gaps go to the gap. */
int fold_map_make(struct fold *f, const struct pseudoimg_model *m);
/* An earlier build-id of it, and a place in it, as they are in the new image. */
int fold_map_replaces(struct fold *f, const struct wire_replaces *rec);
int fold_map_place(struct fold *f, const struct pseudoimg_model *m, const struct wire_place *rec);
/* Append the map to the answer. */
int fold_map_answer(struct fold *f);

#endif
