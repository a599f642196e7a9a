/* SPDX-License-Identifier: BSD-2-Clause */
/* The line of the source at an address, and the routines there, inlined one into the other: as the
 * DWARF of a file or of a pseudo-image says them. */
#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
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

/* The units that may hold @vaddr: start with *pos 0; false: no more. *@pos: how many of those that
 * start below were looked at, downwards; then how many vague ones. */
static bool unit_next(struct image *img, uint64_t vaddr, size_t *pos, Dwarf_Die *unit)
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

/* ---- what is known of a unit ----------------------------------------------------------------- */

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
static bool unit_ends(struct image *img, Dwarf_Die *die)
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

/* Was it compiled by clang, or another front end of LLVM? */
static bool unit_is_llvm(struct image *img, Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	Dwarf_Die whole = *unit;
	const char *by = NULL;

	if (unit_ends(img, &whole)) {
		image_unit_whole(img, &whole);
		by = dwarf_formstring(dwarf_attr(&whole, DW_AT_producer, &attr));
	}
	return by && (strstr(by, "clang") || strstr(by, "LLVM"));
}

/* ---- line programs --------------------------------------------------------------------------- */

/*
 * Lines of a pseudo-image, from its one line program over up to millions of rows: libdw makes a
 * table of all of them first, where a listing needs those of one procedure. What is kept here is of
 * a trace around the question; who asks for many is better served by the table.
 *
 * And lines of a unit of a file, without those of routines that the linker threw away: in libdw's
 * table they stand among those of what begins at low addresses, and nothing tells them apart.
 */

/* A scan takes about a twentieth of the table. */
enum { SCANS_MAX = 16, TRACE_MAX = 1 << 20 };

struct row {
	uint64_t addr;
	const char *file; /* in the section; of a pseudo-image alone */
	uint32_t file_nr, line, discriminator;
	bool end; /* end of a sequence: no row at its address */
	size_t nr;
};

struct image_program {
	struct image
		*live_of; /* not NULL: sequences that begin where it has no code are left out */
	bool skipped;	  /* some were */
	bool big;	  /* its bytes' order */
	const uint8_t *data;
	size_t at, end; /* at: where the program starts */
	uint8_t min_insn, line_range, opcode_base;
	int8_t line_base;
	const uint8_t *operands; /* operand counts of the standard opcodes */
	const char **files;
	size_t nr_files, cap_files;
	unsigned int scans;
	uint64_t low, high; /* the trace */
	struct row *rows;   /* its rows, ascending; the first may be below */
	size_t nr_rows, cap_rows;
};

static void program_free(struct image_program *p)
{
	if (!p)
		return;
	free(p->files);
	free(p->rows);
	free(p);
}

static bool get(struct image_program *p, size_t *at, size_t len, uint64_t *out)
{
	if (p->end - *at < len)
		return false;
	*out = 0;
	for (size_t i = 0; i < len; i++)
		*out |= (uint64_t)p->data[*at + i] << (8 * (p->big ? len - 1 - i : i));
	*at += len;
	return true;
}

static bool get_leb(struct image_program *p, size_t *at, bool is_signed, uint64_t *out)
{
	unsigned int shift = 0;
	uint8_t byte;

	*out = 0;
	do {
		if (*at >= p->end)
			return false;
		byte = p->data[(*at)++];
		if (shift < 64)
			*out |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && (byte & 0x40))
		*out |= UINT64_MAX << shift;
	return true;
}

static const char *get_text(struct image_program *p, size_t *at)
{
	const char *text = (const char *)p->data + *at;
	size_t len = strnlen(text, p->end - *at);

	if (len == p->end - *at)
		return NULL;
	*at += len + 1;
	return text;
}

