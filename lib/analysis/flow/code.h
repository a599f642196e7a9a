/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of an image's code, and hashes by which code of two runs is found to be the same. */
#ifndef DCPI_FLOW_CODE_H
#define DCPI_FLOW_CODE_H

#include "image.h"

/* image_bytes, but none of a procedure that is all zeros: its code was not kept. */
size_t analysis_code_bytes(struct image *img, uint64_t vaddr, void *out, size_t len);
/* Of a procedure's bytes, or of what masking leaves of them. -ENOENT: they are not in the image. */
int analysis_code_hash(struct image *img, const struct image_symbol *symbol, bool masked,
		       uint64_t *out);

#endif
