/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry of one routine is found in an .eh_frame that is no file's, and its program is run. */
#include <errno.h>

#include "cfa.h"
#include "eh_bytes.h"

enum { STEPS_MAX = 65536 };

int image_eh_bytes_run(const struct image_eh_bytes *eh,
		       int (*fn)(void *ctx, uint64_t vaddr, const struct unwind_rule *rule),
		       void *ctx)
{
	struct image_eh_frame frames = {
		.section = { .data = eh->data, .end = eh->len, .vaddr = eh->vaddr, .word = 8 }
	};
	uint64_t budget = STEPS_MAX;
	struct image_fde fde;
	size_t at = 0;

	while (image_eh_frame_next(&frames, &at, &fde))
		if (fde.vaddr == eh->code && fde.len == eh->code_len)
			return image_cfa_run(&fde, eh->machine, &budget, fn, ctx);
	return -ENOENT;
}