/* Names as they are: in no folder. */
static bool get_files(struct image_program *p, size_t *at)
{
	uint64_t folder, ignored;
	const char *name;

	while ((name = get_text(p, at)) && *name) {
		if (!get_leb(p, at, false, &folder) || !get_leb(p, at, false, &ignored) ||
		    !get_leb(p, at, false, &ignored) || folder ||
		    base_grow(&p->files, &p->cap_files, p->nr_files + 1, sizeof(*p->files)) < 0)
			return false;
		p->files[p->nr_files++] = name;
	}
	return name != NULL;
}

/* How the program is to be read. */
static bool get_rules(struct image_program *p, size_t *at, uint64_t version)
{
	uint64_t v[6] = { [1] = 1 };

	for (size_t i = 0; i < 6; i++)
		if ((i != 1 || version >= 4) && !get(p, at, 1, &v[i]))
			return false;
	p->min_insn = (uint8_t)v[0];
	p->line_base = (int8_t)v[3];
	p->line_range = (uint8_t)v[4];
	p->opcode_base = (uint8_t)v[5];
	p->operands = p->data + *at;
	if (v[1] != 1 || !p->line_range || p->opcode_base < 10 ||
	    p->end - *at < p->opcode_base - 1u)
		return false;
	*at += p->opcode_base - 1u;
	return true;
}

/* A header as pseudoimg writes it: version 4, one program in the section. */
static bool get_header(struct image_program *p)
{
	uint64_t len, version, header_len;
	size_t at = 0, program;

	if (!get(p, &at, 4, &len) || len != p->end - at || !get(p, &at, 2, &version) ||
	    version != 4 || !get(p, &at, 4, &header_len) || header_len > p->end - at)
		return false;
	program = at + (size_t)header_len;
	if (!get_rules(p, &at, version))
		return false;
	if (at >= p->end || p->data[at++] || !get_files(p, &at) || at > program)
		return false;
	p->at = program;
	return true;
}

/* One of a file's, of which libdw knows the names of files. */
static bool get_unit_header(struct image_program *p)
{
	uint64_t len, version, header_len, sizes;
	size_t at = p->at, offset_len = 4;

	if (!get(p, &at, 4, &len))
		return false;
	if (len == UINT32_MAX && !get(p, &at, offset_len = 8, &len))
		return false;
	if (len > p->end - at)
		return false;
	p->end = at + (size_t)len;
	if (!get(p, &at, 2, &version) || version < 2 || version > 5 ||
	    (version == 5 && !get(p, &at, 2, &sizes)) || !get(p, &at, offset_len, &header_len) ||
	    header_len > p->end - at)
		return false;
	p->at = at + (size_t)header_len;
	return get_rules(p, &at, version);
}

/* Only the last one of all rows below the range counts. */
static bool add_row(struct image_program *p, const struct row *row)
{
	bool below = row->addr < p->low;

	if (row->addr >= p->high)
		return true;
	if (below && p->nr_rows && p->rows[0].addr < p->low) {
		struct row *best = &p->rows[0];

		if (row->addr > best->addr || (row->addr == best->addr && (!row->end || best->end)))
			*best = *row;
		return true;
	}
	if (base_grow(&p->rows, &p->cap_rows, p->nr_rows + 1, sizeof(*p->rows)) < 0)
		return false;
	p->rows[p->nr_rows++] = *row;
	/* The one below stands first. */
	if (below && p->nr_rows > 1) {
		p->rows[p->nr_rows - 1] = p->rows[0];
		p->rows[0] = *row;
	}
	return true;
}

static int by_addr(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (a->end != b->end)
		return a->end ? -1 : 1;
	return (a->nr > b->nr) - (a->nr < b->nr);
}

struct machine {
	size_t at;
	uint64_t addr, file, line, discriminator, nr;
	bool begun, discarded; /* this sequence */
};

static void reset(struct machine *m)
{
	m->addr = m->discriminator = 0;
	m->file = m->line = 1;
	m->begun = m->discarded = false;
}

