/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tools see: daemon and lib/image both have a "struct image". */
#ifndef DYN_MERGE_READ_H
#define DYN_MERGE_READ_H

#include "profdb.h"

/* The routine at @off of the pseudo-image that profile @p leads to, into @name; "" where there is
 * none. Returns of how many processes that image is, or negative where there is no such image. */
int merge_read(int dyn_fd, const struct profdb_profile *p, uint64_t off, char name[64]);

#endif
