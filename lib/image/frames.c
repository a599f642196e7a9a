/* SPDX-License-Identifier: BSD-2-Clause */
/* The units and routines at an address are found here, routines inlined one into the other. */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "image_internal.h"

/* ---- units ----------------------------------------------------------------------------------- */

/*
 * Compilation units are found by address: there are thousands, and each listing asks for thousands.
 */

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

static void units_free(struct image_units *units)
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

/* Does the unit of @die end where names in it are ended by a zero? Else none of it is read. */
static bool image_unit_ends(struct image *img, Dwarf_Die *die)
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

/* ---- routines -------------------------------------------------------------------------------- */

/* Attribute of an inlined call: clang writes it, dwarf.h does not know it. */
enum { AT_GNU_DISCRIMINATOR = 0x2136 };

/* A pseudo-image has one unit with up to millions of routines: found by address, not by a walk. */
struct image_span {
	uint64_t low, high;
	Dwarf_Off off;
};

struct image_spans {
	struct image_span *v;
	size_t nr, cap;
};

static void spans_free(struct image_spans *spans)
{
	if (spans)
		free(spans->v);
	free(spans);
}

void image_frames_release(struct image *img)
{
	spans_free(img->frames.spans);
	units_free(img->units.by_addr);
}

static int span_by_low(const void *a, const void *b)
{
	const struct image_span *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return (x->off > y->off) - (x->off < y->off);
}

static void add_span_unit(struct image_spans *s, Dwarf_Die *unit)
{
	Dwarf_Die die;

	if (dwarf_child(unit, &die) != 0)
		return;
	do {
		struct image_span span = { .off = dwarf_dieoffset(&die) };

		if (dwarf_tag(&die) != DW_TAG_subprogram || !dwarf_haschildren(&die) ||
		    dwarf_lowpc(&die, &span.low) != 0 || dwarf_highpc(&die, &span.high) != 0)
			continue;
		if (base_grow(&s->v, &s->cap, s->nr + 1, sizeof(*s->v)) < 0)
			return;
		s->v[s->nr++] = span;
	} while (dwarf_siblingof(&die, &die) == 0);
}

/*
 * Move to the entry's origin, which may be in another unit: 1; 0: it has none; negative: damaged.
 */
static int origin_of(struct image *img, Dwarf_Die *at)
{
	Dwarf_Attribute attr;

	if (!dwarf_attr(at, DW_AT_abstract_origin, &attr) &&
	    !dwarf_attr(at, DW_AT_specification, &attr))
		return 0;
	return dwarf_formref_die(&attr, at) && image_unit_ends(img, at) ? 1 : -1;
}

static const char *name_of(struct image *img, Dwarf_Die *die)
{
	Dwarf_Die at = *die;
	int r = image_unit_ends(img, &at) ? 1 : -1;

	for (int i = 0; r > 0 && i < IMAGE_FRAMES_MAX; i++)
		r = origin_of(img, &at);
	return r ? NULL : dwarf_diename(die);
}

/* Describe the routine that @die belongs to; the definition comes before the declaration. */
static void describe(struct image *img, const Dwarf_Die *die, struct image_frame *out)
{
	int r = 1;
	Dwarf_Die at = *die;

	for (int i = 0; r > 0 && i < IMAGE_FRAMES_MAX && image_unit_ends(img, &at); i++) {
		Dwarf_Attribute attr;
		Dwarf_Word line;

		if (!out->begins &&
		    dwarf_formudata(dwarf_attr(&at, DW_AT_decl_line, &attr), &line) == 0 &&
		    line <= UINT32_MAX)
			out->begins = (unsigned int)line;
		if (!out->linkage && (dwarf_attr(&at, DW_AT_linkage_name, &attr) ||
				      dwarf_attr(&at, DW_AT_MIPS_linkage_name, &attr)))
			out->linkage = dwarf_formstring(&attr);
		r = origin_of(img, &at);
	}
}

/* NULL without memory: then nothing is inlined. */
static struct image_spans *spans_of(struct image *img)
{
	Dwarf *dw = image_dwarf(img);
	Dwarf_Off off = 0, next;
	size_t header_len;
	Dwarf_Die unit;

	if (img->frames.spans || !dw)
		return img->frames.spans;
	img->frames.spans = calloc(1, sizeof(*img->frames.spans));
	while (img->frames.spans &&
	       dwarf_nextcu(dw, off, &next, &header_len, NULL, NULL, NULL) == 0 && next > off) {
		if (dwarf_offdie(dw, off + header_len, &unit) && image_unit_ends(img, &unit))
			add_span_unit(img->frames.spans, &unit);
		off = next;
	}
	if (img->frames.spans && img->frames.spans->nr)
		qsort(img->frames.spans->v, img->frames.spans->nr, sizeof(*img->frames.spans->v),
		      span_by_low);
	return img->frames.spans;
}

/* The subprogram over @vaddr that starts last. Routines of a pseudo-image with inlined parts do not
 * overlap. */
