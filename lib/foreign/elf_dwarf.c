/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines and inlined parts of an ELF object in memory, from its DWARF. */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "bound.h"
#include "foreign_internal.h"

/* ---- relocations ----------------------------------------------------------------------------- */

/*
 * A relocatable file stands where its sections' addresses say; what its DWARF refers to may still
 * be left to fill in. Each entry gives a value of its own (not what is there already), so that to
 * fill in again what was filled in changes nothing.
 */

/* Limit for all sections together, since they may overlap. */
enum { ENTRIES_MAX = 1 << 20 };

/* Bytes that a relocation of this type fills with symbol + addend; 0: none, -1: another kind. */
static int width_of(uint32_t machine, uint64_t type)
{
	switch (machine) {
	case EM_X86_64:
		if (type == R_X86_64_64)
			return 8;
		if (type == R_X86_64_32 || type == R_X86_64_32S)
			return 4;
		return type == R_X86_64_NONE || type == R_X86_64_DTPOFF64 ? 0 : -1;
	case EM_AARCH64:
		if (type == R_AARCH64_ABS64)
			return 8;
		if (type == R_AARCH64_ABS32)
			return 4;
		return type == R_AARCH64_NONE ? 0 : -1;
	}
	return -1;
}

/* Where the symbol is; those of debugging sections count from these. */
static bool value_of(const struct elf_object *o, Elf_Data *symbols, uint64_t index, uint64_t *value)
{
	GElf_Shdr sh;
	GElf_Sym sym;
	Elf_Scn *scn;

	if (index > INT32_MAX || !gelf_getsym(symbols, (int)index, &sym))
		return false;
	*value = sym.st_value;
	if (sym.st_shndx == SHN_UNDEF || sym.st_shndx >= SHN_LORESERVE)
		return true;
	scn = elf_getscn(o->elf, sym.st_shndx);
	if (!scn || !gelf_getshdr(scn, &sh))
		return false;
	*value += sh.sh_addr;
	return true;
}

static int fill_in(struct elf_object *o, const GElf_Shdr *target, Elf_Data *symbols,
		   const GElf_Rela *rela)
{
	int width = width_of(o->header.e_machine, GELF_R_TYPE(rela->r_info));
	uint64_t value;

	if (width <= 0)
		return width < 0 ? -DCPI_EUNSUPPORTED : 0;
	if (target->sh_size < (uint64_t)width ||
	    rela->r_offset > target->sh_size - (uint64_t)width ||
	    !value_of(o, symbols, GELF_R_SYM(rela->r_info), &value))
		return -DCPI_EFORMAT;
	value += (uint64_t)rela->r_addend;
	memcpy(o->bytes + target->sh_offset + rela->r_offset, &value, (size_t)width);
	return 0;
}

static int relocate(struct elf_object *o, Elf_Scn *scn, const GElf_Shdr *sh,
		    const GElf_Shdr *target, size_t *left)
{
	Elf_Scn *symtab = elf_getscn(o->elf, sh->sh_link);
	Elf_Data *data = elf_getdata(scn, NULL), *symbols;
	size_t nr = data ? data->d_size / sizeof(Elf64_Rela) : 0;
	GElf_Shdr symbols_sh;
	GElf_Rela rela;
	int r = 0;

	if (sh->sh_entsize != sizeof(Elf64_Rela) || !symtab || !gelf_getshdr(symtab, &symbols_sh) ||
	    symbols_sh.sh_type != SHT_SYMTAB)
		return -DCPI_EFORMAT;
	if (nr > *left)
		return -DCPI_ELIMIT;
	*left -= nr;
	symbols = elf_getdata(symtab, NULL);
	for (size_t i = 0; r == 0 && symbols && i < nr; i++)
		r = gelf_getrela(data, (int)i, &rela) ? fill_in(o, target, symbols, &rela)
						      : -DCPI_EFORMAT;
	return r;
}

/* A relocation must not change parts of the file that were checked before. */
static bool writable(const struct elf_object *o, const GElf_Shdr *sh)
{
	uint64_t table = o->header.e_shoff, table_len = o->header.e_shnum * sizeof(Elf64_Shdr);

	if (sh->sh_type == SHT_NOBITS || sh->sh_offset < sizeof(Elf64_Ehdr) ||
	    sh->sh_offset > o->len || sh->sh_size > o->len - sh->sh_offset)
		return false;
	return sh->sh_offset + sh->sh_size <= table || sh->sh_offset >= table + table_len;
}