static bool emit(struct image_program *p, struct machine *m, bool end)
{
	struct row row = { .addr = m->addr,
			   .file_nr = (uint32_t)m->file,
			   .line = (uint32_t)m->line,
			   .discriminator = (uint32_t)m->discriminator,
			   .end = end,
			   .nr = m->nr++ };

	m->discriminator = 0;
	if (!m->begun)
		m->discarded = p->live_of && !image_is_code(p->live_of, m->addr);
	m->begun = true;
	p->skipped |= m->discarded;
	if (m->discarded)
		return true;
	if (m->file && m->file <= p->nr_files)
		row.file = p->files[m->file - 1];
	return add_row(p, &row);
}

static bool extended(struct image_program *p, struct machine *m)
{
	uint64_t len, code, addr = 0;
	size_t next;

	if (!get_leb(p, &m->at, false, &len) || !len || len > p->end - m->at)
		return false;
	next = m->at + (size_t)len;
	get(p, &m->at, 1, &code);
	if (code == DW_LNE_end_sequence) {
		if (!emit(p, m, true))
			return false;
		reset(m);
	} else if (code == DW_LNE_set_address && (len == 9 || len == 5)) {
		get(p, &m->at, (size_t)len - 1, &addr);
		m->addr = addr;
	} else if (code == DW_LNE_set_discriminator &&
		   !get_leb(p, &m->at, false, &m->discriminator)) {
		return false;
	}
	m->at = next;
	return true;
}

static bool standard(struct image_program *p, struct machine *m, uint8_t op)
{
	uint64_t v = 0;

	switch (op) {
	case DW_LNS_copy:
		return emit(p, m, false);
	case DW_LNS_advance_pc:
		if (!get_leb(p, &m->at, false, &v))
			return false;
		m->addr += v * p->min_insn;
		return true;
	case DW_LNS_advance_line:
		if (!get_leb(p, &m->at, true, &v))
			return false;
		m->line += v;
		return true;
	case DW_LNS_set_file:
		return get_leb(p, &m->at, false, &m->file);
	case DW_LNS_const_add_pc:
		m->addr += (255u - p->opcode_base) / p->line_range * p->min_insn;
		return true;
	case DW_LNS_fixed_advance_pc:
		if (!get(p, &m->at, 2, &v))
			return false;
		m->addr += v;
		return true;
	default:
		for (uint8_t i = 0; i < p->operands[op - 1]; i++)
			if (!get_leb(p, &m->at, false, &v))
				return false;
		return true;
	}
}

static bool special(struct image_program *p, struct machine *m, uint8_t op)
{
	uint8_t by = (uint8_t)(op - p->opcode_base);

	m->addr += by / p->line_range * p->min_insn;
	m->line += (uint64_t)(int64_t)(p->line_base + by % p->line_range);
	return emit(p, m, false);
}

/* False: damaged, or without memory. */
static bool scan(struct image_program *p, uint64_t low, uint64_t high)
{
	struct machine m = { .at = p->at };

	p->scans++;
	p->nr_rows = 0;
	p->low = low;
	p->high = high;
	reset(&m);
	while (m.at < p->end) {
		uint8_t op = p->data[m.at++];
		bool good = op >= p->opcode_base ? special(p, &m, op)
			    : op		 ? standard(p, &m, op)
						 : extended(p, &m);

		if (!good)
			return false;
	}
	if (p->nr_rows)
		qsort(p->rows, p->nr_rows, sizeof(*p->rows), by_addr);
	return true;
}

/* NULL: not of the form that is read here. */
static struct image_program *program_of(struct image *img)
{
	Dwarf_Off next;
	size_t header_len;
	Dwarf_Die unit;
	GElf_Shdr sh;
	Elf_Scn *scn;
	Elf_Data *data;

