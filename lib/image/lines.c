/* SPDX-License-Identifier: BSD-2-Clause */
/* The line of the source at an address, as the DWARF of a file or of a pseudo-image says it. */
#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_internal.h"

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
