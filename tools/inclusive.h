/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of a report get the samples that have them on their call path. */
#ifndef DCPI_INCLUSIVE_H
#define DCPI_INCLUSIVE_H

#include "callpaths.h"
#include "rows.h"

/*
 * Sets "total" of all rows, which are procedures, or with @by_image images. Procedures that only
 * called others get rows too where @chosen has their image. 0 or negative with @err.
 */
int inclusive_add(const struct callpaths *x, struct analysis_rows *rows, bool by_image,
		  bool (*chosen)(void *ctx, struct analysis_image *ai), void *ctx,
		  struct base_err *err);

#endif