static bool span_die(struct image *img, uint64_t vaddr, Dwarf_Die *out)
{
	const struct image_spans *s = spans_of(img);
	size_t lo = s ? BASE_UPPER_BOUND(s->v, s->nr, low, vaddr) : 0;

	return lo && vaddr < s->v[lo - 1].high &&
	       dwarf_offdie(img->dwarf.own, s->v[lo - 1].off, out);
}

/* The inlined part over @vaddr among the children of @die, blocks looked through. */
static bool inlined_child(const Dwarf_Die *die, uint64_t vaddr, Dwarf_Die *out, unsigned int depth)
{
	Dwarf_Die child, parent = *die;

	if (depth > IMAGE_FRAMES_MAX || dwarf_child(&parent, &child) != 0)
		return false;
	do {
		int tag = dwarf_tag(&child);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block)
			continue;
		if (dwarf_haspc(&child, vaddr) <= 0)
			continue;
		if (tag == DW_TAG_inlined_subroutine) {
			*out = child;
			return true;
		}
		if (inlined_child(&child, vaddr, out, depth + 1))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* As dwarf_haspc, but without ranges of what the linker threw away. */
static bool stands_at(struct image *img, Dwarf_Die *die, uint64_t vaddr)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0)
		if (low <= vaddr && vaddr < high && image_is_code(img, low))
			return true;
	return false;
}

struct search {
	struct image *img;
	uint64_t vaddr;
	Dwarf_Die *out;
	bool found;
};

/* Not by dwarf_getscopes, which goes on from an inlined part to where that was written. */
static int try_subprogram(Dwarf_Die *die, void *ctx)
{
	struct search *s = ctx;

	if (!stands_at(s->img, die, s->vaddr))
		return DWARF_CB_OK;
	*s->out = *die;
	s->found = true;
	return DWARF_CB_ABORT;
}

static bool subprogram_at(struct image *img, uint64_t vaddr, Dwarf_Die *out)
{
	struct search s = { .img = img, .vaddr = vaddr, .out = out };
	Dwarf_Die unit;
	size_t pos = 0;

	if (img->kind == IMAGE_DYNAMIC)
		return span_die(img, vaddr, out);
	if (img->frames.has_last && stands_at(img, &img->frames.last, vaddr)) {
		*out = img->frames.last;
		return true;
	}
	while (!s.found && image_unit_next(img, vaddr, &pos, &unit)) {
		if (!image_unit_ends(img, &unit))
			continue;
		image_unit_whole(img, &unit);
		if (dwarf_getfuncs(&unit, try_subprogram, &s, 0) < 0)
			break;
	}
	if (s.found) {
		img->frames.last = *out;
		img->frames.has_last = true;
	}
	return s.found;
}

static struct image_line called_from(struct image *img, Dwarf_Die *die)
{
	struct image_line at = { 0 };
	Dwarf_Word file, line;
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	Dwarf_Die unit;
	size_t nr;

	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attr), &line) != 0 ||
	    dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attr), &file) != 0 ||
	    !dwarf_diecu(die, &unit, NULL, NULL))
		return at;
	image_unit_files(img, &unit);
	if (dwarf_getsrcfiles(&unit, &files, &nr) != 0)
		return at;
	at.file = image_whole_path(img, &unit, dwarf_filesrc(files, file, NULL, NULL));
	at.line = at.file && line <= UINT32_MAX ? (unsigned int)line : 0;
	if (dwarf_formudata(dwarf_attr(die, AT_GNU_DISCRIMINATOR, &attr), &line) == 0 &&
	    line <= UINT32_MAX && image_unit_llvm(img, &unit))
		at.discriminator = (unsigned int)line;
	return at;
}

/* Innermost first, of more than there is room for the outer ones are lost. */
size_t image_frames_at(struct image *img, uint64_t vaddr, struct image_frame *out, size_t max)
{
	struct image_line line = { 0 }, call;
	Dwarf_Die die[IMAGE_FRAMES_MAX];
	bool known = image_line_at(img, vaddr, &line) == 0;
	bool has_subprogram = img->dwarf.own && subprogram_at(img, vaddr, &die[0]);
	size_t nr = 0, n = 0;

	if (has_subprogram)
		while (nr + 1 < IMAGE_FRAMES_MAX && inlined_child(&die[nr], vaddr, &die[nr + 1], 0))
			nr++;
	if (!nr && !known)
		return 0;
	for (; n <= nr && n < max; n++) {
		call = (struct image_line){ 0 };
		out[n] = (struct image_frame){ .at = line };
		if (has_subprogram)
			describe(img, &die[nr - n], &out[n]);
		if (n < nr) {
			out[n].name = name_of(img, &die[nr - n]);
			call = called_from(img, &die[nr - n]);
		}
		if (n < nr && !out[n].name)
			out[n].name = "(unnamed)";
		line = call;
	}
	return n;
}
