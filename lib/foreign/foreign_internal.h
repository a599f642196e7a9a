/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DCPI_FOREIGN_INTERNAL_H
#define DCPI_FOREIGN_INTERNAL_H

#include <elfutils/libdw.h>
#include <gelf.h>

#include "foreign.h"

struct elf_routine {
	uint64_t addr, len; /* vaddr */
	uint64_t space;	    /* from addr to where its section ends: the length is not above it */
	const char *name;
	const uint8_t *bytes; /* in the file; NULL: not there */
	uint32_t order;	      /* order of its symbol */
	bool local;
};

/* A row of the line table: from addr on. line 0: nothing is known from there on. */
struct elf_row {
	uint64_t addr; /* vaddr */
	const char *file;
	uint32_t line;
	uint32_t order;
	uint16_t column, discriminator;
	bool end; /* end of a sequence */
};

/* Code that was inlined into the routine (an index) it lies in. */
struct elf_part {
	uint64_t start, end; /* vaddr */
	const char *name, *call_file;
	uint32_t call_line, depth, routine, order;
};

struct elf_object {
	const struct foreign_object *from;
	uint8_t *bytes; /* a copy of the file, and some zeros behind it */
	size_t len;
	Elf *elf;
	GElf_Ehdr header;
	Dwarf *dwarf;
	GElf_Shdr lines;	      /* .debug_line, where there is DWARF */
	struct elf_routine *routines; /* ascending, disjoint */
	size_t nr_routines, cap_routines;
	struct elf_row *rows; /* ascending */
	size_t nr_rows, cap_rows;
	struct elf_part *parts; /* ordered by routine, then in preorder */
	size_t nr_parts, cap_parts;
	struct base_map folders; /* folders of relative names, by their place in memory */
};

/* elf_object.c: 0, -DCPI_EFORMAT, -ENOMEM; release what is there after a failure too. */
int elf_file_open(struct elf_object *o, const struct foreign_object *from);
void elf_file_release(struct elf_object *o);
/* Its name; "" where it has none. */
static inline const char *elf_file_section_name(const struct elf_object *o, const GElf_Shdr *sh)
{
	const char *name = elf_strptr(o->elf, o->header.e_shstrndx, sh->sh_name);

	return name ? name : "";
}

/* elf_dwarf.c: fill in what the DWARF of a relocatable file refers to. 0; negative: its DWARF is
 * of no use. */
int elf_relocate(struct elf_object *o);

/* Rows and parts, as far as they can be read. 0 or -ENOMEM. */
int elf_dwarf_read(struct elf_object *o);

#endif
