/* SPDX-License-Identifier: BSD-2-Clause */
/* The symbols that a CPython exports, and the bytes that they stand for. */
#include "python_find.h"

#include <string.h>

#include "python_layout.h"

/* Bytes at an address of the file, as far as it has them. */
static size_t read_at(const struct image_elf *f, uint64_t vaddr, void *to, size_t len)
{
	size_t nr = 0;
	GElf_Phdr ph;

	if (elf_getphdrnum(f->elf, &nr) != 0)
		return 0;
	for (size_t i = 0; i < nr && gelf_getphdr(f->elf, (int)i, &ph); i++) {
		uint64_t in = vaddr - ph.p_vaddr;

		if (ph.p_type != PT_LOAD || vaddr < ph.p_vaddr || in >= ph.p_filesz)
			continue;
		return image_elf_read(f, ph.p_offset + in, to,
				      len < ph.p_filesz - in ? len : (size_t)(ph.p_filesz - in));
	}
	return 0;
}

static void take(const struct image_elf *f, const char *name, const GElf_Sym *sym,
		 struct python_part *parts)
{
	for (size_t k = 0; k < PYTHON_NR_SYMBOLS; k++) {
		struct python_part *p = &parts[k];
		size_t len = sym->st_size < sizeof(p->bytes) ? sym->st_size : sizeof(p->bytes);

		if (strcmp(name, python_symbol_name((enum python_symbol)k)) != 0)
			continue;
		p->vaddr = sym->st_value;
		p->size = sym->st_size;
		p->len = read_at(f, sym->st_value, p->bytes, len);
	}
}

static void take_table(const struct image_elf *f, Elf_Scn *scn, const GElf_Shdr *sh,
		       struct python_part *parts)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t nr = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;
	GElf_Sym sym;

	for (size_t i = 1; i < nr && i < INT32_MAX && gelf_getsym(data, (int)i, &sym); i++) {
		const char *name = elf_strptr(f->elf, sh->sh_link, sym.st_name);

		if (name && sym.st_shndx != SHN_UNDEF &&
		    (!strncmp(name, "Py", 2) || !strncmp(name, "_Py", 3)))
			take(f, name, &sym, parts);
	}
}

void image_python_find(const struct image_elf *f, uint64_t above, struct unwind_python *out)
{
	struct python_part parts[PYTHON_NR_SYMBOLS] = { 0 };
	GElf_Shdr sh;

	*out = (struct unwind_python){ 0 };
	if (f->header.e_machine != EM_X86_64)
		return;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));)
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_DYNSYM)
			take_table(f, scn, &sh, parts);
	python_layout(parts, out);
	if (!out->version)
		return;
	out->main -= above;
	out->current -= out->current ? above : 0;
	out->code_type -= above;
	out->code -= out->code ? above : 0;
	out->code_end -= out->code_end ? above : 0;
}