int elf_relocate(struct elf_object *o)
{
	GElf_Shdr sh, target;
	size_t left = ENTRIES_MAX;
	int r = 0;

	if (o->header.e_type != ET_REL)
		return 0;
	for (Elf_Scn *scn = NULL; r == 0 && (scn = elf_nextscn(o->elf, scn));) {
		Elf_Scn *to;

		if (!gelf_getshdr(scn, &sh) || (sh.sh_type != SHT_RELA && sh.sh_type != SHT_REL))
			continue;
		to = elf_getscn(o->elf, sh.sh_info);
		if (!to || !gelf_getshdr(to, &target) ||
		    strncmp(elf_file_section_name(o, &target), ".debug_", 7))
			continue;
		if (sh.sh_type == SHT_REL || !writable(o, &target))
			return -DCPI_EUNSUPPORTED;
		r = relocate(o, scn, &sh, &target, &left);
	}
	return r;
}

/* ---- names of files -------------------------------------------------------------------------- */

/* A name of one letter, its end, and three numbers. */
enum { FILE_MIN = 5 };

struct cursor {
	const uint8_t *at;
	size_t left;
};

static bool skip(struct cursor *c, uint64_t len)
{
	if (len > c->left)
		return false;
	c->at += len;
	c->left -= (size_t)len;
	return true;
}

static bool number(struct cursor *c, size_t len, uint64_t *value)
{
	const uint8_t *at = c->at;

	*value = 0;
	if (!skip(c, len))
		return false;
	memcpy(value, at, len);
	return true;
}

/* From the length on to the directories: false where there are none of that kind. */
static bool skip_header(struct cursor *c)
{
	uint64_t len, version, opcodes;
	size_t width = 4;

	if (!number(c, 4, &len))
		return false;
	if (len == UINT32_MAX) {
		width = 8;
		if (!number(c, 8, &len))
			return false;
	}
	if (len < c->left)
		c->left = (size_t)len;
	if (!number(c, 2, &version) || version > 4)
		return false;
	return skip(c, width + (version == 4 ? 5 : 4)) && number(c, 1, &opcodes) &&
	       skip(c, opcodes ? opcodes - 1 : 0);
}

/* Bytes of memory that libdw takes at most for the names of files in the line table
 * (versions 2 to 4; 0 for others) at @off, which puts the directory before each of them. */
static uint64_t elf_lines_cost(const uint8_t *section, size_t len, uint64_t off,
			       size_t unit_dir_len)
{
	struct cursor c = { section, len };
	uint64_t longest = unit_dir_len;

	if (!skip(&c, off) || !skip_header(&c))
		return 0;
	while (c.left && *c.at) {
		size_t dir_len = strnlen((const char *)c.at, c.left);

		longest = dir_len > longest ? dir_len : longest;
		if (!skip(&c, dir_len + 1))
			return 0;
	}
	/* The program can name files too. */
	return c.left / FILE_MIN * longest;
}

enum { ROWS_MAX = 1 << 20, PARTS_MAX = 1 << 20, DIES_MAX = 1 << 20, NEST_MAX = 200 };
/* So many entries are visited between two looks at the clock. */
enum { CLOCK_STEP = 64 };
/* Limit of the memory for names of files, over all line tables of an object. */
#define NAMES_MAX (256ull << 20)

struct walk {
	struct elf_object *o;
	Dwarf_Files *files; /* files of the unit */
	const char *folder; /* where that was compiled, or NULL */
	uint64_t names_len; /* at most, of the units up to here */
	uint32_t nr_dies;
	int status;
};

static bool over(struct walk *w)
{
	if (w->status == 0 && base_now_ns() >= w->o->from->deadline_ns)
		w->status = -ETIMEDOUT;
	return w->status < 0;
}

/* ---- what may be read ------------------------------------------------------------------------ */

/*
 * Nothing that grows when it is read, nor what would have libdw look for other files, whose names
 * an application chose.
 */
static bool section_good(const char *name, const GElf_Shdr *sh)
{
	if (!strncmp(name, ".zdebug", 7) || !strcmp(name, ".gnu_debugaltlink"))
		return false;
	if (strncmp(name, ".debug_", 7))
		return true;
	if ((sh->sh_flags & SHF_COMPRESSED) || strstr(name, ".dwo"))
		return false;
	if (!strcmp(name, ".debug_line"))
		return sh->sh_size <= FOREIGN_LINE_MAX;
	return sh->sh_size <= FOREIGN_INFO_MAX;
}

static bool dwarf_good(struct elf_object *o)
{
	bool lines = false, is_line;
	GElf_Shdr sh;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(o->elf, scn));) {
		const char *name;

		if (!gelf_getshdr(scn, &sh))
			return false;
		name = elf_file_section_name(o, &sh);
		if (!section_good(name, &sh))
			return false;
		is_line = !strcmp(name, ".debug_line") && sh.sh_type != SHT_NOBITS;
		if (lines && is_line)
			return false;
		if (is_line)
			o->lines = sh;
		lines |= is_line;
	}
	return lines;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* libdw (0.188) leaves names relative whose folder is relative to that of the compilation. */
