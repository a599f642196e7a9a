/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind rules from an .eh_frame that stands in memory, as a runtime has written it for one
 * routine. */
#ifndef DCPI_IMAGE_EH_BYTES_H
#define DCPI_IMAGE_EH_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "rule.h"

struct image_eh_bytes {
	const uint8_t *data;
	size_t len;
	uint64_t vaddr; /* addresses in it count from where it stands as if it were here */
	uint64_t code, code_len;
	uint16_t machine; /* EM_X86_64, EM_AARCH64 */
};

/*
 * Call @fn for places of the code, ascending: from @vaddr on @rule holds; what cannot be described
 * has UNWIND_NONE. The bytes are not believed; at most 65,536 instructions are run. 0; -ENOENT: no
 * entry is of exactly that code; -DCPI_ELIMIT; or what @fn returned below 0.
 */
int image_eh_bytes_run(const struct image_eh_bytes *eh,
		       int (*fn)(void *ctx, uint64_t vaddr, const struct unwind_rule *rule),
		       void *ctx);

#endif
