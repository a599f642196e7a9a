/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of an image's code, and hashes that tell whether two runs had the same code. */
#ifndef DCPI_FLOW_CODE_H
#define DCPI_FLOW_CODE_H

#include "image.h"

/* Reads like image_bytes, but returns 0 for a procedure whose bytes are all zero: its code was
 * not kept. */
size_t analysis_code_bytes(struct image *img, uint64_t vaddr, void *out, size_t len);
/* Hashes the procedure's bytes into *@out; @masked: without the operands that change when code
 * moves. 0, -ENOENT (the bytes are not in the image, or were not kept), -ENOMEM, or an error of
 * insn_mask. */
int analysis_code_hash(struct image *img, const struct image_symbol *symbol, bool masked,
		       uint64_t *out);

#endif
