/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs of .eh_frame, as unwind rules; from within lib/image (cfa.c). */
#ifndef DCPI_IMAGE_CFA_H
#define DCPI_IMAGE_CFA_H

#include "eh_frame.h"
#include "rule.h"

/* Called for places of code, ascending: from @vaddr on @rule holds. Negative: stop. */
typedef int image_cfa_fn(void *ctx, uint64_t vaddr, const struct unwind_rule *rule);

/*
 * Run the programs of a piece of code of @machine (EM_X86_64, EM_AARCH64). Rows begin at its start;
 * a place that no rule can describe has UNWIND_NONE, as has all behind what is damaged. Each
 * instruction is taken from *@budget; -DCPI_ELIMIT: it is spent. Else 0, or what @fn returned below
 * 0.
 */
int image_cfa_run(const struct image_fde *fde, uint16_t machine, uint64_t *budget, image_cfa_fn *fn,
		  void *ctx);

#endif
