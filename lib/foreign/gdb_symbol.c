/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Find a symbol by pread(2), as the file may be truncated meanwhile. The string table is searched
 * first: most files do not contain the name, and then their symbols need no search.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "foreign.h"

static const char symbol_name[] = "__jit_debug_descriptor";

enum {
	TRACE = 240 << 10, /* a multiple of a symbol's length */
	TABLE_MAX = 128 << 20,
	NAMES_MAX = 16, /* places in the strings where it stands, as the tail of others too */
	PHDRS_MAX = 1024,
};

struct file {
	int fd;
	uint64_t len, deadline_ns;
	Elf64_Ehdr header;
	Elf64_Shdr *sections;
	uint8_t *trace;
	uint64_t names[NAMES_MAX];
	size_t nr_names;
};

static int read_at(const struct file *f, uint64_t off, void *to, size_t len)
{
	int r = base_read_at(f->fd, off, to, len);

	return r == -DCPI_ETRUNCATED ? -DCPI_EFORMAT : r;
}

static bool inside(const struct file *f, uint64_t off, uint64_t len)
{
	return off <= f->len && len <= f->len - off;
}

static int read_header(struct file *f, int fd)
{
	struct stat st;
	int r;

	*f = (struct file){ .fd = fd };
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(f->header))
		return -DCPI_EFORMAT;
	f->len = (uint64_t)st.st_size;
	r = read_at(f, 0, &f->header, sizeof(f->header));
	if (r == 0 && (memcmp(f->header.e_ident, ELFMAG, SELFMAG) ||
		       f->header.e_ident[EI_CLASS] != ELFCLASS64 ||
		       f->header.e_ident[EI_DATA] != ELFDATA2LSB))
		r = -DCPI_EFORMAT;
	return r;
}

/* ---- the symbol ------------------------------------------------------------------------------ */

static int read_sections(struct file *f)
{
	const Elf64_Ehdr *h = &f->header;
	size_t len = h->e_shnum * sizeof(Elf64_Shdr);

	if (!h->e_shnum || h->e_shentsize != sizeof(Elf64_Shdr) || !inside(f, h->e_shoff, len))
		return -DCPI_EFORMAT;
	f->sections = malloc(len);
	f->trace = malloc(TRACE);
	if (!f->sections || !f->trace)
		return -ENOMEM;
	return read_at(f, h->e_shoff, f->sections, len);
}

static bool table_good(const struct file *f, const Elf64_Shdr *sh)
{
	return sh->sh_size <= TABLE_MAX && inside(f, sh->sh_offset, sh->sh_size);
}

static void note_names(struct file *f, uint64_t off, size_t len)
{
	const uint8_t *at = f->trace, *end = f->trace + len;

	while (f->nr_names < NAMES_MAX &&
	       (at = memmem(at, (size_t)(end - at), symbol_name, sizeof(symbol_name)))) {
		f->names[f->nr_names++] = off + (uint64_t)(at - f->trace);
		at++;
	}
}

/* Calls @look with each part of a section; parts overlap by @over bytes. Ends unless that says 0.
 */
static int each_trace(struct file *f, const Elf64_Shdr *sh, size_t over,
		      int (*look)(struct file *f, uint64_t off, size_t len, uint64_t *value),
		      uint64_t *value)
{
	int r = 0;

	for (uint64_t off = 0; r == 0 && off < sh->sh_size; off += TRACE - over) {
		size_t len = sh->sh_size - off < TRACE ? (size_t)(sh->sh_size - off) : TRACE;

		if (base_now_ns() > f->deadline_ns)
			return -ETIMEDOUT;
		r = read_at(f, sh->sh_offset + off, f->trace, len);
		if (r == 0)
			r = look(f, off, len, value);
		if (len < TRACE)
			break;
	}
	return r;
}

static int look_for_name(struct file *f, uint64_t off, size_t len, uint64_t *value)
{
	(void)value;
	note_names(f, off, len);
	return 0;
}

