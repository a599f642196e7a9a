/* SPDX-License-Identifier: BSD-2-Clause */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_internal.h"

static bool has_lines(const struct image_elf *f)
{
	GElf_Shdr sh;

	return image_elf_section(f, ".debug_line", &sh) ||
	       image_elf_section(f, ".zdebug_line", &sh);
}

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

/* DWARF is large and most questions never ask for it: opened at the first one that does. */
Dwarf *image_dwarf(struct image *img)
{
	const struct image_elf *f = &img->main;

	if (img->dwarf_sought)
		return img->dwarf;
	img->dwarf_sought = true;
	if (!has_lines(f))
		f = image_debug(img);
	if (f && has_lines(f) && image_unpack(img, f) >= 0)
		img->dwarf = dwarf_begin_elf(f->elf, DWARF_C_READ, NULL);
	if (img->dwarf && (!image_strings_end(f, false) || !image_alt_find(img, f))) {
		dwarf_end(img->dwarf);
		img->dwarf = NULL;
	}
	return img->dwarf;
}

/* libdw (0.188) leaves names relative whose folder is relative to that of the compilation. */
const char *image_whole_path(struct image *img, Dwarf_Die *unit, const char *name)
{
	struct {
		const char *folder, *name;
	} key = { .name = name };
	Dwarf_Attribute attr;
	char *path;
	size_t len;

	if (!name || *name == '/' || !dwarf_attr_integrate(unit, DW_AT_comp_dir, &attr))
		return name;
	key.folder = dwarf_formstring(&attr);
	if (!key.folder || *key.folder != '/')
		return name;
	path = base_map_get(&img->paths, &key, sizeof(key));
	if (path)
		return path;
	len = strlen(key.folder) + strlen(name) + sizeof("/");
	path = malloc(len);
	if (!path)
		return name;
	snprintf(path, len, "%s/%s", key.folder, name);
	if (base_map_set(&img->paths, &key, sizeof(key), path) == 0)
		return path;
	free(path);
	return name;
}

void image_paths_release(struct image *img)
{
	void *path;

	for (size_t i = 0; base_map_next(&img->paths, &i, &path);)
		free(path);
	base_map_release(&img->paths);
}

static int libdw_line(Dwarf_Die *unit, uint64_t vaddr, struct image_line *out)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, vaddr);
	int number;

	if (!line || dwarf_lineno(line, &number) < 0 || number <= 0)
		return -ENOENT;
	out->file = dwarf_linesrc(line, NULL, NULL);
	out->line = (unsigned int)number;
	if (dwarf_linediscriminator(line, &out->discriminator) < 0)
		out->discriminator = 0;
	return out->file ? 0 : -ENOENT;
}

static int line_in_unit(struct image *img, Dwarf_Die *unit, uint64_t vaddr, struct image_line *out)
{
	int r = vaddr < img->gone_reach ? image_live_line(img, unit, vaddr, out)
					: -DCPI_EUNSUPPORTED;

	if (r == -DCPI_EUNSUPPORTED)
		r = libdw_line(unit, vaddr, out);
	if (r < 0)
		return r;
	out->file = image_whole_path(img, unit, out->file);
	if (out->discriminator && !image_unit_llvm(img, unit))
		out->discriminator = 0;
	return 0;
}

int image_line_at(struct image *img, uint64_t vaddr, struct image_line *out)
{
	Dwarf_Die unit;
	size_t pos = 0;
	int r;

	if (!image_dwarf(img))
		return -ENOENT;
	r = image_program_line(img, vaddr, out);
	if (r != -DCPI_EUNSUPPORTED)
		return r;
	while (image_unit_next(img, vaddr, &pos, &unit))
		if (line_in_unit(img, &unit, vaddr, out) == 0)
			return 0;
	return -ENOENT;
}
