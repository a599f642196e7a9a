/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an image's code wants to be, and how much of it there is: DCPI's text_start and text_size.
 */
#ifndef DCPI_IMAGE_TEXT_H
#define DCPI_IMAGE_TEXT_H

#include "base.h"
#include "profdb.h"

/*
 * Find the program or library of @p, if image_open finds a file with its identity. False: there is
 * none, or it has no code.
 */
bool image_text_find(const struct profdb_profile *p, struct base_extent *out);

#endif
