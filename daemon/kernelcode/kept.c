/* SPDX-License-Identifier: BSD-2-Clause */
/* The routines of an earlier file of kernel code are read back. */
#include "kernel_kept.h"

#include <stdlib.h>

#include "image.h"

enum { ROUTINE_MAX = 1 << 20 };

void kernel_kept_read(const char *path,
		      int (*fn)(void *ctx, const char *name, uint64_t off, const uint8_t *code,
				size_t len),
		      void *ctx)
{
	struct image *img = NULL;
	uint8_t *code = NULL;
	int r = 0;

	if (image_open_path(path, IMAGE_DYNAMIC, &img, NULL) < 0)
		return;
	code = malloc(ROUTINE_MAX);
	for (size_t i = 0; code && r >= 0 && i < image_nr_symbols(img); i++) {
		const struct image_symbol *s = image_symbol(img, i);

		if (s->len <= ROUTINE_MAX && image_bytes(img, s->vaddr, code, s->len) == s->len)
			r = fn(ctx, s->name, s->vaddr, code, s->len);
	}
	free(code);
	image_close(img);
}
