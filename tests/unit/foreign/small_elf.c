/* SPDX-License-Identifier: BSD-2-Clause */
#include "small_elf.h"

static void add_section(struct small_elf *e, int i, uint32_t name, uint32_t type, const void *at,
			size_t len)
{
	e->section[i] = (Elf64_Shdr){ .sh_name = name,
				      .sh_type = type,
				      .sh_offset = (uint64_t)((const uint8_t *)at - (uint8_t *)e),
				      .sh_size = len,
				      .sh_addralign = 1 };
}

static void add_symbol(struct small_elf *e, int i, uint32_t name, unsigned char info, uint64_t off,
		       uint64_t len)
{
	e->symbol[i] = (Elf64_Sym){ .st_name = name,
				    .st_info = info,
				    .st_shndx = SMALL_TEXT,
				    .st_value = SMALL_VADDR + off,
				    .st_size = len };
}

void small_elf(struct small_elf *e)
{
	const unsigned char function = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);

	*e = (struct small_elf){ .header = { .e_type = ET_EXEC,
					     .e_machine = EM_X86_64,
					     .e_version = EV_CURRENT,
					     .e_shoff = sizeof(Elf64_Ehdr),
					     .e_ehsize = sizeof(Elf64_Ehdr),
					     .e_shentsize = sizeof(Elf64_Shdr),
					     .e_shnum = SMALL_NR_SECTIONS,
					     .e_shstrndx = SMALL_SHSTRTAB } };
	memcpy(e->header.e_ident, ELFMAG, SELFMAG);
	e->header.e_ident[EI_CLASS] = ELFCLASS64;
	e->header.e_ident[EI_DATA] = ELFDATA2LSB;
	e->header.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(e->names, "\0alpha\0beta\0gamma\0delta\0data", 29);
	memcpy(e->section_names, "\0.text\0.symtab\0.strtab\0.shstrtab", 33);
	for (int i = 0; i < SMALL_TEXT_LEN; i++)
		e->text[i] = (uint8_t)i;
	add_section(e, SMALL_TEXT, 1, SHT_PROGBITS, e->text, sizeof(e->text));
	add_section(e, SMALL_SYMTAB, 7, SHT_SYMTAB, e->symbol, sizeof(e->symbol));
	add_section(e, SMALL_STRTAB, 15, SHT_STRTAB, e->names, sizeof(e->names));
	add_section(e, SMALL_SHSTRTAB, 23, SHT_STRTAB, e->section_names, sizeof(e->section_names));
	e->section[SMALL_TEXT].sh_addr = SMALL_VADDR;
	e->section[SMALL_TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	e->section[SMALL_SYMTAB].sh_link = SMALL_STRTAB;
	e->section[SMALL_SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	e->section[SMALL_SYMTAB].sh_addralign = 8;
	add_symbol(e, 1, 18, function, 64, 0);
	add_symbol(e, 2, 7, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0, 32);
	add_symbol(e, 3, 1, function, 0, 32);
	add_symbol(e, 4, 12, function, 32, 32);
	add_symbol(e, 5, 24, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 8, 8);
}

void small_elf_record(const struct small_elf *e, struct wire_object *rec)
{
	*rec = (struct wire_object){ .head = { .len = sizeof(*rec), .type = WIRE_OBJECT },
				     .seq = 7,
				     .elf_addr = 0x500000,
				     .elf_len = sizeof(*e),
				     .addr = SMALL_VADDR,
				     .code_len = SMALL_TEXT_LEN };
}
