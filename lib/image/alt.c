/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What several debug files have in common stands in one more file, which .gnu_debugaltlink names
 * (dwz(1)). libdw (0.188) would open that name whatever it leads to, a FIFO too, and ask for no
 * build-id: so it is found here, and the name hidden from libdw.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwelf.h>

#include "image_internal.h"

#define DEBUG_DIR "/usr/lib/debug"

struct link {
	struct image *img;
	struct base_id id;
};

static bool has_link(Dwarf *dw)
{
	const char *name;
	const void *id;

	return dwelf_dwarf_gnu_debugaltlink(dw, &name, &id) > 0;
}

static int try_path(const struct link *link, const char *path)
{
	struct image *img = link->img;
	Dwarf *dw = NULL;

	if (image_elf_open_patiently(&img->alt, path, NULL) < 0)
		return -ENOENT;
	if (base_id_equal(&img->alt.id, &link->id) && image_unpack(img, &img->alt) >= 0)
		dw = dwarf_begin_elf(img->alt.elf, DWARF_C_READ, NULL);
	if (dw && image_strings_end(&img->alt, false) && !has_link(dw)) {
		img->alt_dwarf = dw;
		return 0;
	}
	dwarf_end(dw);
	image_elf_close(&img->alt);
	return -ENOENT;
}

static int try_dir(const char *dir, void *ctx)
{
	const struct link *link = ctx;
	char path[PATH_MAX];

	image_id_path(path, sizeof(path), dir, &link->id, ".debug");
	return try_path(link, path);
}

static int try_fetched(const struct link *link)
{
	char *path = image_fetch(&link->id, true);
	int r = path ? try_path(link, path) : -ENOENT;

	free(path);
	return r;
}

/* A name may be relative to the folder of the file that has it. */
static int try_name(const struct link *link, const struct image_elf *f, const char *name)
{
	int folder = *name == '/' ? 0 : (int)(base_path_name(f->path) - f->path);
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%.*s%s", folder, f->path, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return try_path(link, path);
}

static bool hide(Dwarf *dw, const struct image_elf *f)
{
	GElf_Shdr sh;
	Elf_Scn *scn = image_elf_section(f, ".gnu_debugaltlink", &sh);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;

	if (data)
		data->d_size = 0;
	return !has_link(dw);
}

bool image_alt_find(struct image *img, const struct image_elf *f)
{
	struct link link = { .img = img };
	const char *name;
	const void *id;
	ssize_t len = dwelf_dwarf_gnu_debugaltlink(img->dwarf, &name, &id);

	if (len <= 0)
		return true;
	if (len > 1 && len <= (ssize_t)sizeof(link.id.bytes)) {
		link.id.len = (uint8_t)len;
		memcpy(link.id.bytes, id, link.id.len);
		if (image_debug_dirs(try_dir, &link) < 0 && try_dir(DEBUG_DIR, &link) < 0 &&
		    try_name(&link, f, name) < 0)
			try_fetched(&link);
	}
	if (!hide(img->dwarf, f))
		return false;
	dwarf_setalt(img->dwarf, img->alt_dwarf);
	return true;
}
