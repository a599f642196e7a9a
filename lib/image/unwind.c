/* SPDX-License-Identifier: BSD-2-Clause */
/* Where procedures stand by what unwinding needs, which stays when symbols are stripped. */
#include "eh_frame.h"

int image_ranges_read(struct image_ranges *out, const struct image_elf *f)
{
	struct image_eh_frame eh;
	struct image_fde fde;
	size_t at = 0;

	if (!image_eh_frame_open(&eh, f))
		return 0;
	while (image_eh_frame_next(&eh, &at, &fde)) {
		int r = base_grow(&out->v, &out->cap, out->nr + 1, sizeof(*out->v));

		if (r < 0)
			return r;
		out->v[out->nr++] = (struct image_range){ .vaddr = fde.vaddr, .len = fde.len };
	}
	return 0;
}
