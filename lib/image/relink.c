/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a file has what tools need that lay out its code anew. */
#include "image_internal.h"

/* Is it a table of relocations of code that the linker left in the file, and no loader reads? */
static bool is_of_code(Elf *elf, const GElf_Shdr *sh)
{
	Elf_Scn *scn;
	GElf_Shdr of;

	if ((sh->sh_type != SHT_RELA && sh->sh_type != SHT_REL) || (sh->sh_flags & SHF_ALLOC))
		return false;
	scn = elf_getscn(elf, sh->sh_info);
	return scn && gelf_getshdr(scn, &of) && (of.sh_flags & SHF_EXECINSTR);
}

/* Packers leave a file without sections that unpacks itself where it may write and execute. */
static bool is_packed(const struct image_elf *f)
{
	GElf_Phdr ph;

	for (size_t i = 0; i < f->header.e_phnum && gelf_getphdr(f->elf, (int)i, &ph); i++)
		if (ph.p_type == PT_LOAD && (ph.p_flags & PF_X) && (ph.p_flags & PF_W))
			return true;
	return false;
}

void image_relink(const struct image *img, struct image_relink *out)
{
	Elf *elf = img->main.elf;
	GElf_Shdr sh;

	*out = (struct image_relink){ .packed = is_packed(&img->main) };
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &sh);) {
		out->symbols = out->symbols || sh.sh_type == SHT_SYMTAB;
		out->relocations = out->relocations || is_of_code(elf, &sh);
	}
	out->position_independent = img->main.header.e_type == ET_DYN;
}
