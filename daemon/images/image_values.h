/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values (profdb.h) of an image that are not on disk yet, by profiler. They are secrets: with them
 * is kept whose code alone they are of, who may read them then.
 *
 * Whose a process is can be asked now, but its values are older. All of its user ids being one, and
 * the kernel letting that user see into it (which it does not where the program has given up rights
 * since its exec), what it knows is that user's since that exec. So the answer is good for all of a
 * life (up to exec or exit) in which it was asked, which shows when events up to then were seen.
 * Where events were lost it is good up to then, and is asked for anew.
 */
#ifndef DCPI_DAEMON_IMAGE_VALUES_H
#define DCPI_DAEMON_IMAGE_VALUES_H

#include "profdb.h"
#include "wire.h"

#define IMAGE_VALUES_NOBODY UINT32_MAX /* of several users, or it is not known whose */

struct image;

/* Whose one life of a process is. */
struct values_owner {
	uint32_t refs;
	uint32_t uid; /* or IMAGE_VALUES_NOBODY */
	uint64_t asked_ns;
	bool certain; /* it was asked in that life */
};

/* The life was over at @time_ns. */
void values_owner_end(struct values_owner *o, uint64_t time_ns);
void values_owner_put(struct values_owner *o);

struct image_values {
	struct profdb_values *values;
	struct values_owner **owners; /* references, of lives not known to be over */
	size_t nr_owners, cap_owners;
	bool owned;   /* uid is set */
	uint32_t uid; /* of those that are certain: or IMAGE_VALUES_NOBODY */
	struct image_values *next;
};

/* Those of @profiler in @img, which code of @o (NULL: nobody's) is in from now on. NULL: no memory.
 */
struct profdb_values *image_values_get(struct image *img, const char *profiler,
				       struct values_owner *o);
/* Those of @from become part of those of @to, at the offsets that @map gives them. 0, -ENOMEM,
 * -DCPI_EOVERFLOW: then some of them are lost. */
int image_values_move(struct image *from, const struct wire_replaces *map, struct image *to);
/* Put all of them within a flush (profdb_flush_put_values), and log what is damaged there; events
 * up to @now_ns were seen. 0, or negative with @err, in which nothing is yet. */
int image_values_put(struct profdb *db, const struct image *img, uint64_t now_ns,
		     struct base_err *err);
/* How many were added. */
uint64_t image_values_total(const struct image *img);
void image_values_clear(struct image *img);

#endif