static int place_name(struct walk *w, const char *name)
{
	struct base_map *m = &w->o->folders;

	if (!name || *name == '/' || !w->folder || *w->folder != '/' ||
	    base_map_get(m, &name, sizeof(name)))
		return 0;
	return base_map_set(m, &name, sizeof(name), (void *)w->folder);
}

static uint16_t fits(unsigned int n)
{
	return n < UINT16_MAX ? (uint16_t)n : 0;
}

static void place_row(Dwarf_Line *line, uint32_t number, struct elf_row *row)
{
	unsigned int discriminator = 0;
	int column = 0;

	row->line = number;
	if (dwarf_linecol(line, &column) == 0 && column > 0)
		row->column = fits((unsigned int)column);
	if (dwarf_linediscriminator(line, &discriminator) == 0)
		row->discriminator = (uint16_t)discriminator;
}

static int add_row(struct walk *w, Dwarf_Line *line)
{
	struct elf_object *o = w->o;
	struct elf_row row = { .order = (uint32_t)o->nr_rows };
	Dwarf_Addr addr;
	int number = 0, r;

	if (dwarf_lineaddr(line, &addr) < 0 || dwarf_lineendsequence(line, &row.end) < 0)
		return 0;
	row.addr = addr + o->from->rec->bias;
	if (row.addr - o->from->rec->addr > o->from->rec->code_len)
		return 0;
	if (!row.end && dwarf_lineno(line, &number) == 0 && number > 0)
		row.file = dwarf_linesrc(line, NULL, NULL);
	if (row.file)
		place_row(line, (uint32_t)number, &row);
	if (o->nr_rows == ROWS_MAX)
		return -DCPI_ELIMIT;
	r = place_name(w, row.file);
	if (r == 0)
		r = base_grow(&o->rows, &o->cap_rows, o->nr_rows + 1, sizeof(*o->rows));
	if (r == 0)
		o->rows[o->nr_rows++] = row;
	return r;
}

/* An object has the memory of a reader that many others need: what it would take is known before.
 */
static bool lines_good(struct walk *w, Dwarf_Die *unit)
{
	const GElf_Shdr *sh = &w->o->lines;
	Dwarf_Attribute attr;
	Dwarf_Word off;

	w->folder = dwarf_attr(unit, DW_AT_comp_dir, &attr) ? dwarf_formstring(&attr) : NULL;

	if (!dwarf_attr(unit, DW_AT_stmt_list, &attr) || dwarf_formudata(&attr, &off) < 0)
		return false;
	w->names_len += elf_lines_cost(w->o->bytes + sh->sh_offset, sh->sh_size, off,
				       w->folder ? strlen(w->folder) : 0);
	if (w->names_len > NAMES_MAX)
		w->status = -DCPI_ELIMIT;
	return w->status == 0;
}

static void take_lines(struct walk *w, Dwarf_Die *unit)
{
	Dwarf_Lines *lines;
	size_t nr;

	if (dwarf_getsrclines(unit, &lines, &nr) < 0)
		return;
	for (size_t i = 0; i < nr && w->status == 0; i++)
		w->status = add_row(w, dwarf_onesrcline(lines, i));
}

/* Where one sequence ends another may begin. */
static int by_addr(const void *pa, const void *pb)
{
	const struct elf_row *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (a->end != b->end)
		return a->end ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* ---- inlined parts --------------------------------------------------------------------------- */

static const char *text_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, name, &attr) ? dwarf_formstring(&attr) : NULL;
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &value) < 0)
		return 0;
	return value;
}

/* Index of the routine that @vaddr lies in, or -1. */
static ssize_t routine_at(const struct elf_object *o, uint64_t vaddr)
{
	size_t lo = BASE_UPPER_BOUND(o->routines, o->nr_routines, addr, vaddr);

	if (!lo || vaddr - o->routines[lo - 1].addr >= o->routines[lo - 1].len)
		return -1;
	return (ssize_t)lo - 1;
}

static int add_part(struct elf_object *o, struct elf_part part, uint64_t start, uint64_t end)
{
	ssize_t routine;
	int r;

	part.start = start + o->from->rec->bias;
	part.end = end + o->from->rec->bias;
	routine = routine_at(o, part.start);
	if (routine < 0 || part.end <= part.start)
		return 0;
	part.routine = (uint32_t)routine;
	part.order = (uint32_t)o->nr_parts;
	if (o->nr_parts == PARTS_MAX)
		return -DCPI_ELIMIT;
	r = base_grow(&o->parts, &o->cap_parts, o->nr_parts + 1, sizeof(*o->parts));
	if (r == 0)
		o->parts[o->nr_parts++] = part;
	return r;
}

