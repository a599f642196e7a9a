/* SPDX-License-Identifier: BSD-2-Clause */
/* Images: any program on the machine is one, and a JIT's bytes become one. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image.h"
#include "starts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void ask(struct image *img, uint64_t vaddr)
{
	const struct image_symbol *s = image_symbol_at(img, vaddr);
	struct image_frame frames[IMAGE_FRAMES_MAX];
	struct image_hashes hashes;
	struct image_line line;
	size_t nr;
	uint8_t bytes[32];

	if (s && vaddr - s->vaddr >= s->len)
		abort();
	if (image_bytes(img, vaddr, bytes, sizeof(bytes)) > sizeof(bytes))
		abort();
	if (image_line_at(img, vaddr, &line) == 0 && (!line.file || !line.line))
		abort();
	nr = image_frames_at(img, vaddr, frames, IMAGE_FRAMES_MAX);
	if (nr > IMAGE_FRAMES_MAX)
		abort();
	for (size_t i = 0; i + 1 < nr; i++)
		if (!frames[i].name || strlen(frames[i].name) > 1u << 28)
			abort();
	for (size_t i = 0; i < nr; i++)
		if (frames[i].linkage && strlen(frames[i].linkage) > 1u << 28)
			abort();
	if (s)
		image_symbol_hashes(img, s, &hashes);
}

static void ask_all(struct image *img)
{
	size_t nr = image_nr_symbols(img), step = nr / 64 + 1;
	uint64_t vaddr;

	for (size_t i = 0; i < nr; i += step) {
		const struct image_symbol *s = image_symbol(img, i);
		size_t pos = 0;

		if (i && image_symbol(img, i - 1)->vaddr >= s->vaddr)
			abort();
		if (!image_symbol_find(img, s->name, &pos))
			abort();
		ask(img, s->vaddr);
		ask(img, s->vaddr + s->len);
	}
	for (uint64_t off = 0; off < 0x2000; off += 0x3f)
		if (image_vaddr(img, off, &vaddr) == 0)
			ask(img, vaddr);
	ask(img, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const enum image_kind kinds[] = { IMAGE_FILE, IMAGE_DYNAMIC, IMAGE_KERNEL };
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64];

	if (fd < 0 || base_write_all(fd, data, len) < 0)
		abort();
	image_guess_by(analysis_starts);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct base_err err = { 0 };
		struct image *img = NULL;
		int r = image_open_path(path, kinds[i], &img, &err);

		if (r < 0 ? !err.code || img != NULL : img == NULL)
			abort();
		if (r >= 0)
			ask_all(img);
		image_close(img);
	}
	close(fd);
	return 0;
}
