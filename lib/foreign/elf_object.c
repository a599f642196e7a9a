/* SPDX-License-Identifier: BSD-2-Clause */
/* Routines of an ELF object in memory, by its symbols, become registration records. */
#include <errno.h>
#include <stdlib.h>

#include "bound.h"
#include "foreign_internal.h"

/* ---- the file -------------------------------------------------------------------------------- */

/* Zeros after the contents, which end a string that does not end within its section. */
enum { ZEROS = 16 };

static bool inside(const struct elf_object *o, uint64_t off, uint64_t len)
{
	return off <= o->len && len <= o->len - off;
}

/* Before libelf sees it: what it would take for a shorter file, or pad out. */
static int check_header(const struct elf_object *o)
{
	Elf64_Ehdr h;

	if (o->len < sizeof(h))
		return -DCPI_EFORMAT;
	memcpy(&h, o->bytes, sizeof(h));
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_ident[EI_CLASS] != ELFCLASS64 ||
	    h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_version != EV_CURRENT ||
	    h.e_machine != o->from->machine || h.e_ehsize != sizeof(h))
		return -DCPI_EFORMAT;
	/* Extended numbering (e_shnum 0) is for files of 65,280 sections. */
	if (!h.e_shnum || h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shoff % 8 ||
	    !inside(o, h.e_shoff, (uint64_t)h.e_shnum * sizeof(Elf64_Shdr)) ||
	    h.e_shstrndx >= h.e_shnum)
		return -DCPI_EFORMAT;
	return 0;
}

static int check_sections(struct elf_object *o)
{
	GElf_Shdr sh;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(o->elf, scn));) {
		if (!gelf_getshdr(scn, &sh))
			return -DCPI_EFORMAT;
		if (sh.sh_type == SHT_NULL || sh.sh_type == SHT_NOBITS)
			continue;
		if (!inside(o, sh.sh_offset, sh.sh_size))
			return -DCPI_EFORMAT;
		/* Else libelf would make a copy of each. */
		if ((sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM ||
		     sh.sh_type == SHT_RELA) &&
		    sh.sh_offset % 8)
			return -DCPI_EFORMAT;
		/* Else each name's end would be sought from here. */
		if (sh.sh_type == SHT_STRTAB && sh.sh_size &&
		    o->bytes[sh.sh_offset + sh.sh_size - 1])
			return -DCPI_EFORMAT;
	}
	return 0;
}

int elf_file_open(struct elf_object *o, const struct foreign_object *from)
{
	int r;

	o->from = from;
	o->len = (size_t)from->rec->elf_len;
	o->bytes = calloc(1, o->len + ZEROS);
	if (!o->bytes)
		return -ENOMEM;
	memcpy(o->bytes, from->elf, o->len);
	r = check_header(o);
	if (r < 0)
		return r;
	elf_version(EV_CURRENT);
	o->elf = elf_memory((char *)o->bytes, o->len);
	if (!o->elf || elf_kind(o->elf) != ELF_K_ELF || !gelf_getehdr(o->elf, &o->header))
		return -DCPI_EFORMAT;
	return check_sections(o);
}

void elf_file_release(struct elf_object *o)
{
	if (o->dwarf)
		dwarf_end(o->dwarf);
	if (o->elf)
		elf_end(o->elf);
	free(o->bytes);
	free(o->routines);
	free(o->rows);
	free(o->parts);
	base_map_release(&o->folders);
	*o = (struct elf_object){ 0 };
}

/* ---- symbols --------------------------------------------------------------------------------- */

/* Longer beginnings of two names for one address are not compared. */
enum { NAME_COMPARED = 256 };

struct section {
	uint64_t vaddr, len; /* len 0: no code */
	const uint8_t *bytes;
};

struct sections {
	struct section *v;
	size_t nr;
};

/* In a relocatable file a symbol's value counts from its section. */
static uint64_t symbol_vaddr(const struct elf_object *o, const struct section *s, uint64_t value)
{
	return o->header.e_type == ET_REL ? s->vaddr + value : value + o->from->rec->bias;
}

static int read_sections(const struct elf_object *o, struct sections *all)
{
	GElf_Shdr sh;

	all->v = calloc(o->header.e_shnum, sizeof(*all->v));
	if (!all->v)
		return -ENOMEM;
	all->nr = o->header.e_shnum;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(o->elf, scn));) {
		struct section *s = &all->v[elf_ndxscn(scn)];

		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR))
			continue;
		s->vaddr = sh.sh_addr + o->from->rec->bias;
		s->len = sh.sh_size;
		if (sh.sh_type != SHT_PROGBITS)
			continue;
		s->bytes = o->bytes + sh.sh_offset;
	}
	return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* From @vaddr on: within its section, and where the object's code was said to be. */
