/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The DWARF of an image is opened here, at the first question, and refused where libdw would read
 * beyond it.
 *
 * What several debug files have in common stands in one more file, which .gnu_debugaltlink names
 * (dwz(1)). libdw (0.188) would open that name whatever it leads to, a FIFO too, and ask for no
 * build-id: so it is found here, and the name hidden from libdw. Units that leave their routines in
 * a file of their own are found here too, and sections that libelf (0.188) cannot unpack are
 * unpacked.
 */
#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "image_internal.h"

/* ---- unpacking ------------------------------------------------------------------------------- */

enum {
	PACKED_BY_ZSTD = 2,  /* ELFCOMPRESS_ZSTD, which older elf.h lack */
	RATIO_MAX = 1 << 10, /* limit of the compression ratio: a higher claim only makes us take
				memory */
};

static int keep(struct image *img, void *bytes)
{
	int r = base_grow(&img->unpacked.v, &img->unpacked.cap, img->unpacked.nr + 1,
			  sizeof(*img->unpacked.v));

	if (r >= 0)
		img->unpacked.v[img->unpacked.nr++] = bytes;
	return r;
}

static void replace(Elf_Data *data, void *bytes, size_t len)
{
	data->d_buf = bytes;
	data->d_size = len;
	data->d_type = ELF_T_BYTE;
}

/* In libelf's memory alone. It hands out a section as it is and as the machine reads it. */
static int unpack(struct image *img, const struct image_elf *f, Elf_Scn *scn, GElf_Shdr *sh,
		  uint64_t len)
{
	size_t head = gelf_getclass(f->elf) == ELFCLASS32 ? sizeof(Elf32_Chdr) : sizeof(Elf64_Chdr);
	Elf_Data *raw = elf_rawdata(scn, NULL), *data = elf_getdata(scn, NULL);
	void *bytes;
	int r;

	if (!raw || !data || !raw->d_buf || raw->d_size <= head || !len ||
	    len / RATIO_MAX > raw->d_size)
		return -DCPI_EFORMAT;
	bytes = malloc(len);
	if (!bytes)
		return -ENOMEM;
	r = ZSTD_decompress(bytes, len, (const char *)raw->d_buf + head, raw->d_size - head) == len
		    ? keep(img, bytes)
		    : -DCPI_EFORMAT;
	if (r < 0) {
		free(bytes);
		return r;
	}
	replace(raw, bytes, len);
	replace(data, bytes, len);
	sh->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	sh->sh_size = len;
	return gelf_update_shdr(scn, sh) ? 0 : -DCPI_EFORMAT;
}

/* Unpack what libelf (0.188) cannot, before anything is read of it. 0, or negative: some of it
 * stays packed. */
static int image_unpack(struct image *img, const struct image_elf *f)
{
	GElf_Shdr sh;
	GElf_Chdr packed;
	int r = 0;

	for (Elf_Scn *scn = NULL; r >= 0 && (scn = elf_nextscn(f->elf, scn));) {
		if (gelf_getshdr(scn, &sh) && (sh.sh_flags & SHF_COMPRESSED) &&
		    !(sh.sh_flags & SHF_ALLOC) && gelf_getchdr(scn, &packed) &&
		    packed.ch_type == PACKED_BY_ZSTD)
			r = unpack(img, f, scn, &sh, packed.ch_size);
	}
	return r;
}

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
 * Does each of its sections of strings and types end in a zero, and if it is of a @split unit,
 * those of units too? Else there must be but one of these. Of a file whose DWARF was opened. libdw
 * (0.188) takes the length of a string by strlen, up to whatever follows the section: where one is
 * not ended inside of it, the file is damaged and none of its lines are used. Of several sections
 * of one name libdw takes the first that it can unpack, and none of a group: each is looked at.
 * Asked once the DWARF is open: what was packed is then unpacked in place.
 */
