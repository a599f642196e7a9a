/* SPDX-License-Identifier: BSD-2-Clause */
/* An ELF object in memory is opened and checked here. */
#include <errno.h>
#include <stdlib.h>

#include "foreign_internal.h"

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

const char *elf_file_section_name(const struct elf_object *o, const GElf_Shdr *sh)
{
	const char *name = elf_strptr(o->elf, o->header.e_shstrndx, sh->sh_name);

	return name ? name : "";
}
