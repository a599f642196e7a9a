/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pseudo-images that became part of another one (dyn_fold.c): where their samples belong since. In
 * memory they move at once; the profile of the open epoch follows at the next flush, those of
 * finished ones stay, for the other image names the build-ids that it replaces.
 */
#ifndef DCPI_DAEMON_IMAGE_MOVE_H
#define DCPI_DAEMON_IMAGE_MOVE_H

#include "profdb.h"
#include "wire.h"

struct image;

/* The counts and moves of @from, at the offsets that @map gives them, onto @to. 0, -ENOMEM,
 * -DCPI_EOVERFLOW, -DCPI_ELIMIT (then some of them are there). */
int image_move_counts(const struct profdb_profile *from, const struct wire_replaces *map,
		      struct profdb_profile *to);

struct image_move {
	struct image *from, *to; /* references */
	struct wire_replaces *map;
};

/* Zero-initialize. */
struct image_moves {
	struct image_move *items;
	size_t nr, cap;
};

/* What the open epoch has of @from goes to @to with the next flush; @map is copied. 0 or -ENOMEM.
 */
int image_moves_add(struct image_moves *t, struct image *from, struct image *to,
		    const struct wire_replaces *map);
void image_moves_clear(struct image_moves *t);

#endif
