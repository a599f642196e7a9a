/* SPDX-License-Identifier: BSD-2-Clause */
/* The line of the source at an address, as the DWARF of a file or of a pseudo-image says it. */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_internal.h"

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
	path = base_map_get(&img->lines.paths, &key, sizeof(key));
	if (path)
		return path;
	len = strlen(key.folder) + strlen(name) + sizeof("/");
	path = malloc(len);
	if (!path)
		return name;
	snprintf(path, len, "%s/%s", key.folder, name);
	if (base_map_set(&img->lines.paths, &key, sizeof(key), path) == 0)
		return path;
	free(path);
	return name;
}

void image_paths_release(struct image *img)
{
	void *path;

	for (size_t i = 0; base_map_next(&img->lines.paths, &i, &path);)
		free(path);
	base_map_release(&img->lines.paths);
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
	int r = vaddr < img->units.discarded_reach ? image_live_line(img, unit, vaddr, out)
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