static bool is_it(const struct file *f, const Elf64_Sym *sym)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info);
	bool named = false;

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= SHN_LORESERVE || !sym->st_value ||
	    (type != STT_OBJECT && type != STT_NOTYPE))
		return false;
	for (size_t i = 0; !named && i < f->nr_names; i++)
		named = f->names[i] == sym->st_name;
	return named;
}

static int look_for_symbol(struct file *f, uint64_t off, size_t len, uint64_t *value)
{
	(void)off;
	for (size_t at = 0; at + sizeof(Elf64_Sym) <= len; at += sizeof(Elf64_Sym)) {
		Elf64_Sym sym;

		memcpy(&sym, f->trace + at, sizeof(sym));
		if (is_it(f, &sym)) {
			*value = sym.st_value;
			return 1;
		}
	}
	return 0;
}

static int look_in_table(struct file *f, const Elf64_Shdr *sh, uint64_t *value)
{
	const Elf64_Shdr *strings;
	int r;

	if (sh->sh_entsize != sizeof(Elf64_Sym) || sh->sh_link >= f->header.e_shnum)
		return 0;
	strings = &f->sections[sh->sh_link];
	if (strings->sh_type != SHT_STRTAB || !table_good(f, strings) || !table_good(f, sh))
		return 0;
	f->nr_names = 0;
	r = each_trace(f, strings, sizeof(symbol_name) - 1, look_for_name, value);
	return r == 0 && f->nr_names ? each_trace(f, sh, 0, look_for_symbol, value) : r;
}

/* There is one of a type at most in a good file. */
static int look_in_first(struct file *f, uint32_t type, uint64_t *value)
{
	for (size_t i = 0; i < f->header.e_shnum; i++)
		if (f->sections[i].sh_type == type)
			return look_in_table(f, &f->sections[i], value);
	return 0;
}

int foreign_gdb_symbol(int fd, uint32_t machine, uint64_t deadline_ns, uint64_t *value)
{
	struct file f;
	int r = read_header(&f, fd);

	f.deadline_ns = deadline_ns;
	if (r == 0 && f.header.e_machine != machine)
		r = -DCPI_EFORMAT;
	if (r == 0)
		r = read_sections(&f);
	if (r == 0)
		r = look_in_first(&f, SHT_DYNSYM, value);
	if (r == 0)
		r = look_in_first(&f, SHT_SYMTAB, value);
	free(f.sections);
	free(f.trace);
	return r == -DCPI_EFORMAT ? 0 : r;
}

/* ---- where it is mapped ---------------------------------------------------------------------- */

/* Whole pages of the file are mapped; a segment need not begin with one. */
static bool is_mapped_from(const Elf64_Phdr *ph, uint64_t file_off)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = ph->p_offset & ~(page - 1);

	return ph->p_type == PT_LOAD && ph->p_flags & PF_X && file_off >= first &&
	       file_off - first < ph->p_filesz + (ph->p_offset - first);
}

int foreign_gdb_bias(int fd, uint64_t start, uint64_t file_off, uint64_t *bias)
{
	struct file f;
	int r = read_header(&f, fd);

	if (r == 0 && (f.header.e_phentsize != sizeof(Elf64_Phdr) || f.header.e_phnum > PHDRS_MAX ||
		       !inside(&f, f.header.e_phoff, f.header.e_phnum * sizeof(Elf64_Phdr))))
		r = -DCPI_EFORMAT;
	for (size_t i = 0; r == 0 && i < f.header.e_phnum; i++) {
		Elf64_Phdr ph;

		r = read_at(&f, f.header.e_phoff + i * sizeof(ph), &ph, sizeof(ph));
		if (r == 0 && is_mapped_from(&ph, file_off)) {
			*bias = start - (ph.p_vaddr - ph.p_offset + file_off);
			return 0;
		}
	}
	return r < 0 ? r : -DCPI_EFORMAT;
}
