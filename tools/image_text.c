/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an image's code wants to be, and its size, are found where the image still is there. */
#include <fcntl.h>
#include <unistd.h>

#include "image.h"
#include "image_text.h"

enum { NR_PATHS = 64 };

static struct image *open_image(struct image_store *store, const struct profdb_profile *p)
{
	const char *paths[NR_PATHS + 1] = { NULL };
	struct image_query q = { .kind = IMAGE_FILE,
				 .id = *profdb_profile_image(p),
				 .known = image_known_by(profdb_profile_word(p, "identity")),
				 .paths = paths };
	struct image *img = NULL;

	if (profdb_profile_kind(p) != PROFDB_FILE || !q.id.len || q.known != IMAGE_BY_ID)
		return NULL;
	for (size_t i = 0; i < NR_PATHS && profdb_profile_path(p, i); i++)
		paths[i] = profdb_profile_path(p, i);
	return image_open(store, &q, &img, NULL) < 0 ? NULL : img;
}

static bool of_image(const struct image *img, struct base_extent *out)
{
	int fd = open(image_path(img), O_RDONLY | O_CLOEXEC), r;

	if (fd < 0)
		return false;
	r = base_elf_extent(fd, out);
	close(fd);
	return r >= 0;
}

bool image_text_find(const struct profdb_profile *p, struct base_extent *out)
{
	struct image_store *store;
	struct image *img;
	bool found;

	if (image_store_open(-1, -1, &store) < 0)
		return false;
	img = open_image(store, p);
	found = img && of_image(img, out);
	image_close(img);
	image_store_close(store);
	return found;
}
