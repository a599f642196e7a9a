/* SPDX-License-Identifier: BSD-2-Clause */
/* The smallest ELF file with routines, to be made wrong. */
#ifndef SMALL_ELF_H
#define SMALL_ELF_H

#include <elf.h>

#include "wire.h"

enum { SMALL_TEXT = 1, SMALL_SYMTAB, SMALL_STRTAB, SMALL_SHSTRTAB, SMALL_NR_SECTIONS };
enum { SMALL_TEXT_LEN = 96, SMALL_NR_SYMBOLS = 6 };
#define SMALL_VADDR 0x401000ull

struct small_elf {
	Elf64_Ehdr header;
	Elf64_Shdr section[SMALL_NR_SECTIONS];
	Elf64_Sym symbol[SMALL_NR_SYMBOLS]; /* the first is none */
	char names[64];
	char section_names[64];
	uint8_t text[SMALL_TEXT_LEN];
};

/*
 * Three routines in one section at SMALL_VADDR: "alpha" [0, 32), its other name "beta" (local),
 * "gamma" [32, 64), "delta" [64, …) without a length; an object "data" that is none. Each byte of
 * text is its offset.
 */
void small_elf(struct small_elf *e);
/* What a process says of it: seq 7, facility 0, elf_addr 0x500000, no bias. */
void small_elf_record(const struct small_elf *e, struct wire_object *rec);

#endif
