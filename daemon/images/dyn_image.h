/* SPDX-License-Identifier: BSD-2-Clause */
/* Pseudo-images as files, of dynamic code and of the kernel's: the jailed helper makes them. */
#ifndef DCPI_DYN_IMAGE_H
#define DCPI_DYN_IMAGE_H

#include "base.h"

struct image;
struct pseudoimg_result;

/* Who holds dyn/ locked removes files, which takes far less. */
enum { DYN_LOCK_MS = 1000 };
/* Empty file @name, to be committed, for the daemon's user, its group and the uid @reader (may be
 * NULL). */
int dyn_image_create(struct base_file *file, int dir_fd, const char *name, const uint32_t *reader,
		     struct base_err *err);
/* For a helper with so many bytes to read. */
unsigned int dyn_image_timeout_ms(uint64_t len);
/* A failure that lies in what the client said, not in this machine's disk or memory. */
bool dyn_image_refusal(int r);
/*
 * Let the jailed helper make @name from @job (a descriptor, at its beginning): complete or not at
 * all, for the daemon's user, its group and the uid @reader (may be NULL).
 */
int dyn_image_put(int dir_fd, const char *name, const char *helper, const uint32_t *reader, int job,
		  struct pseudoimg_result *result, struct base_err *err);
/* One more refusal (counted in @nr_refused); after the third the image is given up: true. */
bool dyn_image_give_up(struct image *img, uint32_t *nr_refused);

#endif
