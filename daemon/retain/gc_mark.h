/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The references of all profiles, each with the rank of the last epoch that has it: part of gc.c.
 */
#ifndef DCPI_DAEMON_GC_MARK_H
#define DCPI_DAEMON_GC_MARK_H

#include "profdb.h"

struct gc_marks {
	struct base_map ids, names; /* referenced images by id, and by name */
	struct base_map
		kernels; /* kernels, by as much of an id as a file name of <db>/kernel has */
	/* A profile cannot be read that may refer to any of them, the first of these: @why. */
	bool all_kernels, all_costs, all_copies;
	struct base_err why;
};

/* 0 or -ENOMEM. */
int gc_marks_id(struct gc_marks *m, size_t rank, const struct base_id *id);
int gc_marks_profile(struct gc_marks *m, size_t rank, const struct profdb_profile *p);
int gc_marks_values(struct gc_marks *m, size_t rank, const struct profdb_values *v);
/* One of a file about all images. */
int gc_marks_image(struct gc_marks *m, size_t rank, const struct profdb_image_ref *i);
/* False: it may be of a pseudo-image. */
bool gc_marks_unreadable(struct gc_marks *m, const char *file, const struct base_err *why);
void gc_marks_release(struct gc_marks *m);

/* 0: none does. */
size_t gc_marks_id_rank(const struct gc_marks *m, const struct base_id *id);
size_t gc_marks_name_rank(const struct gc_marks *m, const char *name);
/*
 * The rank of <db>/kernel/@file: @id is the part of an id in its name, @stem_len bytes stand before
 * it.
 */
size_t gc_marks_kernel_rank(const struct gc_marks *m, const char *file, size_t stem_len,
			    const struct base_id *id);

#endif