/* One part for each of its ranges. */
static void take_inlined(struct walk *w, Dwarf_Die *die, uint32_t depth)
{
	struct elf_part part = { .depth = depth };
	Dwarf_Word line = number_of(die, DW_AT_call_line);
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	part.name = text_of(die, DW_AT_linkage_name);
	if (!part.name)
		part.name = text_of(die, DW_AT_name);
	if (!part.name || !*part.name)
		return;
	if (w->files)
		part.call_file =
			dwarf_filesrc(w->files, number_of(die, DW_AT_call_file), NULL, NULL);
	part.call_line = part.call_file && line <= UINT32_MAX ? (uint32_t)line : 0;
	if (w->status == 0)
		w->status = place_name(w, part.call_file);
	while (w->status == 0 && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		w->status = add_part(w->o, part, start, end);
		if (++w->nr_dies >= DIES_MAX)
			w->status = -DCPI_ELIMIT;
	}
}

static bool may_hold_code(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return true;
	}
	return false;
}

/* @depth: of the next part that is inlined here. */
static void walk_children(struct walk *w, Dwarf_Die *parent, unsigned int nest, uint32_t depth)
{
	Dwarf_Die die;

	if (nest == NEST_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);
		bool inlined = tag == DW_TAG_inlined_subroutine;

		if (++w->nr_dies >= DIES_MAX)
			w->status = -DCPI_ELIMIT;
		if (w->status < 0 || (w->nr_dies % CLOCK_STEP == 0 && over(w)))
			return;
		if (inlined && depth < WIRE_INLINE_DEPTH)
			take_inlined(w, &die, depth);
		if (may_hold_code(tag))
			walk_children(w, &die, nest + 1,
				      tag == DW_TAG_subprogram ? 0 : depth + inlined);
	} while (dwarf_siblingof(&die, &die) == 0);
}

static int by_place(const void *pa, const void *pb)
{
	const struct elf_part *a = pa, *b = pb;

	if (a->routine != b->routine)
		return a->routine < b->routine ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/*
 * Each within the one around it, which ends no later; what has none around it, or overlaps another
 * of its depth, goes.
 */
static void nest_parts(struct elf_object *o)
{
	uint64_t ends[WIRE_INLINE_DEPTH];
	uint32_t open = 0;
	size_t nr = 0;

	for (size_t i = 0; i < o->nr_parts; i++) {
		struct elf_part part = o->parts[i];
		const struct elf_routine *rt = &o->routines[part.routine];
		uint64_t end = rt->addr + rt->len;

		if (!nr || o->parts[nr - 1].routine != part.routine)
			open = 0;
		while (open && ends[open - 1] <= part.start)
			open--;
		if (open != part.depth)
			continue;
		if (open)
			end = ends[open - 1];
		part.end = part.end < end ? part.end : end;
		ends[open++] = part.end;
		o->parts[nr++] = part;
	}
	o->nr_parts = nr;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void walk_units(struct walk *w)
{
	Dwarf_Off off = 0, next;
	size_t header_len;

	while (!over(w) &&
	       dwarf_nextcu(w->o->dwarf, off, &next, &header_len, NULL, NULL, NULL) == 0) {
		Dwarf_Die unit;

		if (dwarf_offdie(w->o->dwarf, off + header_len, &unit)) {
			bool good = lines_good(w, &unit);

			if (good)
				take_lines(w, &unit);
			if (!good || dwarf_getsrcfiles(&unit, &w->files, NULL) < 0)
				w->files = NULL;
			if (!over(w))
				walk_children(w, &unit, 0, 0);
		}
		if (next <= off)
			break;
		off = next;
	}
}

int elf_dwarf_read(struct elf_object *o)
{
	struct walk w = { .o = o };

	if (!dwarf_good(o) || elf_relocate(o) < 0)
		return 0;
	o->dwarf = dwarf_begin_elf(o->elf, DWARF_C_READ, NULL);
	if (!o->dwarf)
		return 0;
	walk_units(&w);
	if (o->nr_rows)
		qsort(o->rows, o->nr_rows, sizeof(*o->rows), by_addr);
	if (o->nr_parts)
		qsort(o->parts, o->nr_parts, sizeof(*o->parts), by_place);
	nest_parts(o);
	return w.status == -ENOMEM ? -ENOMEM : 0;
}