static uint64_t space_at(const struct elf_object *o, const struct section *s, uint64_t vaddr)
{
	const struct wire_object *rec = o->from->rec;

	if (vaddr - s->vaddr >= s->len || vaddr - rec->addr >= rec->code_len)
		return 0;
	return least(s->len - (vaddr - s->vaddr), rec->code_len - (vaddr - rec->addr));
}

/* Longer is no routine but room for code to come: QEMU lists its buffer of 128 MiB as one. */
static bool is_routine(uint64_t len)
{
	return len <= WIRE_CODE_MAX;
}

static int add(struct elf_object *o, const struct section *s, const GElf_Sym *sym, const char *name,
	       uint32_t order)
{
	uint64_t addr = symbol_vaddr(o, s, sym->st_value), space = space_at(o, s, addr);
	uint64_t len = least(sym->st_size, space);
	int r;

	if (!space || !is_routine(len))
		return 0;
	if (o->nr_routines == FOREIGN_ROUTINES_MAX)
		return -DCPI_ELIMIT;
	r = base_grow(&o->routines, &o->cap_routines, o->nr_routines + 1, sizeof(*o->routines));
	if (r < 0)
		return r;
	o->routines[o->nr_routines++] = (struct elf_routine){
		.addr = addr,
		.len = len,
		.space = space,
		.name = name,
		.bytes = s->bytes ? s->bytes + (addr - s->vaddr) : NULL,
		.order = order,
		.local = GELF_ST_BIND(sym->st_info) == STB_LOCAL,
	};
	return 0;
}

static int add_table(struct elf_object *o, const struct sections *all, Elf_Scn *scn,
		     const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t nr = data ? data->d_size / sizeof(Elf64_Sym) : 0;
	int r = 0;

	if (sh->sh_entsize != sizeof(Elf64_Sym))
		return 0;
	for (size_t i = 1; i < nr && i < INT32_MAX && r == 0; i++) {
		const char *name;
		GElf_Sym sym;

		if (!gelf_getsym(data, (int)i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
		    sym.st_shndx == SHN_UNDEF || sym.st_shndx >= all->nr ||
		    !all->v[sym.st_shndx].len)
			continue;
		name = elf_strptr(o->elf, sh->sh_link, sym.st_name);
		if (name && *name)
			r = add(o, &all->v[sym.st_shndx], &sym, name, (uint32_t)i);
	}
	return r;
}

/* There is one at most in a good file; without end in another, all of the same bytes. */
static int add_first(struct elf_object *o, const struct sections *all, uint32_t type)
{
	GElf_Shdr sh;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(o->elf, scn));)
		if (gelf_getshdr(scn, &sh) && sh.sh_type == type)
			return add_table(o, all, scn, &sh);
	return 0;
}

/* The best name of an address comes first, the same in every run. */
static int by_addr(const void *pa, const void *pb)
{
	const struct elf_routine *a = pa, *b = pb;
	int r;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (!a->len != !b->len)
		return a->len ? -1 : 1;
	if (a->local != b->local)
		return a->local ? 1 : -1;
	r = strncmp(a->name, b->name, NAME_COMPARED);
	return r ? r : (a->order > b->order) - (a->order < b->order);
}

/*
 * One routine an address, none within another; one without a length reaches to the next, and one
 * that reaches into the next ends there.
 */
static void choose(struct elf_object *o)
{
	struct elf_routine *v = o->routines;
	size_t nr = 0;

	for (size_t i = 0; i < o->nr_routines; i++) {
		struct elf_routine *last = nr ? &v[nr - 1] : NULL;
		uint64_t gap = last ? v[i].addr - last->addr : 0;

		if (last && (!gap || (gap < last->len && v[i].len <= last->len - gap)))
			continue;
		if (last && (!last->len || last->len > gap))
			last->len = least(gap, last->space);
		v[nr++] = v[i];
	}
	if (nr && !v[nr - 1].len)
		v[nr - 1].len = v[nr - 1].space;
	o->nr_routines = 0;
	for (size_t i = 0; i < nr; i++)
		if (is_routine(v[i].len))
			v[o->nr_routines++] = v[i];
}

/* 0, -DCPI_ELIMIT (there were more), -ENOMEM. */
static int elf_symbols_read(struct elf_object *o)
{
	struct sections all = { 0 };
	int r = read_sections(o, &all);

	if (r == 0)
		r = add_first(o, &all, SHT_SYMTAB);
	if (r == 0 && !o->nr_routines)
		r = add_first(o, &all, SHT_DYNSYM);
	if (o->nr_routines)
		qsort(o->routines, o->nr_routines, sizeof(*o->routines), by_addr);
	choose(o);
	free(all.v);
	return r;
}

