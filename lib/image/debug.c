/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Separate debug files: where GDB's manual ("Debugging Information in Separate Files") says that
 * they are, and in the folders of $DCPI_DEBUG_PATH.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwelf.h>

#include "image_internal.h"

#define DEBUG_DIR "/usr/lib/debug"

int image_debug_dirs(int (*fn)(const char *dir, void *ctx), void *ctx)
{
	const char *at = getenv("DCPI_DEBUG_PATH");
	int r = -ENOENT;

	while (at && *at && r == -ENOENT) {
		size_t len = strcspn(at, ":");
		char *dir = strndup(at, len);

		if (!dir)
			return -ENOMEM;
		if (*dir)
			r = fn(dir, ctx);
		free(dir);
		at += len + (at[len] == ':');
	}
	return r;
}

void image_id_path(char *out, size_t out_len, const char *dir, const struct base_id *id,
		   const char *suffix)
{
	char text[BASE_ID_TEXT_LEN];

	base_id_text(id, text);
	snprintf(out, out_len, "%s/.build-id/%.2s/%s%s", dir, text, text + 2, suffix);
}

/* CRC-32 of a whole file, as .gnu_debuglink has it. */
static bool has_crc(const struct image_elf *f, uint32_t crc)
{
	enum { CHUNK = 1 << 20 };
	uint8_t *chunk = malloc(CHUNK);
	uint32_t sum = 0;
	uint64_t at = 0;
	size_t n = 0;

	while (chunk && (n = image_elf_read(f, at, chunk, CHUNK))) {
		sum = lzma_crc32(chunk, n, sum);
		at += n;
	}
	free(chunk);
	return at == f->len && sum == crc;
}

/* Where the image has a build-id it must agree; else @crc (NULL: not known) is all there is. */
static int try_debug(struct image *img, const char *path, const uint32_t *crc)
{
	struct image_elf f;
	bool good;

	if (strcmp(path, img->main.path) == 0 || image_elf_open_timeout(&f, path, NULL) < 0)
		return -ENOENT;
	good = img->main.id.len ? base_id_equal(&f.id, &img->main.id) : crc && has_crc(&f, *crc);
	if (!good) {
		image_elf_close(&f);
		return -ENOENT;
	}
	img->debug = f;
	return 0;
}

/*
 * Possible names of a debug file: the one that the image gives; the image's own name with .debug.
 */
struct debug_names {
	struct image *img;
	const char *link; /* NULL: none */
	GElf_Word crc;
	char plain[NAME_MAX + 8];
	int folder; /* length of the folder in the image's path, its slash included */
};

static void names_of(struct debug_names *names, struct image *img)
{
	const char *base = base_path_name(img->main.path);

	names->img = img;
	names->link = dwelf_elf_gnu_debuglink(img->main.elf, &names->crc);
	if (names->link && (!*names->link || strchr(names->link, '/')))
		names->link = NULL;
	names->folder = (int)(base - img->main.path);
	snprintf(names->plain, sizeof(names->plain), "%.*s.debug", NAME_MAX, base);
}

static int try_id(struct image *img, const char *dir)
{
	char path[PATH_MAX];

	if (img->main.id.len < 2)
		return -ENOENT;
	image_id_path(path, sizeof(path), dir, &img->main.id, ".debug");
	return try_debug(img, path, NULL);
}

/* "DIR/FOLDER SUB NAME", for both names. */
static int try_names(const struct debug_names *names, const char *dir, const char *sub, int folder)
{
	char path[PATH_MAX];
	int r = -ENOENT;

	if (names->link) {
		snprintf(path, sizeof(path), "%s%.*s%s%s", dir, folder, names->img->main.path, sub,
			 names->link);
		r = try_debug(names->img, path, &names->crc);
	}
	if (r < 0) {
		snprintf(path, sizeof(path), "%s%.*s%s%s", dir, folder, names->img->main.path, sub,
			 names->plain);
		r = try_debug(names->img, path, NULL);
	}
	return r;
}

static int try_dir(const char *dir, void *ctx)
{
	const struct debug_names *names = ctx;

	if (try_id(names->img, dir) >= 0 || try_names(names, dir, "/", names->folder - 1) >= 0 ||
	    try_names(names, dir, "/", 0) >= 0)
		return 0;
	return -ENOENT;
}

static int try_fetched(struct image *img)
{
	char *path = image_fetch(&img->main.id, true);
	int r = path ? try_debug(img, path, NULL) : -ENOENT;

	free(path);
	return r;
}

static void seek(struct image *img)
{
	struct debug_names names;

	names_of(&names, img);
	if (image_debug_dirs(try_dir, &names) >= 0 ||
	    try_names(&names, "", "", names.folder) >= 0 ||
	    try_names(&names, "", ".debug/", names.folder) >= 0 ||
	    try_names(&names, DEBUG_DIR, "", names.folder) >= 0 || try_id(img, DEBUG_DIR) >= 0)
		return;
	try_fetched(img);
}

const struct image_elf *image_debug(struct image *img)
{
	if (!img->debug_sought && img->kind == IMAGE_FILE) {
		img->debug_sought = true;
		seek(img);
	}
	return img->debug.elf ? &img->debug : NULL;
}
