/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that runtimes write, as they grow. */
#ifndef GROWING_H
#define GROWING_H

#include "foreign.h"

typedef int growing_read_fn(const struct foreign_file *file, struct foreign_place *place,
			    struct base_buf *out);

/*
 * The first two bytes say where the rest, the file, is cut. It is read whole, and once more up to
 * there, then to its end, a record at a time: all that comes out must be well-formed, and the same,
 * but for times that are told again.
 */
int growing_check(growing_read_fn *read, const uint8_t *data, size_t len);

#endif