	if (img->lines.program_sought)
		return img->lines.program;
	img->lines.program_sought = true;
	if (img->kind != IMAGE_DYNAMIC || img->main.header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    dwarf_nextcu(img->dwarf.own, 0, &next, &header_len, NULL, NULL, NULL) != 0 ||
	    !dwarf_offdie(img->dwarf.own, header_len, &unit) ||
	    dwarf_hasattr(&unit, DW_AT_comp_dir))
		return NULL;
	scn = image_elf_section(&img->main, ".debug_line", &sh);
	data = scn ? elf_getdata(scn, NULL) : NULL;
	if (!data || !data->d_buf || !(img->lines.program = calloc(1, sizeof(*img->lines.program))))
		return NULL;
	img->lines.program->data = data->d_buf;
	img->lines.program->end = data->d_size;
	if (get_header(img->lines.program))
		return img->lines.program;
	program_free(img->lines.program);
	img->lines.program = NULL;
	return NULL;
}

static bool make_trace(struct image *img, struct image_program *p, uint64_t vaddr)
{
	const struct image_symbol *s = image_symbol_at(img, vaddr);
	uint64_t low = vaddr, high = vaddr + 1;

	if (p->scans >= SCANS_MAX)
		return false;
	if (s && s->len <= TRACE_MAX) {
		low = s->vaddr;
		high = s->vaddr + s->len;
	}
	return scan(p, low, high);
}

static const struct row *row_at(const struct image_program *p, uint64_t vaddr)
{
	size_t lo = BASE_UPPER_BOUND(p->rows, p->nr_rows, addr, vaddr);

	return lo && !p->rows[lo - 1].end && p->rows[lo - 1].line ? &p->rows[lo - 1] : NULL;
}

/*
 * The line of a pseudo-image's address: 0, -ENOENT, or -DCPI_EUNSUPPORTED: ask libdw.
 */
static int image_program_line(struct image *img, uint64_t vaddr, struct image_line *out)
{
	struct image_program *p = program_of(img);
	const struct row *row;

	if (!p || vaddr == UINT64_MAX)
		return -DCPI_EUNSUPPORTED;
	if ((vaddr < p->low || vaddr >= p->high) && !make_trace(img, p, vaddr)) {
		program_free(p);
		img->lines.program = NULL;
		return -DCPI_EUNSUPPORTED;
	}
	row = row_at(p, vaddr);
	if (!row || !row->file)
		return -ENOENT;
	out->file = row->file;
	out->line = row->line;
	out->discriminator = 0;
	return 0;
}

static struct image_program *read_live(struct image *img, const struct image_elf *f, size_t at)
{
	struct image_program *p;
	Elf_Data *data;
	GElf_Shdr sh;
	Elf_Scn *scn;

	scn = image_elf_section(f, ".debug_line", &sh);
	if (!scn)
		scn = image_elf_section(f, ".zdebug_line", &sh);
	data = scn ? elf_getdata(scn, NULL) : NULL;
	if (!data || !data->d_buf || at > data->d_size || !(p = calloc(1, sizeof(*p))))
		return NULL;
	*p = (struct image_program){ .live_of = img,
				     .big = f->header.e_ident[EI_DATA] == ELFDATA2MSB,
				     .data = data->d_buf,
				     .at = at,
				     .end = data->d_size };
	if (get_unit_header(p) && scan(p, 0, UINT64_MAX) && p->skipped)
		return p;
	/* libdw's table will do; that is known from now on. */
	p->skipped = false;
	free(p->rows);
	p->rows = NULL;
	return p;
}

/* Kept as libdw keeps its tables: neighbours may be of many units. NULL: libdw's is to be used. */
static struct image_program *live_program(struct image *img, Dwarf_Die *unit)
{
	const struct image_elf *f =
		dwarf_getelf(img->dwarf.own) == img->main.elf ? &img->main : &img->debug;
	struct image_program *p;
	Dwarf_Attribute attr;
	Dwarf_Word at;

