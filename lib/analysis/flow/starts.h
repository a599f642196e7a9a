/* SPDX-License-Identifier: BSD-2-Clause */
/* Where procedures begin, as the code that uses them tells: for images that do not (image.h). */
#ifndef DCPI_STARTS_H
#define DCPI_STARTS_H

#include "image.h"

/*
 * An image_guess_fn. Code is disassembled from its first byte to its last; targets of direct calls,
 * and addresses that it takes relative to where it stands (x86-64: lea, aarch64: adrp and add, as
 * for main, which is handed to libc). They may be of data. Machines: as insn_decoder_open.
 */
int analysis_starts(uint32_t machine, const uint8_t *code, size_t len, uint64_t vaddr,
		    struct image_pointed *pointed, size_t nr_pointed, image_start_fn *fn,
		    void *ctx);

#endif