enum { TEXT_MAX = 4095, TEXTS_MAX = 65535 };

/* The parts of a routine's record, made again for each routine. */
struct parts {
	struct base_buf lines, inlines, files; /* as they stand in the record */
	struct base_map index;		       /* by pointer to the text: number in files + 1 */
	uint32_t nr_lines, nr_inlines, nr_files;
};

static void begin(struct parts *p)
{
	base_buf_clear(&p->lines);
	base_buf_clear(&p->inlines);
	base_buf_clear(&p->files);
	base_map_release(&p->index);
	p->nr_lines = p->nr_inlines = p->nr_files = 0;
}

static void release(struct parts *p)
{
	base_buf_release(&p->lines);
	base_buf_release(&p->inlines);
	base_buf_release(&p->files);
	base_map_release(&p->index);
}

/* Equal texts of one unit have one place in memory. @folder: goes before it, or NULL. */
static int put_text(struct parts *p, const char *folder, const char *text, uint32_t *index)
{
	void *known = base_map_get(&p->index, &text, sizeof(text));
	size_t before = folder ? strnlen(folder, TEXT_MAX - 1) : 0;
	size_t most = folder ? TEXT_MAX - before - 1 : TEXT_MAX;
	size_t after = strnlen(text, most), len = before + (folder ? 1 : 0) + after;
	uint8_t head[2] = { (uint8_t)len, (uint8_t)(len >> 8) };
	int r;

	if (known) {
		*index = (uint32_t)((uintptr_t)known - 1);
		return 0;
	}
	if (p->nr_files == TEXTS_MAX)
		return -DCPI_ELIMIT;
	r = base_map_set(&p->index, &text, sizeof(text), (void *)(uintptr_t)(p->nr_files + 1));
	if (r == 0)
		r = base_buf_append(&p->files, head, sizeof(head));
	if (r == 0 && folder)
		r = base_buf_append(&p->files, folder, before);
	if (r == 0 && folder)
		r = base_buf_append(&p->files, "/", 1);
	if (r == 0)
		r = base_buf_append(&p->files, text, after);
	*index = p->nr_files++;
	return r;
}

static int put_file(struct parts *p, const struct elf_object *o, const char *name, uint32_t *index)
{
	return put_text(p, base_map_get(&o->folders, &name, sizeof(name)), name, index);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The last row that is not behind @vaddr, or the first one behind it. */
static size_t first_row(const struct elf_object *o, uint64_t vaddr)
{
	size_t lo = BASE_UPPER_BOUND(o->rows, o->nr_rows, addr, vaddr);

	return lo ? lo - 1 : 0;
}

static int put_line(struct parts *p, const struct elf_object *o, const struct elf_row *row,
		    uint64_t off)
{
	struct wire_line line = { .code_off = (uint32_t)off,
				  .line = row->line,
				  .column = row->column,
				  .discriminator = row->discriminator };
	struct wire_line *last = NULL;
	int r = row->line ? put_file(p, o, row->file, &line.file) : 0;

	if (r < 0)
		return r;
	if (p->nr_lines)
		last = (struct wire_line *)(void *)p->lines.data + p->nr_lines - 1;
	if (last && last->line == line.line && last->file == line.file &&
	    last->column == line.column && last->discriminator == line.discriminator)
		return 0;
	/* If several lines have one address, the last is valid. */
	if (last && last->code_off == line.code_off) {
		*last = line;
		return 0;
	}
	if (!last && !line.line)
		return 0;
	r = base_buf_append(&p->lines, &line, sizeof(line));
	p->nr_lines += r == 0;
	return r;
}

static int put_lines(struct parts *p, const struct elf_object *o, const struct elf_routine *rt)
{
	int r = 0;

	for (size_t i = first_row(o, rt->addr); r == 0 && i < o->nr_rows; i++) {
		const struct elf_row *row = &o->rows[i];

		if (row->addr >= rt->addr + rt->len)
			break;
		r = put_line(p, o, row, row->addr > rt->addr ? row->addr - rt->addr : 0);
	}
	return r;
}

/* ---- inlined parts --------------------------------------------------------------------------- */

static int put_inline(struct parts *p, const struct elf_object *o, const struct elf_part *part,
		      const struct elf_routine *rt)
{
	struct wire_inline in = { .code_off = (uint32_t)(part->start - rt->addr),
				  .code_len = (uint32_t)(part->end - part->start),
				  .call_line = part->call_line,
				  .depth = part->depth };
	int r = put_text(p, NULL, part->name, &in.name);

	if (r == 0 && in.call_line)
		r = put_file(p, o, part->call_file, &in.call_file);
	if (r == 0)
		r = base_buf_append(&p->inlines, &in, sizeof(in));
	p->nr_inlines += r == 0;
	return r;
}

static int put_inlines(struct parts *p, const struct elf_object *o, size_t routine, size_t *next)
{
	int r = 0;

	for (; r == 0 && *next < o->nr_parts && o->parts[*next].routine == routine; ++*next)
		r = put_inline(p, o, &o->parts[*next], &o->routines[routine]);
	return r;
}

/* ---- the record ------------------------------------------------------------------------------ */

/* Take the running code, else the file's; returns the flags that say which, or 0 for neither. */
static uint16_t get_code(const struct foreign_object *from, const struct elf_routine *rt,
			 uint8_t *to)
{
	if (from->read && from->read(from->ctx, rt->addr, to, rt->len) == (ssize_t)rt->len)
		return WIRE_ROUTINE_CODE | WIRE_ROUTINE_FETCHED;
	if (!rt->bytes)
		return 0;
	memcpy(to, rt->bytes, rt->len);
	return WIRE_ROUTINE_CODE;
}

static void fill(uint8_t *to, const struct parts *p)
{
	const struct base_buf *bufs[] = { &p->lines, &p->inlines, &p->files };

	for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++) {
		if (bufs[i]->len)
			memcpy(to, bufs[i]->data, bufs[i]->len);
		to += bufs[i]->len;
	}
}

