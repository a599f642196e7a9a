/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The DWARF of an image is opened here, at the first question, and refused where libdw would read
 * beyond it.
 *
 * What several debug files have in common stands in one more file, which .gnu_debugaltlink names
 * (dwz(1)). libdw (0.188) would open that name whatever it leads to, a FIFO too, and ask for no
 * build-id: so it is found here, and the name hidden from libdw.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwelf.h>

#include "image_internal.h"

/* ---- strings that end inside of their section ------------------------------------------------ */

/* Is it .debug_KIND, or the same packed as was once usual, for a linker to come, or (@split) of a
 * split unit? */
static bool is_debug(const char *name, const char *kind, bool split)
{
	static const char *const prefixes[] = { ".debug_", ".zdebug_", ".gnu.debuglto_.debug_" };
	size_t len = strlen(kind);

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		const char *rest = name + strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0 &&
		    strncmp(rest, kind, len) == 0 &&
		    (!rest[len] || (split && strcmp(rest + len, ".dwo") == 0)))
			return true;
	}
	return false;
}

static bool ends_in_zero(Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *data;

	if ((sh->sh_flags & SHF_COMPRESSED) && elf_compress(scn, 0, 0) < 0)
		return false;
	data = elf_getdata(scn, NULL);
	return data && data->d_size && !((const char *)data->d_buf)[data->d_size - 1];
}

/*
 * libdw (0.188) takes the length of a string by strlen, up to whatever follows the section: where
 * one is not ended inside of it, the file is damaged and none of its lines are used. Of several
 * sections of one name libdw takes the first that it can unpack, and none of a group: each is
 * looked at. Asked once the DWARF is open: what was packed is then unpacked in place.
 */
bool image_strings_end(const struct image_elf *f, bool split)
{
	unsigned int nr_info = 0;
	GElf_Shdr sh;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));) {
		const char *name;
		bool info;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS ||
		    (sh.sh_flags & SHF_GROUP))
			continue;
		name = image_elf_section_name(f, &sh);
		info = is_debug(name, "info", split);
		if ((info && split) || is_debug(name, "str", true) ||
		    is_debug(name, "line_str", true) || is_debug(name, "types", true))
			if (!ends_in_zero(scn, &sh))
				return false;
		/* Where the names in it end is asked later (frames.c), of one. */
		nr_info += info && !split;
	}
	return nr_info <= 1;
}

/* ---- the file that several debug files share --------------------------------------------------
 */

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

	if (image_elf_open_timeout(&img->dwarf.alt_file, path, NULL) < 0)
		return -ENOENT;
	if (base_id_equal(&img->dwarf.alt_file.id, &link->id) &&
	    image_unpack(img, &img->dwarf.alt_file) >= 0)
		dw = dwarf_begin_elf(img->dwarf.alt_file.elf, DWARF_C_READ, NULL);
	if (dw && image_strings_end(&img->dwarf.alt_file, false) && !has_link(dw)) {
		img->dwarf.alt = dw;
		return 0;
	}
	dwarf_end(dw);
	image_elf_close(&img->dwarf.alt_file);
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

static bool find_alt(struct image *img, const struct image_elf *f)
{
	struct link link = { .img = img };
	const char *name;
	const void *id;
	ssize_t len = dwelf_dwarf_gnu_debugaltlink(img->dwarf.own, &name, &id);

	if (len <= 0)
		return true;
	if (len > 1 && len <= (ssize_t)sizeof(link.id.bytes)) {
		link.id.len = (uint8_t)len;
		memcpy(link.id.bytes, id, link.id.len);
		if (image_debug_dirs(try_dir, &link) < 0 && try_dir(DEBUG_DIR, &link) < 0 &&
		    try_name(&link, f, name) < 0)
			try_fetched(&link);
	}
	if (!hide(img->dwarf.own, f))
		return false;
	dwarf_setalt(img->dwarf.own, img->dwarf.alt);
	return true;
}

/* ---- the image's own ------------------------------------------------------------------------- */

static bool has_lines(const struct image_elf *f)
{
	GElf_Shdr sh;

	return image_elf_section(f, ".debug_line", &sh) ||
	       image_elf_section(f, ".zdebug_line", &sh);
}

/* DWARF is large and most questions never ask for it: opened at the first one that does. */
Dwarf *image_dwarf(struct image *img)
{
	const struct image_elf *f = &img->main;

	if (img->dwarf.sought)
		return img->dwarf.own;
	img->dwarf.sought = true;
	if (!has_lines(f))
		f = image_debug(img);
	if (f && has_lines(f) && image_unpack(img, f) >= 0)
		img->dwarf.own = dwarf_begin_elf(f->elf, DWARF_C_READ, NULL);
	if (img->dwarf.own && (!image_strings_end(f, false) || !find_alt(img, f))) {
		dwarf_end(img->dwarf.own);
		img->dwarf.own = NULL;
	}
	return img->dwarf.own;
}