static bool image_strings_end(const struct image_elf *f, bool split)
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
		/* Where the names in it end is asked later (lines.c), of one. */
		nr_info += info && !split;
	}
	return nr_info <= 1;
}

/* ---- the file that several debug files share ------------------------------------------------- */

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

/* ---- units in files of their own ------------------------------------------------------------- */

/*
 * Units whose routines were left in a file of their own, NAME.dwo (-gsplit-dwarf): what is in the
 * image itself tells of their addresses and lines alone. libdw (0.188) finds the file, beside the
 * image's and in the folder where it was compiled, but opens that name whatever it leads to, and
 * takes the length of strings by strlen, up to whatever follows the section.
 */

struct split {
	bool found;
	Dwarf_Die skeleton, unit;
};

static const char *text_of(Dwarf_Die *unit, unsigned int name, unsigned int older)
{
	Dwarf_Attribute attr;

	if (!dwarf_attr(unit, name, &attr) && !(older && dwarf_attr(unit, older, &attr)))
		return NULL;
	return dwarf_formstring(&attr);
}

/* Nothing there is good too: libdw goes on to the next place. */
static bool harmless(const char *path)
{
	uint64_t len;
	int fd = image_open_timeout(path, &len);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd == -ENOENT || fd == -ENOTDIR;
}

static bool may_seek(const struct image *img, Dwarf_Die *unit)
{
	const char *name = text_of(unit, DW_AT_dwo_name, DW_AT_GNU_dwo_name);
	const char *folder = text_of(unit, DW_AT_comp_dir, 0);
	bool own = dwarf_getelf(img->dwarf.own) == img->main.elf;
	char *beside = realpath(own ? img->main.path : img->debug.path, NULL), path[PATH_MAX];
	bool good = false;
	int len;

	if (!name || !beside)
		goto out;
	len = (int)(base_path_name(beside) - beside);
	good = snprintf(path, sizeof(path), "%.*s%s", *name == '/' ? 0 : len, beside, name) <
		       (int)sizeof(path) &&
	       harmless(path);
	if (!good || !folder || *name == '/')
		goto out;
	good = snprintf(path, sizeof(path), "%.*s%s/%s", *folder == '/' ? 0 : len, beside, folder,
			name) < (int)sizeof(path) &&
	       harmless(path);
out:
	free(beside);
	return good;
}

static bool seek(struct image *img, Dwarf_Die *unit, Dwarf_Die *out)
{
	struct image_elf f = { 0 };

	if (!may_seek(img, unit) ||
	    dwarf_cu_info(unit->cu, NULL, NULL, NULL, out, NULL, NULL, NULL) != 0 || !out->addr)
		return false;
	f.elf = dwarf_getelf(dwarf_cu_getdwarf(out->cu));
	return f.elf && image_strings_end(&f, true);
}

static struct split *split_of(struct image *img, Dwarf_Die *unit)
{
	Dwarf_Off off = dwarf_dieoffset(unit);
	struct split *split = base_map_get(&img->splits.by_off, &off, sizeof(off));

	if (split)
		return split;
	split = calloc(1, sizeof(*split));
	if (!split || base_map_set(&img->splits.by_off, &off, sizeof(off), split) < 0) {
		free(split);
		return NULL;
	}
	split->skeleton = *unit;
	split->found = seek(img, unit, &split->unit);
	if (split->found)
		base_map_set(&img->splits.by_rest, &split->unit.cu, sizeof(split->unit.cu), split);
	return split;
}

void image_unit_whole(struct image *img, Dwarf_Die *unit)
{
	struct split *split;
	uint8_t type;

	if (dwarf_cu_info(unit->cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) != 0 ||
	    type != DW_UT_skeleton)
		return;
	split = split_of(img, unit);
	if (split && split->found)
		*unit = split->unit;
}

void image_unit_files(struct image *img, Dwarf_Die *unit)
{
	struct split *split = base_map_get(&img->splits.by_rest, &unit->cu, sizeof(unit->cu));

	if (split)
		*unit = split->skeleton;
}