/* -DCPI_ELIMIT where it does not fit. */
static int put_record(const struct foreign_object *from, const struct elf_routine *rt,
		      const struct parts *p, uint32_t part, struct base_buf *out)
{
	size_t name_len = strnlen(rt->name, WIRE_NAME_MAX), code_len = rt->len, off;
	size_t len = wire_routine_len(name_len, code_len, true, p->nr_lines, p->nr_inlines,
				      p->files.len);
	struct wire_routine *rec;
	uint16_t code;
	void *at;
	int r;

	r = len ? base_buf_extend(out, len, &at) : -DCPI_ELIMIT;
	if (r < 0)
		return r;
	rec = at;
	code = get_code(from, rt, (uint8_t *)(rec + 1) + name_len);
	if (!code) {
		size_t less = wire_routine_len(name_len, code_len, false, p->nr_lines,
					       p->nr_inlines, p->files.len);

		memset(rec, 0, len);
		out->len -= len - less;
		len = less;
	}
	*rec = (struct wire_routine){
		.head = { .len = (uint32_t)len, .type = WIRE_ROUTINE, .flags = from->flags | code },
		.facility = from->rec->facility,
		.part = part,
		.seq = from->rec->seq,
		.addr = rt->addr,
		.code_len = code_len,
		.name_len = (uint32_t)name_len,
		.nr_lines = p->nr_lines,
		.nr_files = p->nr_files,
		.nr_inlines = p->nr_inlines
	};
	memcpy(rec + 1, rt->name, name_len);
	off = base_align_up(sizeof(*rec) + name_len + (code ? code_len : 0), 8);
	fill((uint8_t *)rec + off, p);
	return 0;
}

static int put_routine(struct parts *p, const struct elf_object *o, size_t i, size_t *next_part,
		       struct base_buf *out)
{
	const struct elf_routine *rt = &o->routines[i];
	int r;

	begin(p);
	r = put_lines(p, o, rt);
	if (r == 0)
		r = put_inlines(p, o, i, next_part);
	/* Too much is said of it: its code and name all the same. */
	if (r == -DCPI_ELIMIT) {
		begin(p);
		r = 0;
	}
	return r < 0 ? r : put_record(o->from, rt, p, (uint32_t)i, out);
}

static int put_all(const struct elf_object *o, struct base_buf *out)
{
	size_t from = out->len, next_part = 0;
	struct parts p = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < o->nr_routines; i++) {
		size_t mark = out->len;

		while (next_part < o->nr_parts && o->parts[next_part].routine < i)
			next_part++;
		r = put_routine(&p, o, i, &next_part, out);
		if (r == 0 && out->len - from > FOREIGN_OBJECT_MAX) {
			out->len = mark;
			r = -DCPI_ELIMIT;
		}
	}
	release(&p);
	return r;
}

int foreign_elf_object(const struct foreign_object *object, struct base_buf *out)
{
	struct elf_object o = { 0 };
	int r = elf_file_open(&o, object), symbols = 0;

	if (r == 0)
		r = symbols = elf_symbols_read(&o);
	if (r == 0 || r == -DCPI_ELIMIT)
		r = elf_dwarf_read(&o);
	if (r == 0)
		r = put_all(&o, out);
	if (r == 0)
		r = symbols < 0 ? symbols : (int)o.nr_routines;
	elf_file_release(&o);
	return r;
}
