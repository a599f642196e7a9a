/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Units whose routines were left in a file of their own, NAME.dwo (-gsplit-dwarf): what is in the
 * image itself tells of their addresses and lines alone. libdw (0.188) finds the file, beside the
 * image's and in the folder where it was compiled, but opens that name whatever it leads to, and
 * takes the length of strings by strlen, up to whatever follows the section.
 */
#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image_internal.h"

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

void image_splits_release(struct image *img)
{
	void *split;

	for (size_t i = 0; base_map_next(&img->splits.by_off, &i, &split);)
		free(split);
	base_map_release(&img->splits.by_off);
	base_map_release(&img->splits.by_rest);
}
