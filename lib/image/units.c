/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compilation units are found by address: there are thousands, and each listing asks for thousands.
 */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "image_internal.h"

struct unit_range {
	uint64_t low, high;
	uint64_t reach; /* the highest end up to here */
	Dwarf_Off off;
};

struct image_units {
	struct unit_range *v; /* ascending by low */
	size_t nr, cap;
	Dwarf_Off *vague; /* units that do not state their addresses, and may have any */
	size_t nr_vague, cap_vague;
};

void image_units_free(struct image_units *units)
{
	if (!units)
		return;
	free(units->v);
	free(units->vague);
	free(units);
}

static int by_low(const void *a, const void *b)
{
	const struct unit_range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return (x->off > y->off) - (x->off < y->off);
}

static int add_vague(struct image_units *u, Dwarf_Off off)
{
	int r = base_grow(&u->vague, &u->cap_vague, u->nr_vague + 1, sizeof(*u->vague));

	if (r >= 0)
		u->vague[u->nr_vague++] = off;
	return r;
}

/* Linkers leave of the range of a routine that is gone where it begins, and how long it was, or, in
 * DWARF 4 and older, an empty one. */
static void note_discarded(struct image *img, uint64_t low, uint64_t high)
{
	uint64_t reach = low == high ? UINT64_MAX : high;

	if (reach > img->units.discarded_reach)
		img->units.discarded_reach = reach;
}

/*
 * Type units, and the parts that dwz(1) shared between units, hold no code: they name lines for
 * their files.
 */
static bool may_be_vague(Dwarf_Die *unit)
{
	int tag = dwarf_tag(unit);

	return tag != DW_TAG_type_unit && tag != DW_TAG_partial_unit &&
	       !dwarf_hasattr(unit, DW_AT_ranges) && !dwarf_hasattr(unit, DW_AT_high_pc);
}

/* Many units may name one list of ranges: @most bounds what such a file can cost. */
static int add_unit(struct image *img, Dwarf_Die *unit, Dwarf_Off off, size_t most)
{
	struct image_units *u = img->units.by_addr;
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;
	size_t from = u->nr;
	int r = 0;

	while (r >= 0 && (at = dwarf_ranges(unit, at, &base, &low, &high)) > 0) {
		if (u->nr >= most) {
			u->nr = from;
			return add_vague(u, off);
		}
		r = base_grow(&u->v, &u->cap, u->nr + 1, sizeof(*u->v));
		if (!image_is_code(img, low))
			note_discarded(img, low, high);
		else if (r >= 0 && low < high)
			u->v[u->nr++] = (struct unit_range){ low, high, 0, off };
	}
	if (r < 0)
		return r;
	return at < 0 || (u->nr == from && may_be_vague(unit)) ? add_vague(u, off) : 0;
}

/* NULL without memory: then there are no lines. */
static struct image_units *units_of(struct image *img)
{
	Dwarf *dw = image_dwarf(img);
	size_t most = img->main.len + img->debug.len, header_len;
	Dwarf_Off off = 0, next;
	struct image_units *u;
	Dwarf_Die unit;

	if (img->units.by_addr || !dw)
		return img->units.by_addr;
	u = img->units.by_addr = calloc(1, sizeof(*u));
	while (u && dwarf_nextcu(dw, off, &next, &header_len, NULL, NULL, NULL) == 0 &&
	       next > off) {
		if (dwarf_offdie(dw, off + header_len, &unit) &&
		    add_unit(img, &unit, off + header_len, most / 16) < 0)
			break;
		off = next;
	}
	if (u && u->nr)
		qsort(u->v, u->nr, sizeof(*u->v), by_low);
	for (size_t i = 0; u && i < u->nr; i++) {
		u->v[i].reach = u->v[i].high;
		if (i && u->v[i - 1].reach > u->v[i].reach)
			u->v[i].reach = u->v[i - 1].reach;
	}
	return u;
}

/* *pos: how many of those that start below were looked at, downwards; then how many vague ones. */
bool image_unit_next(struct image *img, uint64_t vaddr, size_t *pos, Dwarf_Die *unit)
{
	const struct image_units *u = units_of(img);
	size_t nr = u ? BASE_UPPER_BOUND(u->v, u->nr, low, vaddr) : 0;

	if (!u)
		return false;
	for (; *pos < nr; ++*pos) {
		const struct unit_range *range = &u->v[nr - 1 - *pos];

		if (range->reach <= vaddr)
			*pos = nr - 1;
		else if (vaddr < range->high && dwarf_offdie(img->dwarf.own, range->off, unit))
			return ++*pos, true;
	}
	while (*pos - nr < u->nr_vague)
		if (dwarf_offdie(img->dwarf.own, u->vague[(*pos)++ - nr], unit))
			return true;
	return false;
}

/* ---- what is known of a unit ------------------------------------------------------------------
 */

/*
 * libdw (0.188) takes the length of a name by strlen, up to whatever follows the section. Behind
 * units of compilers there is a zero inside of it, their own last byte at least; that of an
 * assembler may end in anything, but has nothing inlined. How far there is one:
 */
static const struct image_names *names_of(struct image *img, Dwarf *dw)
{
	struct image_names *names =
		dw == img->dwarf.own ? &img->units.names : &img->units.alt_names;
	const struct image_elf *f = &img->main;
	Elf_Data *data;
	GElf_Shdr sh;
	Elf_Scn *scn;

	if (names->known)
		return names;
	names->known = true;
	if (dwarf_getelf(dw) != f->elf)
		f = dw == img->dwarf.own ? &img->debug : &img->dwarf.alt_file;
	/* Compressed ones were uncompressed in place when the DWARF was opened. */
	scn = image_elf_section(f, ".debug_info", &sh);
	if (!scn)
		scn = image_elf_section(f, ".zdebug_info", &sh);
	data = scn ? elf_getdata(scn, NULL) : NULL;
	if (!data)
		return names;
	names->bytes = data->d_buf;
	names->size = names->len = data->d_size;
	while (names->len && names->bytes[names->len - 1])
		names->len--;
	return names;
}

bool image_unit_ends(struct image *img, Dwarf_Die *die)
{
	Dwarf_Off off = dwarf_dieoffset(die) - dwarf_cuoffset(die), next;
	Dwarf *dw = dwarf_cu_getdwarf(die->cu);
	const struct image_names *names;
	size_t header_len;

	/* Files of split units, and .debug_types, are known to end in a zero. */
	if (dw != img->dwarf.own && dw != img->dwarf.alt)
		return true;
	names = names_of(img, dw);
	if (!names->size)
		return false;
	if ((uintptr_t)die->addr - (uintptr_t)names->bytes >= names->size)
		return true;
	return dwarf_nextcu(dw, off, &next, &header_len, NULL, NULL, NULL) == 0 &&
	       next <= names->len;
}

bool image_unit_llvm(struct image *img, Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	Dwarf_Die whole = *unit;
	const char *by = NULL;

	if (image_unit_ends(img, &whole)) {
		image_unit_whole(img, &whole);
		by = dwarf_formstring(dwarf_attr(&whole, DW_AT_producer, &attr));
	}
	return by && (strstr(by, "clang") || strstr(by, "LLVM"));
}
