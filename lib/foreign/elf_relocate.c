/* SPDX-License-Identifier: BSD-2-Clause */
/* The references within the DWARF of a relocatable object are filled in here. */
#include "foreign_internal.h"

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