	if (dwarf_formudata(dwarf_attr(unit, DW_AT_stmt_list, &attr), &at) != 0)
		return NULL;
	p = base_map_get(&img->lines.live, &at, sizeof(at));
	if (!p) {
		p = read_live(img, f, (size_t)at);
		if (p && base_map_set(&img->lines.live, &at, sizeof(at), p) < 0) {
			program_free(p);
			p = NULL;
		}
	}
	return p && p->skipped ? p : NULL;
}

/*
 * The line of @vaddr in @unit, without sections that the linker discarded; the file as libdw names
 * it. 0, -ENOENT, or -DCPI_EUNSUPPORTED: ask libdw.
 */
static int image_live_line(struct image *img, Dwarf_Die *unit, uint64_t vaddr,
			   struct image_line *out)
{
	struct image_program *p = live_program(img, unit);
	const struct row *row = p ? row_at(p, vaddr) : NULL;
	Dwarf_Files *files;
	size_t nr;

	if (!p)
		return -DCPI_EUNSUPPORTED;
	if (!row || row->line > INT_MAX || dwarf_getsrcfiles(unit, &files, &nr) != 0)
		return -ENOENT;
	out->file = dwarf_filesrc(files, row->file_nr, NULL, NULL);
	out->line = row->line;
	out->discriminator = row->discriminator;
	return out->file ? 0 : -ENOENT;
}

/* ---- the line -------------------------------------------------------------------------------- */

/* libdw (0.188) leaves names relative whose folder is relative to that of the compilation. */
static const char *whole_path(struct image *img, Dwarf_Die *unit, const char *name)
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
	out->file = whole_path(img, unit, out->file);
	if (out->discriminator && !unit_is_llvm(img, unit))
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
	while (unit_next(img, vaddr, &pos, &unit))
		if (line_in_unit(img, &unit, vaddr, out) == 0)
			return 0;
	return -ENOENT;
}

/* ---- the routines at an address -------------------------------------------------------------- */

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
	return dwarf_formref_die(&attr, at) && unit_ends(img, at) ? 1 : -1;
}

static const char *name_of(struct image *img, Dwarf_Die *die)
{
	Dwarf_Die at = *die;
	int r = unit_ends(img, &at) ? 1 : -1;

	for (int i = 0; r > 0 && i < IMAGE_FRAMES_MAX; i++)
		r = origin_of(img, &at);
	return r ? NULL : dwarf_diename(die);
}

/* Describe the routine that @die belongs to; the definition comes before the declaration. */
static void describe(struct image *img, const Dwarf_Die *die, struct image_frame *out)
{
	int r = 1;
	Dwarf_Die at = *die;

	for (int i = 0; r > 0 && i < IMAGE_FRAMES_MAX && unit_ends(img, &at); i++) {
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
		if (dwarf_offdie(dw, off + header_len, &unit) && unit_ends(img, &unit))
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
	while (!s.found && unit_next(img, vaddr, &pos, &unit)) {
		if (!unit_ends(img, &unit))
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
	at.file = whole_path(img, &unit, dwarf_filesrc(files, file, NULL, NULL));
	at.line = at.file && line <= UINT32_MAX ? (unsigned int)line : 0;
	if (dwarf_formudata(dwarf_attr(die, AT_GNU_DISCRIMINATOR, &attr), &line) == 0 &&
	    line <= UINT32_MAX && unit_is_llvm(img, &unit))
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

/* ---- the end --------------------------------------------------------------------------------- */

void image_lines_release(struct image *img)
{
	void *v;

	program_free(img->lines.program);
	for (size_t i = 0; base_map_next(&img->lines.live, &i, &v);)
		program_free(v);
	base_map_release(&img->lines.live);
	for (size_t i = 0; base_map_next(&img->lines.paths, &i, &v);)
		free(v);
	base_map_release(&img->lines.paths);
	spans_free(img->frames.spans);
	units_free(img->units.by_addr);
}
