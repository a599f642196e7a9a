/* SPDX-License-Identifier: BSD-2-Clause */
#include "dyn_merge_read.h"

#include <stdio.h>

#include "image.h"

int merge_read(int dyn_fd, const struct profdb_profile *p, uint64_t off, char name[64])
{
	const char *paths[] = { profdb_profile_path(p, 0), NULL };
	const struct image_query q = { .kind = IMAGE_DYNAMIC,
				       .id = *profdb_profile_image(p),
				       .paths = paths };
	const struct image_symbol *sym = NULL;
	struct image_store *store = NULL;
	struct image *img = NULL;
	uint64_t vaddr;
	int r = image_store_open(dyn_fd, -1, &store);

	name[0] = '\0';
	if (r >= 0)
		r = image_open(store, &q, &img, NULL);
	if (r >= 0 && image_vaddr(img, off, &vaddr) >= 0)
		sym = image_symbol_at(img, vaddr);
	if (sym)
		snprintf(name, 64, "%s", sym->name);
	if (r >= 0)
		r = (int)image_process(img)->nr_processes;
	image_close(img);
	image_store_close(store);
	return r;
}
