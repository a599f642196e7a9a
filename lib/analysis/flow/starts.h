/* SPDX-License-Identifier: BSD-2-Clause */
/* The starts of procedures in an image without symbols, found in the code that uses them
 * (image.h). */
#ifndef DCPI_STARTS_H
#define DCPI_STARTS_H

#include "image.h"

/*
 * Implements image_guess_fn. Disassembles the code from its first byte to its last and reports
 * targets of direct calls, and addresses that the code takes relative to its own (x86-64: lea,
 * aarch64: adrp and add, as for main, which is passed to libc). These addresses may be of data.
 * Machines: as insn_decoder_open.
 */
int analysis_starts(uint32_t machine, const uint8_t *code, size_t len, uint64_t vaddr,
		    struct image_pointed *pointed, size_t nr_pointed, image_start_fn *fn,
		    void *ctx);

#endif
