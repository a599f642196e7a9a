/* SPDX-License-Identifier: BSD-2-Clause */
/* What a compiler left beside an image (-gsplit-dwarf), where others may leave something too. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static char dir[] = "/tmp/dcpi-fuzz-XXXXXX", image[64], split[64];

static void clean_up(void)
{
	unlink(image);
	unlink(split);
	rmdir(dir);
}

/* A folder of our own, as the other file is looked for beside the image. */
static void prepare(void)
{
	const char *src = getenv("DCPI_SRC");
	char from[PATH_MAX];
	int in, out;

	snprintf(from, sizeof(from), "%s/tests/data/split/split.so", src ? src : ".");
	in = open(from, O_RDONLY | O_CLOEXEC);
	if (in < 0 || !mkdtemp(dir))
		abort();
	atexit(clean_up);
	snprintf(image, sizeof(image), "%s/split.so", dir);
	snprintf(split, sizeof(split), "%s/split.dwo", dir);
	out = open(image, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (out < 0 || sendfile(out, in, NULL, SSIZE_MAX) <= 0)
		abort();
	close(in);
	close(out);
}

static void ask(struct image *img)
{
	struct image_frame frames[IMAGE_FRAMES_MAX];
	size_t pos = 0;
	const struct image_symbol *s = image_symbol_find(img, "split_outer", &pos);

	if (!s)
		abort();
	for (uint64_t at = s->vaddr; at < s->vaddr + s->len; at++) {
		size_t nr = image_frames_at(img, at, frames, IMAGE_FRAMES_MAX);

		if (!nr || nr > IMAGE_FRAMES_MAX)
			abort();
		for (size_t i = 0; i + 1 < nr; i++)
			if (!frames[i].name || strlen(frames[i].name) > 1u << 20)
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct image *img = NULL;
	int fd;

	if (!*image)
		prepare();
	fd = open(split, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || base_write_all(fd, data, len) < 0 ||
	    image_open_path(image, IMAGE_FILE, &img, NULL) < 0)
		abort();
	close(fd);
	ask(img);
	image_close(img);
	return 0;
}
